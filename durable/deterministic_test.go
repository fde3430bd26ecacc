package durable_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// drawing calls Now, NewID and Rand at every kind of place.
func drawing(ctx context.Context, pause time.Duration) []string {
	var all []string
	draw := func(place string) {
		r := durable.Rand(ctx)
		all = append(all, place, durable.Now(ctx).String(), durable.NewID(ctx), fmt.Sprint(r.Int64(), r.Perm(5)), durable.NewID(ctx))
	}
	wait := func(context.Context) (int, error) { time.Sleep(pause); return 1, nil }
	draw("at the beginning")
	time.Sleep(pause)
	draw("a while later")
	_, _ = durable.Step(ctx, "a", wait)
	draw("after a step")
	_, _ = durable.Step(ctx, "b", wait, durable.Relaxed())
	draw("after a relaxed step")
	_, _ = durable.Step(ctx, "c", wait, durable.Relaxed())
	_ = durable.Checkpoint(ctx)
	draw("after a checkpoint")
	_ = durable.Do(ctx, "d", func(context.Context) error { time.Sleep(pause); return errStock })
	draw("after a failed step")
	_, _ = durable.Retry(ctx, "e", durable.Policy{Initial: max(pause, 1)}, func(ctx context.Context) (int, error) {
		return untilThird(ctx, durable.Attempt(ctx).Number)
	})
	draw("after a retry")
	_, _ = durable.Step(ctx, "f", wait, durable.LongOperation())
	draw("after a long operation")
	_ = durable.Do(ctx, "", func(context.Context) error { return nil }) // refused
	draw("after a refused call")
	return all
}

func TestNowNewIDAndRandAreTheSameOnReplay(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) ([]string, error) {
		return drawing(ctx, time.Second), nil
	})
	require.Equal(t, live, replay)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	ids := map[string]bool{}
	for i := 0; i < len(live.value); i += 5 {
		require.Regexp(t, uuid, live.value[i+2])
		ids[live.value[i+2]], ids[live.value[i+4]] = true, true
	}
	require.Len(t, ids, len(live.value)/5*2, "no two are the same")
}

// The same with the real clock, which does not stand still between two looks.
func TestNowIsTheSameOnReplayByTheRealClock(t *testing.T) {
	ctx := context.Background()
	data := memory.Open()
	var all [][]string
	reached := make(chan struct{}, 2)
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		all = append(all, drawing(ctx, 0))
		reached <- struct{}{}
		return 0, durable.Do(ctx, "hold", func(ctx context.Context) error {
			if len(all) == 1 {
				<-ctx.Done()
			}
			return nil
		})
	})
	for range 2 {
		eng, err := durable.Open(ctx, data.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1})
		require.NoError(t, err)
		_, err = eng.Recover(ctx)
		require.NoError(t, err)
		_, err = wf.Start(durable.NewContext(ctx, eng), "r", 0)
		require.NoError(t, err)
		<-reached
		require.NoError(t, eng.Close())
	}
	require.Equal(t, all[0], all[1])
}

func TestRunsDrawDifferently(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.NewID(ctx), nil })
		w.serve(t, wf)
		a, err := run(t, w, wf, "a", 0)
		require.NoError(t, err)
		b, err := run(t, w, wf, "b", 0)
		require.NoError(t, err)
		require.NotEqual(t, a, b)
	})
}

func TestInABodyTimeAndChanceAreReal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ids := map[string]bool{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "s", durable.Policy{Initial: time.Second}, func(ctx context.Context) (int, error) {
				ids[durable.NewID(ctx)] = true
				require.Equal(t, time.Now(), durable.Now(ctx))
				return untilThird(ctx, durable.Attempt(ctx).Number)
			})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Len(t, ids, 3)
	})
}

// What a call has recorded before its run was stopped counts for what is drawn after it, live and
// on every replay.
func TestNowAndNewIDAfterACallThatWasStoppedAreTheSameOnReplay(t *testing.T) {
	stays := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, call := range map[string]func(ctx context.Context) error{
		"step": func(ctx context.Context) error { return durable.Do(ctx, "work", stays) },
		"long": func(ctx context.Context) error { return durable.Do(ctx, "work", stays, durable.LongOperation()) },
		"progress": func(ctx context.Context) error {
			return durable.Do(ctx, "work", func(ctx context.Context) error {
				time.Sleep(time.Second)
				if err := durable.SaveProgress(ctx, 1); err != nil {
					return err
				}
				return stays(ctx)
			})
		},
		"retry": func(ctx context.Context) error {
			return durable.RetryDo(ctx, "work", durable.Policy{Initial: time.Hour, Max: time.Hour}, func(context.Context) error { time.Sleep(time.Second); return errStock })
		},
		"sleep": func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) },
		"await": func(ctx context.Context) error { _, err := durable.Await[int](ctx, "go"); return err },
		"map": func(ctx context.Context) error {
			_, err := durable.Map(ctx, "items", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
			return err
		},
		"branch": func(ctx context.Context) error {
			_, err := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Hour) }).Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var said []string
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					durable.NewID(ctx)
					if err := durable.Do(ctx, "first", func(context.Context) error { time.Sleep(time.Minute); return nil }); err != nil {
						return "", err
					}
					time.Sleep(time.Second)
					_ = call(ctx)
					is := fmt.Sprint(durable.Now(ctx).UTC(), " ", durable.NewID(ctx))
					return "", durable.Compensate(ctx, "undo", func(ctx context.Context) error {
						if said = append(said, is); len(said) == 1 {
							<-ctx.Done()
						}
						return nil
					})
				})
				o := durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: -1}
				w.boot(t, o)
				start(t, w, wf, "r", 0)
				pass(5 * time.Minute)
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
				pass(time.Minute)
				w.reboot(t, o)
				_, err := wait(t, w, wf, "r")
				require.Error(t, err)
				require.Len(t, said, 2, w.story("r"))
				require.Equal(t, said[0], said[1], w.story("r"))
			})
		})
	}
}

// A failure is taken back, and with it the outcome of what is around it. What was called within that,
// and beside it, was given the time at which it began.
func TestNowIsTheSameWhenAFailureIsTakenBack(t *testing.T) {
	var failing atomic.Bool
	seen := func(ctx context.Context) error {
		return durable.Do(ctx, "seen", func(context.Context) error { time.Sleep(time.Second); return nil }, durable.WithInput(durable.Now(ctx)))
	}
	fails := func(ctx context.Context) error {
		return durable.Do(ctx, "fails", func(context.Context) error {
			if failing.Load() {
				return durable.Permanent(errors.New("not yet"))
			}
			return nil
		})
	}
	both := func(ctx context.Context) (int, error) {
		if err := seen(ctx); err != nil {
			return 0, err
		}
		return 1, fails(ctx)
	}
	for name, fn := range map[string]func(ctx context.Context) (int, error){
		"within a branch": func(ctx context.Context) (int, error) {
			return durable.Go(ctx, "branch", both).Wait(ctx)
		},
		"beside a branch": func(ctx context.Context) (int, error) {
			f := durable.Go(ctx, "branch", func(ctx context.Context) (int, error) {
				if err := durable.Sleep(ctx, 2*time.Second); err != nil {
					return 0, err
				}
				return 1, fails(ctx)
			})
			if err := seen(ctx); err != nil {
				return 0, err
			}
			return f.Wait(ctx)
		},
		"within an item": func(ctx context.Context) (int, error) {
			_, err := durable.Map(ctx, "items", []int{0, 1}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return both(ctx) })
			return 1, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				failing.Store(true)
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return fn(ctx) })
				w.serve(t, wf)
				_, err := run(t, w, wf, "r", 0)
				require.ErrorContains(t, err, "not yet")
				failing.Store(false)
				_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
				require.NoError(t, err)
				pass(10 * time.Second)
				row := w.row("r")
				require.Equal(t, store.Completed, row.Status, "%s", row.Reason)
			})
		})
	}
}

// A body that captures the context of the function draws what no replay draws again. It draws the same
// whenever it runs.
func TestWhatABodyDrawsWithTheContextOfTheFunctionDoesNotCount(t *testing.T) {
	var drawn []string
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) ([]string, error) {
		ids := []string{durable.NewID(ctx)}
		err := durable.RetryDo(ctx, "a", durable.Policy{}, func(body context.Context) error {
			drawn = append(drawn, durable.NewID(ctx))
			if durable.Attempt(body).Number < 2 {
				return errStock
			}
			return nil
		})
		return append(ids, durable.NewID(ctx), durable.NewID(ctx)), err
	})
	require.Equal(t, live, replay)
	require.Len(t, drawn, 2)
	require.Equal(t, drawn[0], drawn[1])
	require.NotContains(t, live.value, drawn[0])
}
