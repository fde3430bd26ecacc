package durable_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// mapped is a Map of three items of two steps each, and a step behind it that
// does not come to its end before h is opened.
func mapped(j *journal, h *hold) *durable.Workflow[int, []int] {
	return durable.Define("w", func(ctx context.Context, _ int) ([]int, error) {
		out, err := durable.Map(ctx, "items", []int{10, 11, 12}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, n int) (int, error) {
			for _, name := range []string{"a", "b"} {
				if err := durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		if err != nil {
			return nil, err
		}
		return out, durable.Do(ctx, "hold", h.body)
	})
}

// backInItem leaves a run whose item 1 was taken back to its first step, after
// its Map had come to its end, and that nobody executes.
func backInItem(t *testing.T, w *world, j *journal) *durable.Workflow[int, []int] {
	t.Helper()
	var h hold
	wf := mapped(j, &h)
	w.serve(t, wf)
	start(t, w, wf, "r", 0)
	synctest.Wait()
	require.NoError(t, w.eng.Close()) // which writes what has come to its end so far
	require.Contains(t, w.everything("r"), "step_completed items")
	operator := w.open(t, durable.Options{})
	plan, err := operate.On(operator).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "items[1]/a")})
	require.NoError(t, err)
	require.Equal(t, "items[1]", plan.Scope)
	return wf
}

// A repair that cuts before a narrow cut was made, and behind the end of the Map
// which that cut had taken back, takes the Map back as well: the end of its item
// is on no branch that is left.
func TestARepairBeforeANarrowCutTakesBackWhatThatHadTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf := backInItem(t, w, j)
		w.tear("r", to(store.Waiting))
		rec, err := w.eng.RecoverRun(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, durable.CodeA1, rec.Code)
		require.Equal(t, "step_completed items", w.everything("r")[rec.Cutoff-1])
		w.boot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{10, 11, 12}, out)
		require.Equal(t, []int{1, 1, 2, 1}, j.counts("items[0]/b/1", "items[1]/a/1", "items[1]/b/1", "items[2]/b/1"))
	})
}

// Repair, likewise, though the event that says what was taken back is the
// damaged one.
func TestARepairOfADamagedNarrowCutTakesBackWhatThatHadTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf := backInItem(t, w, j)
		last := w.row("r").Last
		require.Equal(t, store.JumpActivated, last.Type)
		w.rotting(t, rot{run: "r", event: at(last.Seq, bitFlips()["data"])}, with(wf))
		rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.NoError(t, err)
		require.NotZero(t, rep.Cutoff)
		_, err = w.eng.Recover(context.Background())
		require.NoError(t, err)
		out, err := finish(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{10, 11, 12}, out)
		require.Equal(t, []int{1, 1, 2, 1}, j.counts("items[0]/b/1", "items[1]/a/1", "items[1]/b/1", "items[2]/b/1"))
	})
}

// A narrow cut leaves holes in the history that are as they should be; an event
// that has strayed to another branch leaves one too, and is found.
func TestAnEventThatStraysFromAHistoryWithANarrowCutIsFound(t *testing.T) {
	for _, stray := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			j := &journal{}
			wf := backInItem(t, w, j)
			lost := int64(0)
			for i, line := range w.everything("r") {
				if line == "item_completed items[0]" {
					lost = int64(i + 1)
				}
			}
			require.NotZero(t, lost)
			damage := rot{run: "nobody"}
			if stray {
				damage = rot{run: "r", event: at(lost, func(e *store.Event) { e.Branch = 7 })}
			}
			w.rotting(t, damage, with(wf))
			_, err := w.eng.Recover(context.Background())
			require.NoError(t, err)
			if stray {
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeDamaged, row.Code)
				require.Contains(t, row.Reason, "its checksum does not fit")
				require.Equal(t, []int{1}, j.counts("items[0]/b/1"))
				return
			}
			out, err := finish(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, []int{10, 11, 12}, out)
		})
	}
}
