package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestBranchesRunAtOnceAndKeepTheirKeysAcrossCrashes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var bodies atomic.Int32
		wf := durable.Define("fan", func(ctx context.Context, n int) (int, error) {
			var fs []*durable.Future[int]
			for i := range n {
				fs = append(fs, durable.Go(ctx, "part", func(ctx context.Context) (int, error) {
					if err := durable.Sleep(ctx, time.Duration(i+1)*time.Hour); err != nil {
						return 0, err
					}
					return durable.Step(ctx, "work", func(context.Context) (int, error) { bodies.Add(1); return i * i, nil })
				}))
			}
			sum := 0
			for _, f := range fs {
				v, err := f.Wait(ctx)
				if err != nil {
					return 0, err
				}
				sum += v
			}
			return sum, nil
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		began := time.Now()
		_, err := wf.Start(w.ctx(), "r", 6)
		require.NoError(t, err)
		row := w.eventually("r", store.Waiting)
		require.Equal(t, began.Add(time.Hour).UnixMicro(), int64(row.WakeAt), "the row wakes with the first of them")
		for range 4 {
			time.Sleep(70 * time.Minute)
			w.reboot(t, o)
		}
		h, _ := wf.Handle(w.ctx(), "r")
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Less(t, time.Since(began), 6*time.Hour+10*time.Minute, "they slept at the same time")
		require.Equal(t, 0+1+4+9+16+25, out)
		require.EqualValues(t, 6, bodies.Load())
		require.Contains(t, w.story("r"), "step_completed part#3/work")
		require.Contains(t, w.story("r"), "step_completed part#3")
	})
}

func TestARunWaitsOnlyWhileAllItsBranchesDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		wf := durable.Define("two", func(ctx context.Context, _ int) (int, error) {
			a := durable.Go(ctx, "sleeper", func(ctx context.Context) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
			b := durable.Go(ctx, "worker", func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "busy", func(context.Context) (int, error) { <-gate; return 2, nil })
			})
			x, err := a.Wait(ctx)
			if err != nil {
				return 0, err
			}
			y, err := b.Wait(ctx)
			return x + y, err
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, store.Running, w.row("r").Status, "one of its branches works")
		close(gate)
		synctest.Wait()
		require.Equal(t, store.Waiting, w.row("r").Status, "the last one that worked has ended")
		time.Sleep(time.Hour)
		w.eventually("r", store.Completed)
	})
}

func TestTheWinnerOfFirstIsRecordedAndTheLosersDoNotHoldTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("race", func(ctx context.Context, _ int) (string, error) {
			sleeper := func(d time.Duration, v string) func(context.Context) (string, error) {
				return func(ctx context.Context) (string, error) { return v, durable.Sleep(ctx, d) }
			}
			slow := durable.Go(ctx, "slow", sleeper(1000*time.Hour, "slow"))
			fast := durable.Go(ctx, "fast", sleeper(time.Hour, "fast"))
			slower := durable.Go(ctx, "slower", sleeper(2000*time.Hour, "slower"))
			i, v, err := durable.First(ctx, "winner", slow, fast, slower) // the winner has a neighbour on each side
			if err != nil {
				return "", err
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			return fmt.Sprint(i, v), nil
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		began := time.Now()
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		time.Sleep(90 * time.Minute)
		w.reboot(t, o)
		h, _ := wf.Handle(w.ctx(), "r")
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "1fast", out)
		require.Less(t, time.Since(began), 3*time.Hour)
	})
}

func TestABranchThatFailsPanicsOrIsNilIsAnErrorOfItsFuture(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("bad", func(ctx context.Context, _ int) (string, error) {
			g := durable.NewGroup(ctx)
			g.Go("fails", func(context.Context) error { return errors.New("no") })
			g.Go("panics", func(context.Context) error { panic("boom") })
			g.Go("fine", func(context.Context) error { return nil })
			err := g.Wait()
			_, boom := durable.Go(ctx, "again", func(context.Context) (int, error) { panic("bang") }).Wait(ctx)
			var p *durable.PanicError
			if !errors.As(boom, &p) {
				return "", fmt.Errorf("no panic: %w", boom)
			}
			_, nilFn := durable.Go[int](ctx, "nil", nil).Wait(ctx)
			return fmt.Sprint(err, "; ", p, "; ", errors.Is(nilFn, durable.ErrInvalid)), nil
		})
		w.serve(t, wf)
		out, err := wf.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, "no; panic: bang; true", out)
	})
}

func TestABranchThatIsNeverWaitedForFailsTheRunByName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ran := false
		wf := durable.Define("forgetful", func(ctx context.Context, _ int) (int, error) {
			durable.Go(ctx, "lost", func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "work", func(context.Context) (int, error) { ran = true; return 1, nil })
			})
			return 1, nil
		})
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorContains(t, err, "nobody has waited for lost")
		require.True(t, ran)
		require.Contains(t, w.story("r"), "step_completed lost/work", "nothing of it is lost")
	})
}

func TestARenamedBranchIsNoticedBeforeAnythingOfItRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		define := func(name string) *durable.Workflow[int, int] {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				return durable.Go(ctx, name, func(ctx context.Context) (int, error) {
					if err := durable.Do(ctx, "one", func(context.Context) error { bodies++; return nil }); err != nil {
						return 0, err
					}
					return 1, durable.Sleep(ctx, time.Hour)
				}).Wait(ctx)
			})
		}
		w.boot(t, durable.Options{Workflows: []durable.Definition{define("left")}})
		_, err := define("left").Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		w.crash()
		time.Sleep(2 * time.Hour)
		w.boot(t, durable.Options{Workflows: []durable.Definition{define("right")}})
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeDefinitionChanged, row.Code)
		require.Contains(t, row.Reason, "right stands where left was recorded")
		require.Equal(t, 1, bodies)
		w.crash()
		w.boot(t, durable.Options{Workflows: []durable.Definition{define("left")}})
		goesOn(t, w, "r")
		w.eventually("r", store.Completed)
	})
}
