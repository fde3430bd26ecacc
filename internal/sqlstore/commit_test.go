package sqlstore_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

func TestScreenFindsARunThatAppearsTwice(t *testing.T) {
	patch := store.Change{RunID: "a", Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}}
	other := patch
	other.RunID = "b"
	errs, ok := sqlstore.Screen([]store.Change{patch, other, patch}, store.DefaultLimits())
	require.False(t, ok)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], store.ErrInvalid)
	errs, ok = sqlstore.Screen(nil, store.DefaultLimits())
	require.True(t, ok)
	require.Empty(t, errs)
}

func TestBisectLeavesOneMemberToFailAlone(t *testing.T) {
	bad := errors.New("bad member")
	batch := make([]*store.Change, 9)
	for i := range batch {
		batch[i] = &store.Change{RunID: string(rune('a' + i))}
	}
	done := map[string]int{}
	run := func(part []*store.Change) ([]error, error) {
		for _, c := range part {
			if c.RunID == "d" || c.RunID == "i" {
				return nil, bad
			}
		}
		for _, c := range part {
			done[c.RunID]++
		}
		return make([]error, len(part)), nil
	}
	errs := sqlstore.Bisect(batch, run, func(error) bool { return true })
	require.Len(t, errs, len(batch))
	for i, c := range batch {
		if c.RunID == "d" || c.RunID == "i" {
			require.ErrorIs(t, errs[i], bad)
			continue
		}
		require.NoError(t, errs[i])
		require.Equal(t, 1, done[c.RunID])
	}
	errs = sqlstore.Bisect(batch, run, func(error) bool { return false })
	for _, err := range errs {
		require.ErrorIs(t, err, bad)
	}
}

func TestTakeClaim(t *testing.T) {
	last := func(typ store.Type) *store.Event {
		return &store.Event{Seq: 7, Epoch: 5, Type: typ, At: 100, Active: 9, Steps: 3, Sum: 77}
	}
	for name, c := range map[string]struct {
		run     store.Run
		status  store.Status
		typ     store.Type
		strikes int32
		resumes int32
	}{
		"pending":                 {store.Run{Status: store.Pending, Last: last(store.WorkflowCreated)}, store.Running, store.WorkflowStarted, 0, 0},
		"waiting":                 {store.Run{Status: store.Waiting, Strikes: 2, Last: last(store.WaitRequested)}, store.Waiting, store.RunClaimed, 0, 0},
		"interrupted":             {store.Run{Status: store.Interrupted, Strikes: 2, Last: last(store.WorkflowInterrupted)}, store.Resuming, store.RunResumed, 0, 1},
		"died after a checkpoint": {store.Run{Status: store.Running, Strikes: 2, Last: last(store.StepCompleted)}, store.Resuming, store.RunResumed, 1, 1},
		"died after its claim":    {store.Run{Status: store.Resuming, Strikes: 2, Last: last(store.RunResumed)}, store.Resuming, store.RunResumed, 3, 1},
	} {
		r := c.run
		r.ID, r.Epoch, r.Branch, r.Owner = "r", 5, 2, "dead"
		e, sets := sqlstore.TakeClaim(&r, store.Claim{Executor: "x", At: 50, Data: []byte(`{}`)}, 200)
		require.Equal(t, c.status, r.Status, name)
		require.Equal(t, c.strikes, r.Strikes, name)
		require.Equal(t, c.resumes, r.Resumes, name)
		require.Equal(t, "x", r.Owner)
		require.EqualValues(t, 6, r.Epoch)
		require.Equal(t, c.typ, e.Type, name)
		require.EqualValues(t, 8, e.Seq)
		require.EqualValues(t, 6, e.Epoch)
		require.EqualValues(t, 100, e.At, "raised to the event before")
		require.EqualValues(t, 3, e.Steps)
		require.EqualValues(t, 2, e.Branch)
		require.Equal(t, store.Seal("r", 77, e), e.Sum)
		require.Same(t, e, r.Last)
		require.NotEmpty(t, sets)
	}
}
