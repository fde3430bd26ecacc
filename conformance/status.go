package conformance

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var statusCases = []Case{
	{Name: "a status follows another only as MayFollow says", Clauses: "S9", run: statusSteps},
	{Name: "what has completed stays completed", Clauses: "S9", run: statusFinal},
	{Name: "a change is refused in a status it does not expect", Clauses: "S9", run: statusExpected},
	{Name: "an unread cancel keeps a run from completing", Clauses: "S15", run: statusNoCancel},
	{Name: "of a cancel and a completion under NoCancel one comes first", Clauses: "S15", run: statusCancelMessageRace},
	{Name: "of a completion and an operator's cancellation one wins", Clauses: "S3, S5, S9", run: statusCancelRace},
}

func statusSteps(t *T) {
	s := t.open()
	for _, from := range store.Statuses() {
		for _, to := range store.Statuses() {
			id := fmt.Sprintf("%s-%s", from, to)
			w := t.run(s, id, func(r *store.Run) { r.Status = from })
			c := w.append(step("a"))
			c.Row = &store.RowPatch{Status: &to}
			c.Yield = to.Terminal()
			err := t.commit(s, c)
			if store.MayFollow(from, to) {
				require.NoError(t, err, "from %s to %s", from, to)
				require.Equal(t, to, t.row(s, id).Status)
				continue
			}
			require.ErrorIs(t, err, store.ErrStatus, "from %s to %s", from, to)
			var status *store.StatusError
			require.ErrorAs(t, err, &status)
			require.Equal(t, store.StatusError{RunID: id, Status: from, To: to}, *status)
			got := t.all(s, id)
			require.Equal(t, from, got.Run.Status)
			require.Len(t, got.Events, 1, "S1: the event of a refused change is not there")
		}
	}
}

func statusFinal(t *T) {
	s := t.open()
	w := t.claimed(s, "a", "r")
	w.must(s, w.end(store.Completed))
	before := t.dump(s)
	for _, to := range store.Statuses() {
		c := w.append(step("late"))
		c.Row, c.Yield = &store.RowPatch{Status: &to}, to.Terminal()
		require.ErrorIs(t, t.commit(s, c), store.ErrStatus, "completed, then %s", to)
	}
	require.Equal(t, before, t.dump(s))
}

func statusExpected(t *T) {
	s := t.open()
	w := t.run(s, "r")
	before := t.dump(s)
	c := w.append(step("a"))
	c.Expect.Statuses = []store.Status{store.Failed, store.Interrupted}
	err := t.commit(s, c)
	require.ErrorIs(t, err, store.ErrStatus)
	var status *store.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, store.Pending, status.Status)
	rowOnly := w.patch(store.RowPatch{Priority: ptr(int32(1))})
	rowOnly.Expect.Statuses = []store.Status{store.Completed}
	require.ErrorIs(t, t.commit(s, rowOnly), store.ErrStatus)
	require.Equal(t, before, t.dump(s))
	c.Expect.Statuses = []store.Status{store.Failed, store.Pending}
	w.must(s, c)
	require.Len(t, t.all(s, "r").Events, 2)
}

func statusNoCancel(t *T) {
	s := t.open()
	w := t.claimed(s, "a", "r")
	t.must(s, send(store.Message{To: "r", Kind: store.KindCancel, ID: "c"}))
	before := t.dump(s)
	c := w.end(store.Completed)
	c.Expect.NoCancel = true
	require.ErrorIs(t, t.commit(s, c), store.ErrCancelAsked)
	alone := w.append(step("a"))
	alone.Expect.NoCancel = true
	require.ErrorIs(t, t.commit(s, alone), store.ErrCancelAsked, "also when only events are written")
	rowOnly := w.patch(store.RowPatch{Priority: ptr(int32(3))})
	rowOnly.Expect.NoCancel = true
	require.ErrorIs(t, t.commit(s, rowOnly), store.ErrCancelAsked, "also when only the row is written")
	require.Equal(t, before, t.dump(s))

	w.must(s, w.append(step("cancel is no fence")))
	w.must(s, w.patch(store.RowPatch{CancelAsked: ptr(false), Seen: ptr(int64(1))}))
	c = w.end(store.Completed)
	c.Expect.NoCancel = true
	w.must(s, c)
}

func statusCancelMessageRace(t *T) {
	d := t.fresh()
	owner, client := t.handle(d), t.handle(d)
	for round := range 10 {
		id := fmt.Sprintf("r%d", round)
		w := t.claimed(owner, "a", id)
		done := w.end(store.Completed)
		done.Expect.NoCancel = true
		cancel := send(store.Message{To: id, Kind: store.KindCancel, ID: "c"})
		var errDone, errCancel error
		t.together(2, func(i int) {
			if i == 0 {
				errDone = one(t.Context(), owner, done)
			} else {
				errCancel = one(t.Context(), client, cancel)
			}
		})
		r := t.row(owner, id)
		if errDone == nil {
			require.ErrorIs(t, errCancel, store.ErrStatus, "S15: the run had ended")
			require.Equal(t, store.Completed, r.Status)
			require.False(t, r.CancelAsked)
		} else {
			require.ErrorIs(t, errDone, store.ErrCancelAsked, "S15: a cancel was unread")
			require.NoError(t, errCancel)
			require.Equal(t, store.Running, r.Status)
			require.True(t, r.CancelAsked)
		}
	}
}

func statusCancelRace(t *T) {
	d := t.fresh()
	owner, operator := t.handle(d), t.handle(d)
	for round := range 10 {
		id := fmt.Sprintf("r%d", round)
		w := t.run(owner, id, func(r *store.Run) { r.Status = store.Running })
		done, cancel := w.end(store.Completed), w.end(store.Cancelled)
		cancel.Expect.TakeEpoch = true
		var errDone, errCancel error
		t.together(2, func(i int) {
			if i == 0 {
				errDone = one(t.Context(), owner, done)
			} else {
				errCancel = one(t.Context(), operator, cancel)
			}
		})
		require.NotEqual(t, errDone == nil, errCancel == nil, "exactly one wins: completion %v, cancellation %v", errDone, errCancel)
		got := t.all(owner, id)
		if errDone == nil {
			require.True(t, isOneOf(errCancel, store.ErrFenced, store.ErrStatus), "%v", errCancel)
			require.Equal(t, store.Completed, got.Run.Status)
			require.Equal(t, stored(done)[0], got.Events[1])
		} else {
			require.True(t, isOneOf(errDone, store.ErrFenced, store.ErrStatus), "%v", errDone)
			require.Equal(t, store.Cancelled, got.Run.Status)
			require.Equal(t, stored(cancel)[0], got.Events[1])
		}
		require.Len(t, got.Events, 2, "S3: one end")
	}
}
