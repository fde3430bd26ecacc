package durable_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A body that has failed has failed, though a function of Around wants it to run again and a pause, of which the body
// knew nothing, keeps that from happening.
func TestAPauseTakesNoFailureBackWhoseBodyIsCalledAgain(t *testing.T) {
	for _, once := range []bool{false, true} {
		t.Run(map[bool]string{true: "Once", false: "a step"}[once], func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				broken := errors.New("broken")
				body := func(context.Context) (int, error) {
					bodies++
					time.Sleep(2 * time.Second)
					return 0, broken
				}
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if once {
						return durable.Once(ctx, "ship", body)
					}
					return durable.Step(ctx, "ship", body)
				})
				o := with(wf)
				o.Grace = time.Minute
				o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
					err := next(ctx)
					if err != nil {
						_ = next(ctx)
					}
					return err
				})
				w.boot(t, o)
				start(t, w, wf, "r", 0)
				pass(time.Second)
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				pass(2 * time.Second)
				require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				_, err := wait(t, w, wf, "r")
				require.ErrorIs(t, err, broken)
				require.NotErrorIs(t, err, durable.ErrUnknownOutcome)
				require.Equal(t, 1, bodies)
			})
		})
	}
}

// Once, whose beginning is on record, runs its body also when another branch parks its run before that: its outcome
// would be unknown for good.
func TestARunThatIsParkedLeavesNoOnceUnknownThatHasNotRun(t *testing.T) {
	for _, slow := range []string{"Around", "the lease", "the store"} {
		t.Run(slow, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var bodies, mended atomic.Int64
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
						return durable.Once(ctx, "ship", func(context.Context) (int, error) { bodies.Add(1); return 7, nil })
					})
					time.Sleep(time.Second)
					if mended.Load() == 0 { // a wait under a deadline of the context cannot be recorded
						within, stop := context.WithTimeout(ctx, time.Hour)
						defer stop()
						if _, err := durable.Await[int](within, "go on"); err != nil {
							return 0, err
						}
					}
					return f.Wait(ctx)
				})
				o := with(wf)
				if slow == "Around" {
					o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
						time.Sleep(3 * time.Second)
						return next(ctx)
					})
				}
				l := openLaptop(t, w, o)
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					errs := forward()
					for _, e := range batch[0].Events {
						switch {
						case e.Type != store.StepStarted || e.Key != "b/ship":
						case slow == "the lease":
							l.suspend()
						case slow == "the store":
							time.Sleep(3 * time.Second)
						}
					}
					return errs
				})
				start(t, w, wf, "r", 0)
				pass(2 * time.Second)
				require.Zero(t, bodies.Load())
				l.offline.Store(false)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUnrecorded, row.Code, row.Reason)
				mended.Store(1)
				_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
				require.NoError(t, err)
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.EqualValues(t, 1, bodies.Load())
			})
		})
	}
}

// No body begins in a run that was paused while Reconcile asked: it is asked again once the run goes on.
func TestNoBodyBeginsThatAPauseFoundBehindReconcile(t *testing.T) {
	for _, shut := range []bool{false, true} {
		t.Run(map[bool]string{true: "shut down", false: "paused"}[shut], func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies, asked := 0, 0
				def := asksForTwoSeconds(&bodies, &asked)
				w.boot(t, with(def(true)))
				start(t, w, def(true), "r", 0)
				pass(time.Second)
				o := with(def(false))
				o.Grace = time.Minute
				w.reboot(t, o)
				pass(time.Second)
				require.Equal(t, 1, asked)
				if shut {
					require.NoError(t, w.eng.Close())
				} else {
					require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
					pass(2 * time.Second)
				}
				require.Zero(t, bodies)
				if shut {
					w.boot(t, with(def(false)))
				} else {
					require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				}
				out, err := wait(t, w, def(false), "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 1, bodies)
				require.Equal(t, 2, asked)
			})
		})
	}
}

// The time of an attempt that waits for the lease does not run out before its body has begun, whoever has set the limit.
func TestTheTimeOfAnAttemptDoesNotRunOutWhileItWaitsForTheLease(t *testing.T) {
	const limit = 5 * time.Second
	for name, c := range map[string]struct {
		timeout time.Duration
		around  func(ctx context.Context, next func(context.Context) error) error
	}{
		"Policy.Timeout": {timeout: limit, around: func(ctx context.Context, next func(context.Context) error) error { return next(ctx) }},
		"a function of Around": {around: func(ctx context.Context, next func(context.Context) error) error {
			ctx, stop := context.WithTimeout(ctx, limit)
			defer stop()
			return next(ctx)
		}},
		"a function of Around that waits for its context": {timeout: limit, around: waitsFor(func(ctx context.Context) <-chan struct{} { return ctx.Done() })},
		"a function of Around that looks at its watch": {around: waitsFor(func(context.Context) <-chan struct{} {
			over := make(chan struct{})
			time.AfterFunc(limit, func() { close(over) })
			return over
		})},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Retry(ctx, "ship", durable.Policy{MaxAttempts: 1, Timeout: c.timeout}, func(ctx context.Context) (int, error) {
						return 7, ctx.Err()
					})
				})
				o := with(wf)
				waits := 0
				o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
					if waits++; waits == 1 {
						time.Sleep(2 * time.Second)
					}
					return c.around(ctx, next)
				})
				l := openLaptop(t, w, o)
				start(t, w, wf, "r", 0)
				pass(time.Second)
				l.suspend()
				pass(10 * time.Second)
				l.offline.Store(false)
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 2, waits, "the attempt was made again")
			})
		})
	}
}

// waitsFor returns a function of Around that waits for next no longer than until a channel is closed.
func waitsFor(over func(ctx context.Context) <-chan struct{}) func(ctx context.Context, next func(context.Context) error) error {
	return func(ctx context.Context, next func(context.Context) error) error {
		done := make(chan error, 1)
		go func() { done <- next(ctx) }()
		select {
		case err := <-done:
			return err
		case <-over(ctx):
			return errors.New("it takes too long")
		}
	}
}

// It is not on record that a body of Once, or of a long operation, begins, while the lease keeps it from beginning: what
// stops its run then would leave a body that has not run unknown.
func TestNoBeginningIsOnRecordWhileTheLeaseKeepsABodyFromIt(t *testing.T) {
	stops := map[string]func(t *testing.T, w *world, o durable.Options){
		"pause": func(t *testing.T, w *world, _ durable.Options) {
			require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
		},
		"cancel": func(t *testing.T, w *world, _ durable.Options) {
			require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no"))
			w.eventually("r", store.Cancelled)
		},
		"close":   func(t *testing.T, w *world, o durable.Options) { require.NoError(t, w.eng.Close()) },
		"kill":    func(t *testing.T, w *world, o durable.Options) { w.crash(); w.expire() },
		"nothing": func(*testing.T, *world, durable.Options) {},
	}
	for name, stop := range stops {
		for _, once := range []bool{true, false} {
			t.Run(map[bool]string{true: "Once, ", false: "a long operation, "}[once]+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var bodies atomic.Int64
					body := func(context.Context) (int, error) { bodies.Add(1); return 7, nil }
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						if err := durable.Do(ctx, "pack", func(context.Context) error { time.Sleep(2 * time.Second); return nil }); err != nil {
							return 0, err
						}
						if once {
							return durable.Once(ctx, "ship", body)
						}
						return durable.Step(ctx, "ship", body, durable.LongOperation())
					})
					l := openLaptop(t, w, with(wf))
					start(t, w, wf, "r", 0)
					pass(1500 * time.Millisecond)
					l.suspend()
					pass(2 * time.Second)
					require.Contains(t, w.story("r"), "step_completed pack")
					stop(t, w, with(wf))
					require.NotContains(t, w.story("r"), "step_started ship")
					require.Zero(t, bodies.Load())
					l.offline.Store(false)
					switch name {
					case "cancel":
						return
					case "pause":
						pass(w.lease)
						require.Zero(t, bodies.Load(), "it is paused")
						require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
					case "close", "kill":
						w.boot(t, with(wf))
					}
					out, err := wait(t, w, wf, "r")
					require.NoError(t, err)
					require.Equal(t, 7, out)
					require.EqualValues(t, 1, bodies.Load())
				})
			})
		}
	}
}

// A body that ends its goroutine while its run is being paused has failed, like one that returns an error.
func TestABodyThatEndsItsGoroutineInAPauseHasFailed(t *testing.T) {
	for _, once := range []bool{false, true} {
		t.Run(map[bool]string{true: "Once", false: "a step"}[once], func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				body := func(context.Context) (int, error) {
					bodies++
					time.Sleep(2 * time.Second)
					runtime.Goexit()
					return 0, nil
				}
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if once {
						return durable.Once(ctx, "ship", body)
					}
					return durable.Step(ctx, "ship", body)
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				pass(time.Second)
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				pass(2 * time.Second)
				require.Contains(t, w.story("r"), "step_failed ship 1")
				require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				_, err := wait(t, w, wf, "r")
				require.ErrorIs(t, err, durable.ErrGoexit)
				require.Equal(t, 1, bodies)
			})
		})
	}
}
