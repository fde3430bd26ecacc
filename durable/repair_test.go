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

func TestARepairThatIsKilledHasHappenedOrNot(t *testing.T) {
	for _, after := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			wf := crashed(t, w, &hold{})
			damage := rot{run: "r", event: at(4, bitFlips()["payload"])}
			w.rotting(t, damage, durable.Options{})
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				if after {
					forward()
				}
				return all(batch, store.ErrClosed)
			})
			_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
			require.Error(t, err)
			w.crash()
			w.expire()
			w.rotting(t, damage, with(wf))
			require.Equal(t, after, first(operate.On(w.eng).Verify(context.Background(), "r")).Sound())
			rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
			require.NoError(t, err)
			require.Equal(t, after, len(rep.Did) == 0)
			_, err = w.eng.Recover(context.Background())
			require.NoError(t, err)
			out, err := finish(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, "012", out)
			h, err := w.data.Load(context.Background(), "r", store.Cursor{NoEvents: true})
			require.NoError(t, err)
			require.Len(t, h.Branches, 1)
		})
	}
}

func TestOfTwoRepairsAtOnceOneWins(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		crashed(t, w, &hold{})
		w.rotting(t, rot{run: "r", event: at(4, bitFlips()["payload"])}, durable.Options{})
		once := true
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if once {
				once = false
				time.Sleep(time.Second)
				_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
				require.NoError(t, err)
			}
			return forward()
		})
		_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.ErrorIs(t, err, store.ErrFenced)
		h, err := w.data.Load(context.Background(), "r", store.Cursor{NoEvents: true})
		require.NoError(t, err)
		require.Len(t, h.Branches, 1)
	})
}

// A run of every structure: a generation behind it, items, a child, a signal.
func TestDamageAnywhereInALargerRunIsRepaired(t *testing.T) {
	child := quick("child")
	build := func(h *hold) *durable.Workflow[int, string] {
		return durable.Define("large", func(ctx context.Context, n int) (string, error) {
			if n > 0 {
				return "", durable.Continue(ctx, n-1)
			}
			items, err := durable.Map(ctx, "items", []int{1, 2, 3}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, i int) (int, error) { return i * i, nil })
			if err != nil {
				return "", err
			}
			c, err := child.Run(ctx, durable.AutoID, 5)
			if err != nil {
				return "", err
			}
			s, err := durable.Await[string](ctx, "go")
			if err != nil {
				return "", err
			}
			return fmt.Sprint(items, c, s), durable.Do(ctx, "last", h.body)
		})
	}
	prepare := func(t *testing.T, w *world) (*durable.Workflow[int, string], int64) {
		wf := build(&hold{})
		w.boot(t, with(wf, child))
		start(t, w, wf, "r", 1)
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "!"))
		synctest.Wait()
		n := w.row("r")
		require.Equal(t, store.Running, n.Status)
		events := w.whole("r")
		w.crash()
		w.expire()
		return wf, int64(len(events))
	}
	var n int64
	inWorld(t, func(t *testing.T, w *world) { _, n = prepare(t, w) })
	repaired, hopeless := 0, 0
	for seq := int64(1); seq <= n; seq++ {
		for _, name := range []string{"payload", "data", "key", "branch", "sum", "type"} {
			inWorld(t, func(t *testing.T, w *world) {
				wf, there := prepare(t, w)
				if seq > there {
					return // the last one rides with what was not written here yet
				}
				w.rotting(t, rot{run: "r", event: at(seq, bitFlips()[name])}, with(wf, child))
				v := verify(t, w, "r")
				require.NotEmpty(t, v.Findings, "%s of %d", name, seq)
				_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{Force: true})
				var no *operate.UnrepairableError
				if errors.As(err, &no) {
					hopeless++
					require.Equal(t, int64(4), seq, "only where the generation begins: %v", err)
					return
				}
				require.NoError(t, err)
				repaired++
				_, err = w.eng.Recover(context.Background())
				require.NoError(t, err)
				out, err := finish(t, w, wf, "r")
				require.NoError(t, err, "%s of %d: %s", name, seq, w.log)
				require.Equal(t, "[1 4 9] 5!", out)
				v = verify(t, w, "r")
				require.True(t, v.Sound(), "%s of %d: %v", name, seq, v.Findings)
			})
		}
	}
	t.Logf("%d events, %d damages repaired, %d hopeless", n, repaired, hopeless)
}

func TestAChildThatARepairForgetsIsCancelled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hold{}
		child := durable.Define("child", func(ctx context.Context, in int) (string, error) {
			return durable.Await[string](ctx, "never")
		})
		wf := durable.Define("parent", func(ctx context.Context, in int) (string, error) {
			for range 2 {
				if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
					return "", err
				}
			}
			if _, err := child.Start(ctx, durable.AutoID, 1); err != nil {
				return "", err
			}
			return "done", durable.Do(ctx, "last", h.body)
		})
		w.boot(t, with(wf, child))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		w.rotting(t, rot{run: "r", event: at(4, bitFlips()["payload"])}, with(wf, child))
		_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.NoError(t, err)
		_, err = w.eng.Recover(context.Background())
		require.NoError(t, err)
		w.eventually("r/child", store.Cancelled)
		out, err := finish(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "done", out)
		require.NotEmpty(t, w.row("r/child~b1").ID, "another one was started in its place")
	})
}
