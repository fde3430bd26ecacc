package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// The ways in which a history is cut. Each leaves behind all that came after one event,
// the outcome of the first step a, before which the step a#2 comes next.
var cuts = map[string]func(t *testing.T, w *world, o durable.Options, behind int64, force bool) error{
	"repair": func(t *testing.T, w *world, o durable.Options, behind int64, force bool) error {
		w.rotting(t, rot{run: "r", event: at(behind+1, bitFlips()["payload"])}, o)
		rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{Force: force})
		if err == nil && rep.Cutoff != behind {
			err = fmt.Errorf("cut behind %d", rep.Cutoff)
		}
		return err
	},
	"jump": func(t *testing.T, w *world, o durable.Options, behind int64, force bool) error {
		w.open(t, o)
		_, err := operate.On(w.eng).Jump(w.ctx(), "r", behind, operate.JumpOptions{Force: force})
		return err
	},
	"resume from a checkpoint": func(t *testing.T, w *world, o durable.Options, behind int64, force bool) error {
		w.open(t, durable.Options{}) // of whoever serves it, it is executed
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: behind, Force: force})
		return err
	},
	"edit": func(t *testing.T, w *world, o durable.Options, behind int64, force bool) error {
		w.open(t, durable.Options{})
		if _, err := operate.On(w.eng).Edit(w.ctx(), "r", "a#2", 1, operate.EditOptions{Force: force}); err != nil {
			return err
		}
		return resume(w.eng, w.ctx(), "r")
	},
}

// cutStructures are what a cut may leave behind, in a state that a crash has left.
var cutStructures = map[string]cutStructure{
	"child with a derived id": {
		begin: startsChild(durable.AutoID), tell: []string{"r/child~b1"}, want: map[string]store.Status{"r/child": store.Cancelled, "r/child~b1": store.Completed},
		tellFork: []string{"r/child", "f/child"},
	},
	"child with a chosen id": {begin: startsChild("kid"), tell: []string{"kid"}, want: map[string]store.Status{"kid": store.Completed}, refusedFork: true},
	"abandoned child":        {begin: startsChild("left", durable.Abandon()), tell: []string{"left"}, want: map[string]store.Status{"left": store.Completed}, refusedFork: true},
	"abandoned child with a derived id": {
		begin: startsChild(durable.AutoID, durable.Abandon()), tell: []string{"r/child", "r/child~b1"},
		want:     map[string]store.Status{"r/child": store.Completed, "r/child~b1": store.Completed},
		tellFork: []string{"r/child", "f/child"},
	},
	"child with a chosen id in an item": {begin: withinItem(startsChild("kid")), tell: []string{"kid"}, want: map[string]store.Status{"kid": store.Completed}, refusedFork: true},
	"child with a derived id in a branch": {
		begin: withinBranch(startsChild(durable.AutoID)), tell: []string{"r/branch/child~b1"},
		want:     map[string]store.Status{"r/branch/child": store.Cancelled, "r/branch/child~b1": store.Completed},
		tellFork: []string{"r/branch/child", "f/branch/child"},
	},
	"timer": {begin: func(ctx context.Context) (string, error) { return "told", durable.Sleep(ctx, time.Hour) }},
	"wait":  {begin: awaits, tell: []string{"r"}, tellFork: []string{"r", "f"}},
	"wait that was answered": {
		begin: awaits, early: []string{"r"}, tellFork: []string{"f"},
	},
	"wait in a branch":                        {begin: withinBranch(awaits), tell: []string{"r"}, tellFork: []string{"r", "f"}},
	"wait in an item":                         {begin: withinItem(awaits), tell: []string{"r"}, tellFork: []string{"r", "f"}},
	"wait in a generation behind another one": {begin: awaits, tell: []string{"r"}, tellFork: []string{"r", "f"}, generations: 2},
	"child in a generation behind another one": {
		begin: startsChild("kid"), tell: []string{"kid"}, want: map[string]store.Status{"kid": store.Completed}, refusedFork: true, generations: 2,
	},
	"compensation": {begin: func(ctx context.Context) (string, error) {
		return "told", durable.Compensate(ctx, "undo", func(context.Context) error { return fmt.Errorf("undone") })
	}},
	"compensation in a branch": {begin: withinBranch(func(ctx context.Context) (string, error) {
		return "told", durable.Compensate(ctx, "undo", func(context.Context) error { return fmt.Errorf("undone") })
	})},
	"attributes": {begin: func(ctx context.Context) (string, error) {
		return "told", durable.SetAttributes(ctx, map[string]string{"phase": "two"})
	}},
	"step announced before it began": {begin: func(ctx context.Context) (string, error) {
		return durable.Step(ctx, "long", func(context.Context) (string, error) { return "told", nil }, durable.LongOperation())
	}, forceRepair: "long"},
	"once": {begin: func(ctx context.Context) (string, error) {
		_, err := durable.Once(ctx, "once", func(context.Context) (int, error) { return 1, nil })
		return "told", err
	}, force: true, forceRepair: "once"},
}

type cutStructure struct {
	begin       func(ctx context.Context) (string, error)
	early       []string                // runs that are sent the signal go before the crash,
	tell        []string                // and behind a cut,
	tellFork    []string                // and behind a fork
	want        map[string]store.Status // of runs other than r, which completes
	refusedFork bool                    // the fork asks for a child that is the source's
	generations int                     // 0: one
	force       bool                    // the cut crosses what must not happen twice
	forceRepair string                  // a repair, whose cut nobody has chosen, crosses this call, which was announced
}

func awaits(ctx context.Context) (string, error) { return durable.Await[string](ctx, "go") }

var cutChild = durable.Define("child", func(ctx context.Context, _ int) (string, error) { return awaits(ctx) })

func startsChild(id string, o ...durable.StartOption) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		kid, err := cutChild.Start(ctx, id, 1, o...)
		if err != nil {
			return "", err
		}
		return kid.Wait(ctx)
	}
}

func withinBranch(f func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return durable.Go(ctx, "branch", f).Wait(ctx) }
}

func withinItem(f func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		list, err := durable.Map(ctx, "items", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (string, error) { return f(ctx) })
		return strings.Join(list, ""), err
	}
}

// crashedBehind leaves a run that a crash has stopped behind what c begins, and returns
// the event behind which it is to be cut.
func (c *cutStructure) crashedBehind(t *testing.T, w *world, h *hold) (wf *durable.Workflow[int, string], o durable.Options, behind int64) {
	wf = durable.Define("w", func(ctx context.Context, more int) (string, error) {
		if more > 1 {
			return "", durable.Continue(ctx, more-1)
		}
		for range 2 {
			if _, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
		}
		// Beside what waits something runs, so that the run can be resumed.
		busy := durable.Go(ctx, "busy", func(ctx context.Context) (int, error) { return 1, durable.Do(ctx, "hold", h.body) })
		out, err := c.begin(ctx)
		if err != nil {
			return "", err
		}
		_, err = busy.Wait(ctx)
		return out, err
	})
	o = with(wf, cutChild)
	w.boot(t, o)
	start(t, w, wf, "r", c.generations)
	synctest.Wait()
	for _, id := range c.early {
		require.NoError(t, w.eng.Signal(w.ctx(), id, "go", "told"))
	}
	synctest.Wait()
	w.crash()
	w.expire()
	for _, ev := range w.whole("r") {
		if ev.Type == store.StepCompleted && ev.Key == "a" {
			behind = ev.Seq
		}
	}
	require.NotZero(t, behind)
	return wf, o, behind
}

// What a cut leaves behind ends with it, or goes on for the new branch to find, in the
// same way whichever cut it is.
func TestEveryCutTreatsWhatItLeavesBehindAlike(t *testing.T) {
	for name, c := range cutStructures {
		for how, cut := range cuts {
			t.Run(name+" by "+how, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var h hold
					wf, o, behind := c.crashedBehind(t, w, &h)
					force := c.force || c.forceRepair != "" && how == "repair"
					if force {
						err := cut(t, w, o, behind, false)
						var crossing *operate.CrossingError
						require.True(t, errors.Is(err, operate.ErrUnrepairable) || errors.As(err, &crossing), "%v", err)
						require.ErrorContains(t, err, c.forceRepair)
						w.crash()
						w.expire()
					}
					require.NoError(t, cut(t, w, o, behind, force))
					w.crash()
					w.expire()
					w.boot(t, o)
					synctest.Wait()
					for _, id := range c.tell {
						require.NoError(t, w.eng.Signal(w.ctx(), id, "go", "told"))
					}
					pass(2 * time.Hour)
					out, err := wait(t, w, wf, "r")
					require.NoError(t, err)
					require.Equal(t, "told", out)
					for id, status := range c.want {
						require.Equal(t, status, w.row(id).Status, id)
					}
					w.allSound(t)
				})
			})
		}
	}
}

// allSound requires that Verify finds nothing in any run.
func (w *world) allSound(t *testing.T) {
	t.Helper()
	for v, err := range operate.On(w.eng).VerifyAll(w.ctx(), store.Filter{}) {
		require.NoError(t, err)
		require.True(t, v.Sound(), "%+v", v)
	}
}

// A fork cuts a copy: the source and its children are as they would have been without
// it, and the fork begins anew what it does not have.
func TestAForkCutsACopyAndLeavesTheSourceAlone(t *testing.T) {
	for name, c := range cutStructures {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				wf, o, behind := c.crashedBehind(t, w, &h)
				h.mu.Lock()
				h.open = true
				h.mu.Unlock()
				w.open(t, durable.Options{})
				source := w.whole("r")
				_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", At: behind})
				require.NoError(t, err, "a fork runs nothing twice: it is another run")
				require.Equal(t, source, w.whole("r"))
				w.crash()
				w.expire()
				w.boot(t, o)
				synctest.Wait()
				tell := c.tellFork
				if c.refusedFork {
					tell = c.tell
				}
				for _, id := range tell {
					require.NoError(t, w.eng.Signal(w.ctx(), id, "go", "told"))
				}
				pass(2 * time.Hour)
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "told", out)
				out, err = wait(t, w, wf, "f")
				if c.refusedFork {
					require.ErrorContains(t, err, "exists already")
				} else {
					require.NoError(t, err)
					require.Equal(t, "told", out)
				}
				w.allSound(t)
			})
		})
	}
}

// Attributes that were set behind a cut are left behind with it.
func TestEveryCutTakesBackTheAttributesThatWereSetBehindIt(t *testing.T) {
	for how, cut := range cuts {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				c := cutStructures["attributes"]
				_, _, behind := c.crashedBehind(t, w, &h)
				require.Equal(t, map[string]string{"phase": "two"}, w.row("r").Attributes)
				require.NoError(t, cut(t, w, durable.Options{}, behind, false)) // without its code nothing sets them again
				require.Empty(t, w.row("r").Attributes)
				v := verify(t, w, "r")
				require.True(t, v.Sound(), "%+v", v)
			})
		})
	}
}
