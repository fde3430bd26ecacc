package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestStatusesAreAllDeclared(t *testing.T) {
	require.Len(t, store.Statuses(), 8)
	terminal := map[store.Status]bool{store.Completed: true, store.Failed: true, store.Cancelled: true}
	for _, s := range store.Statuses() {
		require.True(t, s.Valid())
		require.Equal(t, terminal[s], s.Terminal(), "%s", s)
	}
	for _, s := range []store.Status{"", "done", "Pending"} {
		require.False(t, s.Valid())
		require.False(t, s.Terminal())
	}
}

// The whole table, so that a change of it is a change of this test.
func TestMayFollow(t *testing.T) {
	// In the order of Statuses: pending, running, resuming, waiting,
	// interrupted, completed, failed, cancelled.
	table := map[store.Status]string{
		store.Pending:     "xx..x.xx",
		store.Running:     ".xxxxxxx",
		store.Resuming:    ".xxxxxxx",
		store.Waiting:     ".xxxxxxx",
		store.Interrupted: ".xxxx.xx",
		store.Completed:   "........",
		store.Failed:      ".xx.x...",
		store.Cancelled:   "....x...",
	}
	for _, from := range store.Statuses() {
		got := ""
		for _, to := range store.Statuses() {
			if store.MayFollow(from, to) {
				got += "x"
			} else {
				got += "."
			}
		}
		require.Equal(t, table[from], got, "from %s", from)
		require.False(t, store.MayFollow(from, "done"))
		require.False(t, store.MayFollow("done", from))
	}
	require.False(t, store.MayFollow("done", "done"), "an unknown status is no status to stay in")
}

func TestEventTypes(t *testing.T) {
	claims := []store.Type{store.WorkflowStarted, store.RunResumed, store.RunClaimed}
	stable := []store.Type{store.StepCompleted, store.ChildFinished, store.ItemCompleted, store.SignalReceived}
	for _, e := range claims {
		require.True(t, e.Claims())
		require.False(t, e.Stable())
	}
	for _, e := range stable {
		require.True(t, e.Stable())
		require.False(t, e.Claims())
	}
	for _, e := range []store.Type{store.WorkflowCreated, store.StepStarted, store.WaitRequested, store.ProgressSaved, store.AttemptFailed, "", "unknown"} {
		require.False(t, e.Claims(), "%s", e)
		require.False(t, e.Stable(), "%s", e)
	}
}
