package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var capabilityCases = []Case{
	{Name: "the store has the capabilities that are declared, and no others", Clauses: "declared", run: capabilityDeclared},
	{Name: "a listener hears of messages, new runs, times and ends", Clauses: "Notifier", Needs: Notifier, run: notifierHears},
	{Name: "listening begins with a look at everything", Clauses: "Notifier", Needs: Notifier, run: notifierBegins},
	{Name: "listening ends with its context and with the store", Clauses: "Notifier, S23", Needs: Notifier, run: notifierEnds},
	{Name: "a batch is one commit", Clauses: "Meter, S2", Needs: Meter, run: meterBatch},
	{Name: "an executor whose process is gone is dead before its lease runs out", Clauses: "Presence, S20", Needs: Presence, run: presenceGone},
	{Name: "the clock says whose it is", Clauses: "Clocked", Needs: Clocked, run: clockedKind},
	{Name: "a change in a transaction of the user's shares its fate", Clauses: "TxCommitter, S1, S3", Needs: TxCommitter, hook: hookBegin, run: txShares},
}

func capabilityDeclared(t *T) {
	s := t.open()
	for c, has := range found(s) {
		require.Equal(t, t.h.has(c), has, "%s: declared (want), present (got)", c)
	}
}

func notifierHears(t *T) {
	d := t.fresh()
	s, listening := t.handle(d), t.handle(d)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	heard, all := make(map[string]bool), 0
	news := make(map[string]store.News) // 0: at least one notice did not say
	ended := make(chan error, 1)
	go func() {
		ended <- capabilities(listening).Notifier.Notify(ctx, func(n store.Notice) {
			mu.Lock()
			defer mu.Unlock()
			for _, id := range n.RunIDs {
				if before, known := news[id]; n.News == 0 || known && before == 0 {
					news[id] = 0
				} else {
					news[id] |= n.News
				}
				heard[id] = true
			}
			if len(n.RunIDs) == 0 {
				all++
			}
		})
	}()
	// What a notice may not leave out, if it says anything.
	says := map[string]store.News{
		"a new run": store.NewsClaimable, "a message": store.NewsMail, "the end of a run": store.NewsPlace | store.NewsStatus,
		"a message to a run of nobody": store.NewsClaimable,
		"a delayed run":                store.NewsTime, "a run that is delayed": store.NewsTime, "a waiting run that is given up": store.NewsTime,
	}
	later := func(r *store.Run) { r.WakeAt = t.now().Add(time.Hour) }
	acts := map[string]func(id string){
		"a new run": func(id string) { t.run(s, id) },
		"a message": func(id string) {
			t.run(s, id, func(r *store.Run) { r.Owner = "somebody" })
			t.must(s, send(signal(id, "1")))
		},
		"a message to a run of nobody": func(id string) {
			t.run(s, id, func(r *store.Run) { r.Status = store.Waiting })
			t.must(s, send(signal(id, "1")))
		},
		"a delayed run": func(id string) { t.run(s, id, later) },
		"a run that is delayed": func(id string) {
			w := t.run(s, id)
			w.must(s, w.patch(store.RowPatch{WakeAt: ptr(t.now().Add(time.Hour))}))
		},
		"a waiting run that is given up": func(id string) {
			w := t.run(s, id, later, func(r *store.Run) { r.Status, r.Owner = store.Waiting, "somebody" })
			c := w.append(step("last"))
			c.Yield = true
			w.must(s, c)
		},
		"the end of a run": func(id string) {
			w := t.run(s, id, func(r *store.Run) { r.Status, r.Owner = store.Running, "somebody" })
			w.must(s, w.end(store.Completed))
		},
	}
	for name, act := range acts {
		// A notice may be lost, and the listener needs time to start, so the act is
		// repeated with other runs until a notice arrives.
		n := 0
		t.eventually("a listener hears of "+name, func() bool {
			id := fmt.Sprintf("%s %d", name, n)
			n++
			mu.Lock()
			before := all
			mu.Unlock()
			act(id)
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
				mu.Lock()
				whole := all > before || heard[id] && (news[id] == 0 || news[id]&says[name] == says[name])
				mu.Unlock()
				if whole {
					return true
				}
			}
			return false
		})
	}
	cancel()
	<-ended
}

// notifierBegins is how an engine that commits before it listens finds what it
// committed without waiting for its heartbeat.
func notifierBegins(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	n := capabilities(s).Notifier
	t.run(s, "before")
	// The second begins once the first has set up what they share.
	for _, who := range []string{"the first", "the second"} {
		first := make(chan store.Notice, 1000)
		go func() {
			_ = n.Notify(t.Context(), func(n store.Notice) { // what it returns is not prescribed
				select {
				case first <- n:
				default:
				}
			})
		}()
		select {
		case got := <-first:
			require.Empty(t, got.RunIDs, "the first notice of %s names runs", who)
		case <-time.After(t.patience()):
			require.Fail(t, "there is no first notice for "+who+" that listens")
		}
	}
}

func notifierEnds(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	n := capabilities(s).Notifier
	ended := make(chan string, 2)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = n.Notify(ctx, func(store.Notice) {}) // what it returns is not prescribed
		ended <- "context"
	}()
	go func() {
		_ = n.Notify(t.Context(), func(store.Notice) {})
		ended <- "store"
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-ended:
			require.Equal(t, want, got)
		case <-time.After(t.patience()):
			require.Fail(t, "Notify does not return when its "+want+" ends")
		}
	}
	t.run(s, "r")
	cancel()
	expect("context")
	require.NoError(t, s.Close())
	expect("store")
	require.ErrorIs(t, n.Notify(t.Context(), func(store.Notice) {}), store.ErrClosed)
}

func meterBatch(t *T) {
	d := t.fresh()
	s := t.handle(d)
	meter := capabilities(s).Meter
	var plain []store.Change
	var writers []*writer
	for i := range 10 {
		w := t.run(s, fmt.Sprint("r", i))
		w.steps(s, 1)
		writers = append(writers, w)
	}
	for _, w := range writers {
		plain = append(plain, w.append(step("a")))
	}
	before := meter.Counts()
	t.must(s, plain...)
	after := meter.Counts()
	require.Equal(t, int64(1), after.Commits-before.Commits, "S2: ten runs, one durable commit")
	require.Positive(t, after.Statements-before.Statements)
	writers[0].done(plain[0])
	fewest := int64(1000) // a store may have other things to do in between
	for range 5 {
		before = meter.Counts()
		writers[0].steps(s, 1)
		after = meter.Counts()
		require.Equal(t, int64(1), after.Commits-before.Commits)
		fewest = min(fewest, after.Statements-before.Statements)
	}
	require.Equal(t, int64(1), fewest, "a plain checkpoint is one statement")
	before = after
	t.all(s, "r0")
	after = meter.Counts()
	require.Zero(t, after.Commits-before.Commits)
	require.Positive(t, after.Reads-before.Reads)
	other := capabilities(t.handle(d)).Meter.Counts()
	require.LessOrEqual(t, other.Commits, int64(5), "each handle counts its own")
}

func presenceGone(t *T) {
	d := t.fresh()
	s := t.handle(d)
	gone, err := d.Open()
	require.NoError(t, err)
	if c := capabilities(gone); c.Presence != nil {
		require.NotEmpty(t, c.Presence.PresenceKind())
	}
	t.run(s, "r")
	t.beat(gone, "gone")
	runs := t.claim(gone, "gone", "r")
	require.Len(t, runs, 1)
	t.beat(s, "here")
	require.Empty(t, t.claim(s, "here", "r"), "S20: its process is there")
	require.NoError(t, gone.Close()) // as the end of the process would
	t.eventually("S20: presence tells that an executor is gone, long before its lease", func() bool { return !t.live(s, "gone") })
	require.True(t, t.live(s, "here"))
	require.Len(t, t.claim(s, "here", "r"), 1)
}

func clockedKind(t *T) {
	kind := capabilities(t.open()).Clocked.ClockKind()
	require.Contains(t, []string{"process", "server"}, kind)
}

func txShares(t *T) {
	d := t.fresh()
	s := t.handle(d)
	committer := capabilities(s).TxCommitter
	w := t.run(s, "r")
	t.run(s, "other")
	full := func() store.Change {
		c := w.append(step("a"), step("b"))
		c.Row = &store.RowPatch{Priority: ptr(int32(w.seq))}
		c.Send = []store.Message{signal("other", fmt.Sprint(w.seq))}
		return c
	}
	in := func(c store.Change, end func(Tx) error) error {
		tx, err := d.Begin(t.Context())
		require.NoError(t, err)
		if err := committer.CommitIn(t.Context(), tx.Tx, c); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		require.NoError(t, end(tx))
		return nil
	}
	before := t.dump(s)
	require.NoError(t, in(full(), func(tx Tx) error { return tx.Rollback() }))
	require.Equal(t, before, t.dump(s), "S1: rolled back, it never was")
	plain := func() store.Change { return w.append(step("plain")) }
	for _, build := range []func() store.Change{full, plain} {
		c := build()
		require.NoError(t, in(c, func(tx Tx) error { return tx.Commit() }))
		events := t.all(s, "r").Events
		require.Equal(t, stored(c), events[len(events)-len(c.Events):])
		if w.done(c); len(c.Send) > 0 {
			require.Equal(t, int64(1), t.row(s, "other").Inbox)
		}
	}
	stale := *w
	stale.epoch--
	require.ErrorIs(t, in(stale.append(step("late")), func(tx Tx) error { return tx.Commit() }), store.ErrFenced)
	created, _ := t.create("new")
	require.NoError(t, in(created, func(tx Tx) error { return tx.Commit() }))
	require.Equal(t, store.Pending, t.row(s, "new").Status)
	require.ErrorIs(t, in(w.append(step(""), store.Event{}), func(tx Tx) error { return tx.Commit() }), store.ErrInvalid)
	w.steps(s, 1)
}
