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
	"github.com/holdfast-dev/holdfast/store"
)

// The ways in which a history is cut. Each leaves behind all that came after event 3,
// the outcome of step a.
var cuts = map[string]func(t *testing.T, w *world, o durable.Options, force bool) error{
	"repair": func(t *testing.T, w *world, o durable.Options, force bool) error {
		w.rotting(t, rot{run: "r", event: at(4, bitFlips()["payload"])}, o)
		_, err := w.eng.Repair(context.Background(), "r", durable.RepairOptions{Force: force})
		return err
	},
	"jump": func(t *testing.T, w *world, o durable.Options, force bool) error {
		w.open(t, o)
		_, err := w.eng.Jump(w.ctx(), "r", 3, durable.JumpOptions{Force: force})
		return err
	},
	"resume from a checkpoint": func(t *testing.T, w *world, o durable.Options, force bool) error {
		w.open(t, durable.Options{}) // of whoever serves it, it is executed
		_, err := w.eng.Resume(w.ctx(), "r", durable.ResumeOptions{FromCheckpoint: 3, Force: force})
		return err
	},
	"edit": func(t *testing.T, w *world, o durable.Options, force bool) error {
		w.open(t, durable.Options{})
		if _, err := w.eng.Edit(w.ctx(), "r", "a#2", 1, durable.EditOptions{Force: force}); err != nil {
			return err
		}
		return resume(w.eng, w.ctx(), "r")
	},
}

// What a cut leaves behind ends with it, or goes on for the new branch to find, in the
// same way whichever cut it is.
func TestEveryCutTreatsWhatItLeavesBehindAlike(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "go") })
	startChild := func(id string, o ...durable.StartOption) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			kid, err := child.Start(ctx, id, 1, o...)
			if err != nil {
				return "", err
			}
			return kid.Wait(ctx)
		}
	}
	ended := map[string]store.Status{"r": store.Completed}
	with1 := func(id string, s store.Status) map[string]store.Status {
		return map[string]store.Status{"r": store.Completed, id: s}
	}
	for name, c := range map[string]struct {
		begin func(ctx context.Context) (string, error)
		tell  []string // runs that are sent the signal go
		want  map[string]store.Status
		force bool
	}{
		"child with a derived id": {begin: startChild(durable.AutoID), tell: []string{"r/child~b1"}, want: map[string]store.Status{"r": store.Completed, "r/child": store.Cancelled, "r/child~b1": store.Completed}},
		"child with a chosen id":  {begin: startChild("kid"), tell: []string{"kid"}, want: with1("kid", store.Completed)},
		"abandoned child":         {begin: startChild("left", durable.Abandon()), tell: []string{"left"}, want: with1("left", store.Completed)},
		"timer": {begin: func(ctx context.Context) (string, error) {
			return "told", durable.Sleep(ctx, time.Hour)
		}, want: ended},
		"wait": {begin: func(ctx context.Context) (string, error) {
			return durable.Await[string](ctx, "go")
		}, tell: []string{"r"}, want: ended},
		"branch": {begin: func(ctx context.Context) (string, error) {
			return durable.Go(ctx, "branch", func(ctx context.Context) (string, error) { return durable.Await[string](ctx, "go") }).Wait(ctx)
		}, tell: []string{"r"}, want: ended},
		"item": {begin: func(ctx context.Context) (string, error) {
			list, err := durable.Map(ctx, "items", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "go") })
			return strings.Join(list, ""), err
		}, tell: []string{"r"}, want: ended},
		"compensation": {begin: func(ctx context.Context) (string, error) {
			if err := durable.Compensate(ctx, "undo", func(context.Context) error { return fmt.Errorf("undone") }); err != nil {
				return "", err
			}
			return "told", nil
		}, want: ended},
		"once": {begin: func(ctx context.Context) (string, error) {
			if _, err := durable.Once(ctx, "once", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			return "told", nil
		}, want: ended, force: true},
	} {
		for how, cut := range cuts {
			t.Run(name+" by "+how, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var h hold
					wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
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
					o := with(wf, child)
					w.boot(t, o)
					start(t, w, wf, "r", 0)
					synctest.Wait()
					w.crash()
					w.expire()
					if c.force {
						err := cut(t, w, o, false)
						var crossing *durable.CrossingError
						require.True(t, errors.Is(err, durable.ErrUnrepairable) || errors.As(err, &crossing), "%v", err)
						require.ErrorContains(t, err, "once")
						w.crash()
						w.expire()
					}
					require.NoError(t, cut(t, w, o, c.force))
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
				})
			})
		}
	}
}
