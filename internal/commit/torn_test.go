package commit_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/store"
)

// What was handed to Stash has returned to its caller as if it were recorded. If the store refuses
// it, nothing may be recorded in its place but that the run was given up.
func TestNothingFollowsAStashedEventThatTheStoreRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		o := newOffice(s)
		defer o.end()
		own := &owner{}
		lg := o.NewLog("r", own, o.clock)
		lg.Create(&store.Run{ID: "r", Epoch: 1})
		require.NoError(t, o.Commit(t.Context(), &lg, write("before", small)))
		lg.Stash(store.Event{Type: bad, Key: "stashed"})

		require.ErrorIs(t, o.Commit(t.Context(), &lg, write("with it", small)), errRefused)
		require.ErrorContains(t, own.torn, "stashed")
		require.ErrorIs(t, own.torn, errRefused)
		lg.Stash(store.Event{Type: store.StepCompleted, Key: "stashed later"})
		require.ErrorIs(t, o.Commit(t.Context(), &lg, write("after it", small)), errRefused)
		_, err := o.Hold(t.Context(), &lg)
		require.ErrorIs(t, err, errRefused, "no transaction either")
		end := write("end", small)
		completed := store.Completed
		end.Row, end.Yield = &store.RowPatch{Status: &completed}, true
		require.ErrorIs(t, o.Commit(t.Context(), &lg, end), errRefused)
		require.NoError(t, o.Commit(t.Context(), &lg, interruption()))
		require.Equal(t, []string{"before", "interrupted"}, s.keys("r"))
		require.NoError(t, s.broken)
	})
}

// The interruption may be the write that the stashed events go with.
func TestAnInterruptionIsRecordedThoughWhatIsStashedIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		o := newOffice(s)
		defer o.end()
		lg := o.run("r")
		require.NoError(t, o.Commit(t.Context(), lg, write("before", small)))
		lg.Stash(store.Event{Type: bad, Key: "stashed"})
		require.NoError(t, o.Commit(t.Context(), lg, interruption()))
		require.Equal(t, []string{"before", "interrupted"}, s.keys("r"))
		require.NoError(t, s.broken)
	})
}

func interruption() *commit.Write {
	w, interrupted := write("interrupted", small), store.Interrupted
	w.Row, w.Yield, w.Alone = &store.RowPatch{Status: &interrupted}, true, true
	return w
}
