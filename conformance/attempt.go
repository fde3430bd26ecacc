package conformance

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var attemptCases = []Case{
	{Name: "failed attempts are kept in order, and kept when the step succeeds", Clauses: "S4", run: attemptHistory},
	{Name: "attempts that concurrent calls record have no gap", Clauses: "S3", run: attemptConcurrent},
}

func attemptHistory(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	w := t.run(s, "r")
	var want []store.Event
	next := t.now()
	for n := range 5 {
		next = next.Add(1500*time.Millisecond + time.Microsecond)
		c := w.append(store.Event{
			Type: store.AttemptFailed, Key: "charge", Attempt: int32(n + 1), Ordinal: 1, Took: time.Duration(n) * time.Millisecond,
			Data: fmt.Appendf(nil, `{"error":"declined %d","next":%d}`, n, next),
		})
		c.Row = &store.RowPatch{WakeAt: &next}
		w.must(s, c)
		want = append(want, stored(c)...)
		// Each time by a new process, as after a crash.
		require.NoError(t, s.Close())
		s, err = d.Open()
		require.NoError(t, err)
		got := t.all(s, "r")
		require.Equal(t, want, got.Events[1:], "S4: all failures so far")
		require.Equal(t, next, got.Run.WakeAt, "S4: the time of the next attempt, to the microsecond")
	}
	c := w.append(step("charge"))
	w.must(s, c)
	require.Equal(t, append(want, stored(c)...), t.all(s, "r").Events[1:], "S4: a success keeps what came before")
	require.NoError(t, s.Close())
}

func attemptConcurrent(t *T) {
	s := t.open()
	w := t.run(s, "r")
	turn := make(chan struct{}, 1)
	t.together(6, func(i int) {
		for n := range 5 {
			turn <- struct{}{} // a run has one change in flight
			c := w.append(store.Event{Type: store.AttemptFailed, Key: fmt.Sprintf("items[%d]/charge", i), Attempt: int32(n + 1)})
			if err := one(t.Context(), s, c); err != nil {
				t.Errorf("S3: attempt %d of item %d: %v", n+1, i, err)
			} else {
				w.done(c)
			}
			<-turn
		}
	})
	attempts := make(map[string]int32)
	for _, e := range t.all(s, "r").Events[1:] {
		attempts[e.Key]++
		require.Equal(t, attempts[e.Key], e.Attempt, "S3: attempts of %s in order", e.Key)
	}
	require.Len(t, attempts, 6)
}
