package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// seqOfType returns the number of the last event of this type, in the whole log.
func seqOfType(t *testing.T, w *world, id string, is store.Type) (seq int64) {
	t.Helper()
	for _, ev := range w.whole(id) {
		if ev.Type == is {
			seq = ev.Seq
		}
	}
	require.NotZero(t, seq)
	return seq
}

// A child whose start is what is damaged is ended all the same: the new branch starts
// another one in its place, and the two would do everything twice.
func TestARepairEndsAChildWhoseStartIsDamaged(t *testing.T) {
	for name, damage := range bitFlips() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				c := cutStructures["child with a derived id"]
				wf, o, _ := c.crashedBehind(t, w, &h)
				w.rotting(t, rot{run: "r", event: at(seqOfType(t, w, "r", store.ChildStarted), damage)}, o)
				_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
				require.NoError(t, err)
				w.crash()
				w.expire()
				w.boot(t, o)
				synctest.Wait()
				require.Equal(t, store.Cancelled, w.row("r/child").Status)
				require.NoError(t, w.eng.Signal(w.ctx(), "r/child~b1", "go", "told"))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "told", out)
			})
		})
	}
}

// Children of others, with ids that begin like the run's, and its own with chosen ids are no
// business of a repair.
func TestARepairEndsNoChildThatIsNotItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		c := cutStructure{begin: func(ctx context.Context) (string, error) {
			if _, err := cutChild.Start(ctx, "r/other", 1); err != nil {
				return "", err
			}
			return startsChild(durable.AutoID)(ctx)
		}}
		_, o, _ := c.crashedBehind(t, w, &h)
		w.open(t, o)
		_, err := cutChild.Start(w.ctx(), "r/child#2~b7", 1)
		require.NoError(t, err)
		w.crash()
		w.expire()
		w.rotting(t, rot{run: "r", event: at(seqOfType(t, w, "r", store.ChildStarted), bitFlips()["type"])}, o)
		_, err = operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.NoError(t, err)
		w.crash()
		w.expire()
		w.boot(t, o)
		synctest.Wait()
		require.Equal(t, store.Cancelled, w.row("r/child#2").Status)
		require.Equal(t, store.Waiting, w.row("r/other").Status)
		require.Equal(t, store.Waiting, w.row("r/child#2~b7").Status)
	})
}

// The beginning of a body that must run at most once is known as such whatever of the
// event was changed: only Force runs it again.
func TestARepairRunsNoBodyTwiceWhoseBeginningIsDamaged(t *testing.T) {
	for name, damage := range bitFlips() {
		if name == "key" {
			continue // which call it was is not known any more
		}
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				began := 0
				c := cutStructure{begin: func(ctx context.Context) (string, error) {
					_, err := durable.Once(ctx, "once", func(ctx context.Context) (int, error) { began++; return 1, h.body(ctx) })
					return "told", err
				}}
				_, o, _ := c.crashedBehind(t, w, &hold{open: true})
				require.Equal(t, 1, began)
				seq := int64(0)
				for _, ev := range w.whole("r") {
					if ev.Type == store.StepStarted && ev.Key == "once" {
						seq = ev.Seq
					}
				}
				w.rotting(t, rot{run: "r", event: at(seq, damage)}, o)
				_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
				var no *operate.UnrepairableError
				require.ErrorAs(t, err, &no)
				require.True(t, no.Forceable)
				require.ErrorContains(t, err, "once")
				_, err = operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{Force: true})
				require.NoError(t, err)
			})
		})
	}
}

// An operator who has forced a run past a change of its code has done so for what comes
// before the damage, too.
func TestARepairKeepsTheForceOfAnOperator(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hold{}
		build := func(names ...string) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				for _, name := range names {
					if err := durable.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
						return "", err
					}
				}
				return "done", durable.Do(ctx, "hold", h.body)
			})
		}
		wf := build("a", "b")
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.crash()
		w.expire()
		changed := build("b", "a")
		w.boot(t, with(changed))
		require.Equal(t, durable.CodeDefinitionChanged, w.eventually("r", store.Interrupted).Code)
		h.runs = nil
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		synctest.Wait()
		w.crash()
		w.expire()
		seq := int64(0)
		for _, ev := range w.whole("r") {
			if ev.Type == store.StepCompleted && ev.Key == "b" {
				seq = ev.Seq
			}
		}
		w.rotting(t, rot{run: "r", event: at(seq+1, bitFlips()["at"])}, with(changed))
		rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.NoError(t, err)
		require.Equal(t, seq, rep.Cutoff)
		w.crash()
		w.expire()
		w.boot(t, with(changed))
		pass(time.Minute)
		row := w.row("r")
		require.Equal(t, store.Completed, row.Status, row.Reason)
	})
}

// A child that was cancelled because of damage is told in Repaired.Did, so that a person
// can look at what it had done.
func TestARepairSaysWhichChildItEndsOnSuspicion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		c := cutStructures["child with a derived id"]
		_, o, _ := c.crashedBehind(t, w, &h)
		w.rotting(t, rot{run: "r", event: at(seqOfType(t, w, "r", store.ChildStarted), bitFlips()["type"])}, o)
		for _, dry := range []bool{true, false} {
			rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{DryRun: dry})
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(rep.Did), "r/child")
			require.False(t, errors.Is(err, operate.ErrUnrepairable))
		}
	})
}
