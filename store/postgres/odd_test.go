package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// A text that no column can hold names nothing, as anything else does that is
// not there: it fails no call that is about other runs, too.
func TestWhatNoColumnCanHoldNamesNothing(t *testing.T) {
	s := fresh(t)
	beat(t, s, executor("me", time.Minute))
	for _, odd := range []string{"\x00", "a\x00b", "\xff", "\xed\xa0\x80"} {
		commit(t, s, (&runLog{id: "claimed"}).create(""), (&runLog{id: "deleted"}).create(""))
		_, err := s.Load(t.Context(), odd, store.Cursor{})
		require.ErrorIs(t, err, store.ErrNotFound, "%q", odd)
		for _, c := range []store.Claim{
			{IDs: []string{odd, "claimed"}, Serves: serves},
			{Queues: []store.QueueRoom{{Queue: odd, Max: 1}}, Serves: append([]store.Served{{Workflow: odd, Versions: []string{odd}}}, serves...)},
		} {
			c.Executor, c.Max = "me", 1
			runs, err := s.Claim(t.Context(), c)
			require.NoError(t, err, "%q", odd)
			require.Len(t, runs, 1, "%q", odd)
		}
		for _, f := range []store.Filter{
			{IDs: []string{odd}}, {IDPrefix: odd}, {Owners: []string{odd}}, {Workflows: []string{odd}}, {Attributes: map[string]string{odd: "x"}},
			{Attributes: map[string]string{"x": odd}}, {Parents: []string{odd}}, {Statuses: []store.Status{store.Status(odd)}},
		} {
			page, err := s.List(t.Context(), f)
			require.NoError(t, err, "%q %+v", odd, f)
			require.Empty(t, page.Runs)
			n, err := s.Count(t.Context(), f, "")
			require.NoError(t, err, "%q %+v", odd, f)
			require.Equal(t, map[string]int64{"": 0}, n)
			_, err = s.Count(t.Context(), f, store.ByStatus)
			require.NoError(t, err, "%q %+v", odd, f)
		}
		e := executor("odd", time.Minute)
		e.Serves = []store.Served{{Workflow: odd, Versions: []string{odd}}}
		beat(t, s, e)
		e.Leaving = true
		beat(t, s, e)
		leaves := executor("me", time.Minute)
		leaves.Leaving = true
		beat(t, s, leaves)
		n, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{odd, "claimed", "deleted"}, Force: true})
		require.NoError(t, err, "%q", odd)
		require.Equal(t, 2, n)
		beat(t, s, executor("me", time.Minute))
	}
}
