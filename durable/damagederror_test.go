package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// The version in a row decides which code goes on with a run. A resume follows the
// history with that code before it writes anything, and must say of a row that was
// changed what an execution would say.
func TestAResumeOfARunWhoseVersionWasChangedSaysThatItIsDamaged(t *testing.T) {
	for name, o := range map[string]operate.ResumeOptions{"dry": {DryRun: true}, "for good": {}, "forced": {Force: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := newRowProgram()
				rowStates()["failed"](t, w, p)
				before := w.row("r")
				w.rotting(t, rot{run: "r", row: func(r *store.Run) { r.Version = "1x" }}, with(p.defs...))
				_, err := operate.On(w.eng).Resume(w.ctx(), "r", o)
				var damaged *durable.DamagedError
				require.ErrorAs(t, err, &damaged)
				require.Equal(t, "r", damaged.RunID)
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.ErrorContains(t, err, "run r is damaged: its row was changed: its version")
				require.Equal(t, before.Epoch, w.row("r").Epoch, "nothing was changed")
			})
		})
	}
}

// Nothing can be made of a run whose row the store cannot read. Repair says so, as
// Verify does.
func TestRepairOfARunWhoseRowCannotBeReadSaysThatTheStoreIsToBeMended(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
		st := &damagedDisk{Store: w.data.Handle()}
		eng := openOn(t, w, st, wf)
		_, err := wf.Start(durable.NewContext(context.Background(), eng), "r", 0)
		require.NoError(t, err)
		for _, what := range []*atomic.Bool{&st.rows, &st.events} {
			what.Store(true)
			v, err := operate.On(eng).Verify(context.Background(), "r")
			require.NoError(t, err)
			require.True(t, v.Corrupt())
			for _, o := range []operate.RepairOptions{{DryRun: true}, {}, {Force: true}} {
				rep, err := operate.On(eng).Repair(context.Background(), "r", o)
				var no *operate.UnrepairableError
				require.ErrorAs(t, err, &no)
				require.ErrorIs(t, err, operate.ErrUnrepairable)
				require.Contains(t, no.Reason, "the store cannot read it")
				require.Equal(t, v, rep.Before)
			}
			what.Store(false)
		}
	})
}
