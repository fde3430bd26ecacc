package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// An engine in which Recover was not called is that of a command: it has the code, and
// takes up nothing that it is not told to.

func TestAnEngineThatTakesUpNothingHidesNoStuckRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ask := askingOne()
		busy, _ := holding("busy")
		w.boot(t, with(ask, busy))
		_, err := ask.Start(w.ctx(), "waits", 0)
		require.NoError(t, err)
		start(t, w, busy, "runs", 1)
		w.eventually("waits", store.Waiting)
		w.crash()
		w.expire()
		pass(time.Minute)

		stuck := func() map[string]string {
			found, err := operate.On(w.eng).Stuck(w.ctx(), 0)
			require.NoError(t, err)
			reasons := map[string]string{}
			for _, s := range found {
				require.NotContains(t, s.Next, "serves workflow", "its code is here: %s", s.Next)
				reasons[s.RunID] = s.Reason
			}
			return reasons
		}
		w.open(t, with(ask, busy))
		reasons := stuck()
		require.Contains(t, reasons["waits"], "nobody alive takes up runs of workflow ask")
		require.Contains(t, reasons["runs"], "its process is gone")

		_, err = durable.Ref[int, int]("busy").Start(w.ctx(), "mine", 1)
		require.NoError(t, err)
		pass(time.Minute)
		require.NotContains(t, stuck(), "mine", "it executes what it has started itself")

		_, err = w.eng.Recover(w.ctx())
		require.NoError(t, err)
		pass(time.Minute)
		require.Empty(t, stuck())
	})
}

func TestAnAdoptedRunTakesItsChildrenWithIt(t *testing.T) {
	for name, dies := range map[string]func(ctx context.Context, h *hold) (int, error){
		"waiting": func(ctx context.Context, _ *hold) (int, error) {
			return 1, durable.Sleep(ctx, time.Hour)
		},
		"running": func(ctx context.Context, h *hold) (int, error) {
			return 1, durable.Do(ctx, "work", h.body)
		},
	} {
		t.Run("the child was "+name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				h := &hold{}
				child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return dies(ctx, h) })
				parent := durable.Define("parent", func(ctx context.Context, in int) (int, error) {
					return child.Run(ctx, durable.AutoID, in)
				})
				w.boot(t, with(parent, child))
				start(t, w, parent, "p", 1)
				synctest.Wait()
				w.crash()
				w.expire()

				w.open(t, with(parent, child)) // no Recover
				require.NoError(t, w.eng.Adopt(w.ctx(), "p"))
				pass(2 * time.Hour)
				require.Equal(t, store.Completed, w.row("p").Status)
				require.Equal(t, store.Completed, w.row("p/child").Status)
			})
		})
	}
}

func TestAChildThatIsTakenUpWithItsParentBeginsNoEarlierThanItMay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		child := durable.Define("child", func(context.Context, int) (int, error) { return 1, nil })
		parent := durable.Define("parent", func(ctx context.Context, in int) (int, error) {
			return child.Run(ctx, durable.AutoID, in, durable.Delay(time.Hour))
		})
		w.boot(t, with(parent, child))
		start(t, w, parent, "p", 1)
		synctest.Wait()
		w.crash()
		w.expire()

		w.open(t, with(parent, child)) // no Recover
		require.NoError(t, w.eng.Adopt(w.ctx(), "p"))
		pass(30 * time.Minute)
		require.Equal(t, store.Pending, w.row("p/child").Status)
		pass(time.Hour)
		require.Equal(t, store.Completed, w.row("p").Status)
		row := w.row("p/child")
		require.GreaterOrEqual(t, row.StartedAt.Sub(row.CreatedAt), time.Hour)
	})
}

func TestRecoverDoesNotSayOfADamagedRunThatItWasResumed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		w.boot(t, with(wf))
		for _, id := range []string{"sound", "damaged"} {
			start(t, w, wf, id, 1)
		}
		synctest.Wait()
		w.crash()
		w.expire()

		w.rotting(t, rot{run: "damaged", event: at(1, func(e *store.Event) { flip(&e.Data, 1) })}, with(wf))
		rep, err := w.eng.Recover(w.ctx())
		require.NoError(t, err)
		require.Equal(t, []string{"sound"}, rep.Resumed)
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, "damaged", rep.Stuck[0].RunID)
		require.Equal(t, durable.CodeDamaged, rep.Stuck[0].Code)
		require.Contains(t, rep.Stuck[0].Next, "operate.On(engine).Repair")
		w.eventually("sound", store.Completed)
		require.Equal(t, durable.CodeDamaged, w.row("damaged").Code)
	})
}
