package operate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// loading counts loads, and deletes a run before one of them.
type loading struct {
	*memory.Store
	alone, sets int
	before      func()
}

func (s *loading) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	s.alone++
	return s.Store.Load(ctx, id, c)
}

func (s *loading) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	s.sets++
	if s.before != nil {
		s.before()
	}
	return s.Store.LoadAll(ctx, loads)
}

func TestVerifyAllLoadsRunsInSets(t *testing.T) {
	ctx, st := context.Background(), &loading{Store: memory.Open()}
	_, op := operator(t, st)
	l := line{t: t, st: st.Store}
	var want []string
	for range 120 {
		want = append([]string{l.run(store.Completed, "q", "", "mail")}, want...) // the newest comes first
	}
	verified := func(most int) (got []string) {
		st.alone, st.sets = 0, 0
		for v, err := range op.VerifyAll(ctx, store.Filter{}) {
			require.NoError(t, err)
			require.Equal(t, 1, v.Events)
			if got = append(got, v.RunID); len(got) == most {
				break
			}
		}
		require.Zero(t, st.alone)
		return got
	}
	require.Equal(t, want, verified(0))
	require.Equal(t, 3, st.sets)
	require.Equal(t, want[:60], verified(60))
	require.Equal(t, 2, st.sets, "what nobody asks for is not read")

	st.before = func() {
		st.before = nil
		n, err := st.Store.Delete(ctx, store.Deletion{RunIDs: want[10:12]})
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	require.Equal(t, slices.Concat(want[:10], want[12:]), verified(0), "what was deleted meanwhile is left out")
}
