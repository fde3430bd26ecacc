package durable_test

import (
	"context"
	"errors"
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

// The time of an attempt that waits for the lease does not run out before its body has begun.
func TestTheTimeOfAnAttemptDoesNotRunOutWhileItWaitsForTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "ship", durable.Policy{MaxAttempts: 1, Timeout: 5 * time.Second}, func(ctx context.Context) (int, error) {
				bodies++
				return 7, ctx.Err()
			})
		})
		o := with(wf)
		waits := 0
		o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
			if waits++; waits == 1 {
				time.Sleep(2 * time.Second)
			}
			return next(ctx)
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
	})
}
