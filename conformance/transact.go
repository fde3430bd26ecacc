package conformance

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// The cases cannot know the tables of the user's. What they do in a transaction beside
// its Change is another Change, of another run, which CommitIn carries out.
var transactCases = []Case{
	{Name: "a change and what was done beside it in a transaction are one act", Clauses: "S40, S1", Needs: Transactor, run: transactTogether},
	{Name: "a transaction that was rolled back never was", Clauses: "S40", Needs: Transactor, run: transactUndone},
	{Name: "a refused change takes its transaction with it", Clauses: "S40, S3", Needs: Transactor, run: transactRefused},
	{Name: "a change that was carried out before is refused in a transaction", Clauses: "S40", Needs: Transactor, run: transactTwice},
	{Name: "of a transaction and a change for the same place in the log one is durable", Clauses: "S40, S3", Needs: Transactor, run: transactRivals},
	{Name: "runs go on beside an open transaction, or after it", Clauses: "S40", Needs: Transactor, run: transactBeside},
	{Name: "a transaction that is waited for ends with the context, and none begins in a closed store", Clauses: "S18, S23", Needs: Transactor, run: transactClosed},
}

// transactor returns the transactions of s.
func transactor(s store.Store) store.Transactor { return capabilities(s).Transactor }

// begin begins a transaction, in which the run other has got a message.
func (t *T) begin(s store.Store, other, id string) store.Tx {
	t.Helper()
	tx, err := transactor(s).BeginTx(t.Context())
	require.NoError(t, err, "S40: a transaction begins")
	c := store.Change{Send: []store.Message{signal(other, id)}}
	if err := transactor(s).CommitIn(t.Context(), tx.Handle(), c); err != nil {
		require.NoError(t, tx.Rollback())
		require.NoError(t, err, "S40: the handle takes a change")
	}
	return tx
}

// heard returns how many messages run id has got.
func (t *T) heard(s store.Store, id string) int64 { return t.row(s, id).Inbox }

func transactTogether(t *T) {
	d := t.fresh()
	s, reader := t.handle(d), t.handle(d)
	w := t.run(s, "r")
	t.run(s, "other")
	changes := map[string]func() store.Change{
		"a checkpoint": func() store.Change { return w.append(step("a")) },
		"a few events": func() store.Change { return w.append(step("b"), step("c")) },
		"one with its row": func() store.Change {
			c := w.append(step("d"))
			c.Row = &store.RowPatch{Priority: ptr(int32(7))}
			return c
		},
		"one that sends": func() store.Change {
			c := w.append(step("e"))
			c.Send = []store.Message{signal("r", "to itself")}
			return c
		},
	}
	for name, make := range changes {
		before := t.heard(s, "other")
		c := make()
		tx := t.begin(s, "other", name)
		require.NoError(t, tx.Commit(c), "S40: %s", name)
		events := t.all(reader, "r").Events
		require.Equal(t, stored(c), events[len(events)-len(c.Events):], "S40: %s is durable", name)
		require.Equal(t, before+1, t.heard(reader, "other"), "S40: what was done beside %s is durable", name)
		require.NoError(t, tx.Rollback(), "S40: after Commit, Rollback does nothing")
		require.Equal(t, before+1, t.heard(reader, "other"), "S40: after Commit, Rollback does nothing")
		w.done(c)
	}
	w.steps(s, 2)
}

func transactUndone(t *T) {
	s := t.open()
	w := t.run(s, "r")
	t.run(s, "other")
	before := t.dump(s)
	tx := t.begin(s, "other", "1")
	require.NoError(t, tx.Rollback())
	require.NoError(t, tx.Rollback(), "S40: a second Rollback does nothing")
	require.Equal(t, before, t.dump(s), "S40: rolled back, it never was")
	require.Error(t, tx.Commit(w.append(step("late"))), "S40: a transaction that has ended takes nothing")
	require.Equal(t, before, t.dump(s), "S40: rolled back, it never was")
	w.steps(s, 1)
}

// refusedIn fails unless a transaction refuses the change, and what was done beside it is undone.
func (t *T) refusedIn(s store.Store, name string, c store.Change, want error) {
	t.Helper()
	before := t.dump(s)
	tx := t.begin(s, "other", name)
	require.ErrorIs(t, tx.Commit(c), want, "S40, S3: %s", name)
	require.Equal(t, before, t.dump(s), "S40: what was done beside %s is undone", name)
}

func transactRefused(t *T) {
	s := t.open()
	w := t.run(s, "r")
	t.run(s, "other")
	stale := *w
	stale.epoch--
	behind := *w
	behind.seq++
	t.refusedIn(s, "a change of a former owner", stale.append(step("late")), store.ErrFenced)
	t.refusedIn(s, "a change behind a gap", behind.append(step("gap")), store.ErrFenced)
	t.refusedIn(s, "an invalid change", w.append(step(""), store.Event{}), store.ErrInvalid)
	w.steps(s, 1)
}

func transactTwice(t *T) {
	s := t.open()
	w := t.run(s, "r")
	t.run(s, "other")
	once := w.append(step("a"))
	w.must(s, once)
	t.refusedIn(s, "a checkpoint that was carried out before", once, store.ErrFenced)
	once = w.append(step("b"))
	once.Row = &store.RowPatch{Priority: ptr(int32(7))}
	w.must(s, once)
	t.refusedIn(s, "a change of the row that was carried out before", once, store.ErrFenced)
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Running)}))
	for name, part := range map[string]func(*store.Change){
		"a branch": func(c *store.Change) { c.Branch = &store.Branch{N: 1, CreatedAt: t.now()} },
		"a status that is expected": func(c *store.Change) {
			c.Expect.Statuses, c.Row = []store.Status{store.Running}, &store.RowPatch{Status: ptr(store.Waiting)}
		},
		"an inbox that is expected": func(c *store.Change) {
			c.Expect.Inbox, c.Send = ptr(t.heard(s, "r")), []store.Message{signal("r", "to itself")}
		},
	} {
		once := w.append(step(name))
		part(&once)
		w.must(s, once)
		t.refusedIn(s, "a change with "+name+" that was carried out before", once, store.ErrFenced)
		w.must(s, w.patch(store.RowPatch{Status: ptr(store.Running)}))
	}
	w.steps(s, 1)
}

func transactRivals(t *T) {
	s := t.open()
	w := t.run(s, "r")
	t.run(s, "other")
	rounds := 20
	for range rounds {
		mine, rival := w.append(step("mine")), w.append(step("rival"))
		before := t.heard(s, "other")
		tx := t.begin(s, "other", "m"+string(rune('a'+w.seq)))
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { errs[0] = tx.Commit(mine) })
		both.Go(func() { errs[1] = t.commit(s, rival) })
		both.Wait()
		won, lost, heard := mine, errs[1], before+1
		if errs[0] != nil {
			won, lost, heard = rival, errs[0], before
			require.NoError(t, errs[1], "S40: one of the two is durable")
		}
		require.ErrorIs(t, lost, store.ErrFenced, "S40, S3: the other is fenced")
		events := t.all(s, "r").Events
		require.Equal(t, stored(won), events[len(events)-1:], "S40: the log has the one that was acknowledged")
		require.Equal(t, heard, t.heard(s, "other"), "S40: what was done in the transaction is durable if it won, and else undone")
		w.done(won)
	}
}

func transactBeside(t *T) {
	s := t.open()
	w, beside := t.run(s, "r"), t.run(s, "beside")
	t.run(s, "other")
	c, also := w.append(step("in")), beside.append(step("beside"))
	tx := t.begin(s, "other", "1")
	done := make(chan error, 1)
	go func() { done <- t.commit(s, also) }()
	if !transactor(s).OneWriter() {
		select {
		case err := <-done:
			require.NoError(t, err)
			done <- nil
		case <-t.patient().Done():
			_ = tx.Rollback()
			require.Fail(t, "S40: the store says that others write beside a transaction, and a commit waits for one")
		}
	}
	require.NoError(t, tx.Commit(c))
	require.NoError(t, <-done)
	w.done(c)
	beside.done(also)
	w.steps(s, 1)
	beside.steps(s, 1)
}

func transactClosed(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "r")
	t.run(s, "other")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := transactor(s).BeginTx(ended)
	require.ErrorIs(t, err, context.Canceled, "S18: a transaction that is waited for ends with the context")
	tx := t.begin(s, "other", "1")
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	t.eventually("S23: a store that is closing begins nothing", func() bool {
		soon, cancel := context.WithTimeout(t.Context(), t.patience()/200)
		defer cancel()
		late, err := transactor(s).BeginTx(soon)
		if err == nil {
			require.NoError(t, late.Rollback())
		}
		return err != nil && soon.Err() == nil
	})
	require.NoError(t, tx.Rollback(), "S23: Close waits for the transactions that are open")
	require.NoError(t, <-closed)
	_, err = transactor(s).BeginTx(t.Context())
	require.ErrorIs(t, err, store.ErrClosed, "S23")
}
