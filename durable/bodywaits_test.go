package durable_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// A laptop is a process on a machine that may be suspended.
type laptop struct {
	w         *world
	suspended atomic.Int64
	offline   atomic.Bool // its heartbeats do not get through, all else does
}

// openLaptop is world.boot on a laptop.
func openLaptop(t *testing.T, w *world, o durable.Options) *laptop {
	t.Helper()
	l := &laptop{w: w}
	d := &disk{Store: w.data.Handle()}
	d.tamperCalls(func(call string, forward func() error) error {
		if call == "beat" && l.offline.Load() {
			return errDisk
		}
		return forward()
	})
	o.Grace, o.Logger = -1, slog.New(w.log)
	skew := func(time.Time) (monotonic, wall time.Duration) { return 0, time.Duration(l.suspended.Load()) }
	eng, err := durable.Open(storeclock.WithSkew(t.Context(), skew), d, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	w.eng, w.disk = eng, d
	_, err = eng.Recover(t.Context())
	require.NoError(t, err)
	synctest.Wait()
	return l
}

// suspend ends the lease without an end of the bodies' contexts: the machine was suspended, and its heartbeats do not
// get through.
func (l *laptop) suspend() {
	l.offline.Store(true)
	l.suspended.Add(int64(2 * l.w.lease))
}

// A pause that comes while a body waits for the lease is not an outcome of the body, which has not begun.
func TestAPauseFailsNoBodyThatWaitsForTheLease(t *testing.T) {
	for name, c := range map[string]struct{ once, around, reconcile bool }{
		"a step, after a function of Around":   {around: true},
		"Once, after a function of Around":     {once: true, around: true},
		"Once, after Reconcile":                {once: true, reconcile: true},
		"Once, when its beginning is recorded": {once: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies, waits := 0, 0
				late := func() {
					if waits++; waits == 1 {
						time.Sleep(2 * time.Second)
					}
				}
				def := func(body func(context.Context) (int, error)) *durable.Workflow[int, int] {
					return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						if !c.once {
							return durable.Step(ctx, "ship", body)
						}
						var o []durable.OnceOption[int]
						if c.reconcile {
							o = append(o, durable.Reconcile(func(context.Context) (int, bool, error) { late(); return 0, false, nil }))
						}
						return durable.Once(ctx, "ship", body, o...)
					})
				}
				wf := def(func(context.Context) (int, error) { bodies++; return 7, nil })
				if c.reconcile {
					stays := def(func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, context.Cause(ctx) })
					w.boot(t, with(stays))
					start(t, w, stays, "r", 0)
					pass(time.Second)
					w.crash()
					w.expire()
				}
				o := with(wf)
				if c.around {
					o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
						late()
						return next(ctx)
					})
				}
				l := openLaptop(t, w, o)
				if c.around || c.reconcile {
					time.AfterFunc(1500*time.Millisecond, l.suspend) // at no moment at which a beat is sent
				} else {
					l.suspend()
				}
				if !c.reconcile {
					start(t, w, wf, "r", 0)
				}
				pass(3 * time.Second)
				require.Zero(t, bodies)
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				pass(time.Second)
				require.NotContains(t, w.story("r"), "step_failed ship 1")
				l.offline.Store(false)
				require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 1, bodies)
			})
		})
	}
}

// asksForTwoSeconds makes a workflow of one Once whose first body runs until its context ends, and whose Reconcile then takes two
// seconds to say that nothing happened. It counts what runs and what asks after that.
func asksForTwoSeconds(bodies, asked *int) func(first bool) *durable.Workflow[int, int] {
	return func(first bool) *durable.Workflow[int, int] {
		return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Once(ctx, "ship", func(ctx context.Context) (int, error) {
				if first {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				*bodies++
				return 7, nil
			}, durable.Reconcile(func(context.Context) (int, bool, error) {
				*asked++
				time.Sleep(2 * time.Second)
				return 0, false, nil
			}))
		})
	}
}

// No body begins once its run is cancelled, however long what precedes it in the attempt has taken.
func TestACancelThatComesBeforeABodyBeginsKeepsItFromBeginning(t *testing.T) {
	for _, around := range []bool{true, false} {
		t.Run(map[bool]string{true: "a function of Around", false: "Reconcile"}[around], func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies, asked := 0, 0
				def := asksForTwoSeconds(&bodies, &asked)
				o := with(def(false))
				if around {
					o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
						time.Sleep(2 * time.Second)
						return next(ctx)
					})
					w.boot(t, o)
					start(t, w, def(false), "r", 0)
				} else {
					w.boot(t, with(def(true)))
					start(t, w, def(true), "r", 0)
					pass(time.Second)
					w.reboot(t, o)
				}
				pass(time.Second)
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no"))
				w.eventually("r", store.Cancelled)
				require.Zero(t, bodies)
			})
		})
	}
}

// Nor does one begin once its run is cancelled while the store takes its time for the word that it begins.
func TestNoBodyBeginsWhoseBeginningIsDurableAfterACancel(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Do(ctx, "ship", h.body) })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		w.crash()
		w.expire()
		w.open(t, with(wf))
		slow := false
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			for _, c := range batch {
				if len(c.Events) > 0 && c.Events[0].Type == store.StepStarted && !slow {
					slow = true
					time.Sleep(2 * time.Second)
				}
			}
			return errs
		})
		eng := w.eng
		w.left.Go(func() { _, _ = eng.Recover(context.Background()) })
		pass(time.Second)
		require.True(t, slow)
		require.Equal(t, 1, h.count())
		other, err := durable.Open(t.Context(), w.data.Handle(), durable.Options{Logger: slog.New(w.log)})
		require.NoError(t, err)
		defer other.Close()
		require.NoError(t, other.Cancel(t.Context(), "r", "no"))
		w.eventually("r", store.Cancelled)
		require.Equal(t, 1, h.count(), "it began before the crash only")
	})
}
