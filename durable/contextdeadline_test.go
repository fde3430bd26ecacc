package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// waits are the calls of a workflow function that wait.
func waits(child *durable.Workflow[int, int]) map[string]func(ctx, limited context.Context) error {
	nap := func(ctx context.Context) (int, error) { return 1, durable.Sleep(ctx, time.Minute) }
	return map[string]func(ctx, limited context.Context) error{
		"Sleep": func(_, limited context.Context) error { return durable.Sleep(limited, time.Minute) },
		"SleepUntil": func(ctx, limited context.Context) error {
			return durable.SleepUntil(limited, durable.Now(ctx).Add(time.Minute))
		},
		"Await": func(_, limited context.Context) error {
			_, err := durable.Await[bool](limited, "go", durable.Timeout(time.Minute))
			if errors.Is(err, durable.ErrTimeout) {
				return nil
			}
			return err
		},
		"child": func(_, limited context.Context) error {
			_, err := child.Run(limited, durable.AutoID, 1)
			return err
		},
		"branch": func(ctx, limited context.Context) error {
			_, err := durable.Go(ctx, "nap", nap).Wait(limited)
			return err
		},
		"First": func(ctx, limited context.Context) error {
			_, _, err := durable.First(limited, "first", durable.Go(ctx, "nap", nap), durable.Go(ctx, "other", nap))
			return err
		},
		"in a branch": func(ctx, limited context.Context) error {
			_, err := durable.Go(limited, "nap", func(ctx context.Context) (int, error) {
				if err := durable.Do(ctx, "before", doNothing); err != nil {
					return 0, err
				}
				return nap(ctx)
			}).Wait(ctx)
			return err
		},
		"in an item": func(_, limited context.Context) error {
			_, err := durable.Map(limited, "map", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) {
				if err := durable.Do(ctx, "before", doNothing); err != nil {
					return 0, err
				}
				return nap(ctx)
			})
			return err
		},
	}
}

func TestAWaitUnderADeadlineOfTheCodesOwnParksTheRunLiveAndOnReplay(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, n int) (int, error) { return n, durable.Sleep(ctx, time.Minute) })
	for name, wait := range waits(child) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				mended := false
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "before", doNothing); err != nil {
						return 0, err
					}
					limited, stop := context.WithTimeout(ctx, time.Hour)
					defer stop()
					if mended {
						limited = ctx
					}
					_ = wait(ctx, limited) // what drops the error does not go on either
					return 1, durable.Do(ctx, "behind", doNothing)
				})
				w.boot(t, with(wf, child))
				start(t, w, wf, "r", 1)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUnrecorded, row.Code, row.Reason)
				require.Contains(t, row.Reason, "context.WithTimeout")
				require.NotContains(t, w.story("r"), "step_completed behind")
				require.NotEmpty(t, w.log.find("WARN durable: a call was refused"))

				before := w.events("r")
				var refused *misuse.ContextDeadlineError
				for _, dry := range []bool{true, false} {
					_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{DryRun: dry})
					if name == "branch" && err == nil {
						break // its outcome is recorded by now, and needs no wait
					}
					require.ErrorAs(t, err, &refused)
					require.Equal(t, "r", refused.RunID)
					require.Equal(t, before, w.events("r"))
				}
				w.reboot(t, with(wf, child))
				require.Equal(t, store.Interrupted, w.row("r").Status)

				mended = true
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				pass(time.Hour)
				require.Equal(t, store.Completed, w.row("r").Status, w.row("r").Reason)
			})
		})
	}
}

func TestWaitsThatWereBegunBeforeDeadlinesWereRefusedGoOn(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, n int) (int, error) { return n, durable.Sleep(ctx, time.Minute) })
	for _, name := range []string{"Sleep", "SleepUntil", "Await"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				limit := false // as if it had been passed over
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					for range 2 {
						limited, stop := context.WithTimeout(ctx, time.Hour)
						defer stop()
						if !limit {
							limited = ctx
						}
						if err := waits(child)[name](ctx, limited); err != nil {
							return 0, err
						}
					}
					return 1, durable.Do(ctx, "behind", doNothing)
				})
				w.boot(t, with(wf, child))
				start(t, w, wf, "r", 1)
				pass(90 * time.Second) // one wait has ended, the other one has begun
				w.crash()
				limit = true
				w.expire()
				w.boot(t, with(wf, child))
				pass(time.Hour)
				require.Equal(t, store.Completed, w.row("r").Status, w.row("r").Reason)
			})
		})
	}
}

func TestAContextThatIsOnlyCancelledMayWaitAndADeadlineBoundsABody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			c, cancel := context.WithCancel(ctx)
			defer cancel()
			if err := durable.Sleep(c, time.Minute); err != nil {
				return "", err
			}
			limited, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			err := durable.Do(limited, "slow", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				return "", errors.New("the body was not bounded")
			}
			return "bounded", nil
		})
		w.boot(t, with(wf))
		out, err := run(t, w, wf, "r", 1)
		require.NoError(t, err)
		require.Equal(t, "bounded", out)
	})
}
