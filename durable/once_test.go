package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestOnceRunsItsBodyAtMostOnceAndSaysWhenTheOutcomeIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		reconcile func(context.Context) (string, bool, error)
		want      string
		bodies    int
	}{
		"without a reconcile":  {nil, "unknown: true", 1},
		"it has happened":      {func(context.Context) (string, bool, error) { return "found", true, nil }, "found", 1},
		"it has not happened":  {func(context.Context) (string, bool, error) { return "", false, nil }, "paid", 2},
		"the service is quiet": {func(context.Context) (string, bool, error) { return "", false, errors.New("no answer") }, "unknown: true", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				die := true
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					var o []durable.OnceOption[string]
					if c.reconcile != nil {
						o = append(o, durable.Reconcile(c.reconcile))
					}
					v, err := durable.Once(ctx, "pay", func(ctx context.Context) (string, error) {
						bodies++
						if die {
							<-ctx.Done()
							return "", ctx.Err()
						}
						return "paid", nil
					}, o...)
					if err != nil {
						v = fmt.Sprint("unknown: ", errors.Is(err, durable.ErrUnknownOutcome))
					}
					return v, durable.Sleep(ctx, time.Hour)
				})
				o := durable.Options{Workflows: []durable.Definition{wf}}
				w.boot(t, o)
				_, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				synctest.Wait()
				require.Contains(t, w.story("r"), "step_started pay", "the intent comes first")
				w.crash()
				w.expire()
				die = false
				w.boot(t, o)
				w.eventually("r", store.Waiting)
				w.reboot(t, o)
				h, _ := wf.Handle(w.ctx(), "r")
				out, err := h.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, c.want, out)
				require.Equal(t, c.bodies, bodies)
			})
		})
	}
}

func TestOnceWithoutACrashIsAStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Once(ctx, "pay", func(context.Context) (int, error) { return 7, nil })
		})
		w.serve(t, wf)
		out, err := wf.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

func TestProgressOfAStepSurvivesItsProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		opened := 0
		var lives []string
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			return durable.Step(ctx, "agent", func(ctx context.Context) (string, error) {
				session, ok, err := durable.Progress[string](ctx)
				if err != nil {
					return "", err
				}
				if !ok {
					opened++
					session = fmt.Sprint("session ", opened)
					if err := durable.SaveProgress(ctx, session); err != nil {
						return "", err
					}
				}
				lives = append(lives, session)
				if len(lives) < 3 {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return session, nil
			})
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		w.reboot(t, o)
		synctest.Wait()
		w.reboot(t, o)
		w.eventually("r", store.Completed)
		require.Equal(t, []string{"session 1", "session 1", "session 1"}, lives)
		require.ErrorIs(t, durable.SaveProgress(w.ctx(), 1), durable.ErrOutsideRun)
		_, _, err = durable.Progress[int](w.ctx())
		require.ErrorIs(t, err, durable.ErrOutsideRun)
	})
}

// A pause, or the end of an engine, that comes while it is being recorded that a body of Once begins
// does not leave that body out: its outcome would be unknown for good, though nothing has happened.
func TestOnceBeginsItsBodyOnceThatIsOnRecord(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, w *world){
		"pause": func(t *testing.T, w *world) { require.NoError(t, w.eng.Pause(w.ctx(), "r", "")) },
		"close": func(t *testing.T, w *world) { require.NoError(t, w.eng.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Once(ctx, "pay", func(context.Context) (int, error) { bodies++; return 7, nil })
				})
				o := durable.Options{Workflows: []durable.Definition{wf}, Grace: time.Minute}
				w.boot(t, o)
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					errs := forward()
					if len(batch[0].Events) > 0 && batch[0].Events[0].Type == store.StepStarted {
						time.Sleep(500 * time.Millisecond)
					}
					return errs
				})
				start(t, w, wf, "r", 0)
				pass(100 * time.Millisecond)
				stop(t, w)
				pass(time.Minute)
				require.Equal(t, 1, bodies, w.story("r"))
				if name == "pause" {
					require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				} else {
					w.boot(t, o)
				}
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 1, bodies)
			})
		})
	}
}

// What keeps the outcome of a body of Once from being recorded is found before it is on record that the
// body begins: its outcome would be unknown for good, though nothing has happened.
func TestOnceDoesNotRecordThatABodyBeginsWhoseOutcomeCouldNotBeKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keys := &changingKeys{}
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			return durable.Once(ctx, "pay", func(context.Context) (int, error) { bodies++; return 7, nil })
		})
		w.boot(t, encrypted(keys, wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		keys.set(func(k *changingKeys) {
			k.current, k.lost = "k1", map[string]error{"k1": errors.New("the vault is sealed")}
		})
		pass(time.Minute)
		require.Equal(t, durable.CodeUnrecorded, w.row("r").Code)
		require.Zero(t, bodies)
		keys.set(func(k *changingKeys) { k.lost = nil })
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
		require.Equal(t, 1, bodies)
	})
}

// A lease that ends before a function of Options.Around has called the body of Once leaves nothing
// unknown, also if the run is paused, or the engine closed, before the attempt is made again.
func TestOnceRunsABodyThatTheEndOfALeaseHasKeptFromBeginning(t *testing.T) {
	for _, stop := range []string{"", "pause", "close"} {
		t.Run(stop, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies, waits := 0, 0
				var cut atomic.Bool
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Once(ctx, "pay", func(context.Context) (int, error) { bodies++; return 7, nil })
				})
				o := with(wf)
				o.Grace = time.Hour
				o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
					if waits++; waits == 1 {
						time.Sleep(2 * w.lease) // for its turn, say
					}
					return next(ctx)
				})
				w.boot(t, o)
				w.disk.tamperCalls(func(call string, forward func() error) error {
					if call == "beat" && cut.Load() {
						return errDisk
					}
					return forward()
				})
				cut.Store(true)
				start(t, w, wf, "r", 0)
				pass(w.lease + w.lease/2)
				cut.Store(false)
				pass(w.lease / 4)
				switch stop {
				case "pause":
					require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
					pass(w.lease)
					require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				case "close":
					require.NoError(t, w.eng.Close())
					w.boot(t, o)
				}
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 1, bodies)
				require.Equal(t, 2, waits, "the attempt was made again")
			})
		})
	}
}

// While Reconcile asks, the lease may run out: then another executor may ask the same, and run the body.
func TestOnceRunsNoBodyAfterTheLeaseHasEndedWhileReconcileAsked(t *testing.T) {
	for _, taken := range []bool{true, false} {
		t.Run(fmt.Sprintf("taken %v", taken), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var shipped []int
				asked := 0
				ship := func(process int, asks time.Duration) *durable.Workflow[int, int] {
					return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						return durable.Once(ctx, "ship", func(ctx context.Context) (int, error) {
							if process == 0 {
								<-ctx.Done()
								return 0, context.Cause(ctx)
							}
							shipped = append(shipped, process)
							return 7, ctx.Err()
						}, durable.Reconcile(func(context.Context) (int, bool, error) {
							happened := len(shipped) > 0
							if asked++; asked == 1 {
								time.Sleep(asks)
							}
							return 7, happened, nil
						}))
					})
				}
				w.boot(t, with(ship(0, 0)))
				start(t, w, ship(0, 0), "r", 0)
				pass(time.Second)
				w.reboot(t, with(ship(1, 2*w.lease)))
				pass(time.Second)
				require.Equal(t, 1, asked)
				stopped := w.disk
				stopped.tamperCalls(func(string, func() error) error { return errDisk })
				if taken {
					w.boot(t, with(ship(2, 0)))
				}
				pass(w.lease + w.lease/2)
				stopped.tamperCalls(nil)
				pass(w.lease)
				out, err := wait(t, w, ship(2, 0), "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Len(t, shipped, 1, "by processes %v", shipped)
				require.Equal(t, 2, asked)
			})
		})
	}
}

// slowTracer is a tracer that takes its time before it lets the first attempt of a step begin, as one whose machine
// has no processor for it.
type slowTracer struct {
	sdktrace.SpanProcessor
	takes time.Duration
	slow  atomic.Bool
}

func (s *slowTracer) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	if strings.HasPrefix(span.Name(), "attempt ") && s.slow.CompareAndSwap(false, true) {
		time.Sleep(s.takes)
	}
}

// The body of Once is looked at once more at the last moment: the lease may have ended since the attempt was let begin.
func TestOnceRunsNoBodyWhoseAttemptBeganBeforeTheLeaseEnded(t *testing.T) {
	for _, taken := range []bool{true, false} {
		t.Run(fmt.Sprintf("taken %v", taken), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var shipped []int
				asked := 0
				ship := func(process int) *durable.Workflow[int, int] {
					return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						return durable.Once(ctx, "ship", func(ctx context.Context) (int, error) {
							shipped = append(shipped, process)
							return 7, ctx.Err()
						}, durable.Reconcile(func(context.Context) (int, bool, error) {
							asked++
							return 7, len(shipped) > 0, nil
						}))
					})
				}
				o := with(ship(1))
				o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&slowTracer{SpanProcessor: tracetest.NewSpanRecorder(), takes: 3 * w.lease}))
				w.boot(t, o)
				start(t, w, ship(1), "r", 0)
				pass(time.Second)
				stopped := w.disk
				stopped.tamperCalls(func(string, func() error) error { return errDisk })
				if taken {
					w.boot(t, with(ship(2)))
				}
				pass(w.lease + w.lease/2)
				stopped.tamperCalls(nil)
				pass(3 * w.lease)
				out, err := wait(t, w, ship(2), "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				if taken {
					require.Equal(t, []int{2}, shipped, "processes")
					return
				}
				require.Equal(t, []int{1}, shipped, "processes")
				require.Zero(t, asked, "nothing had begun")
			})
		})
	}
}
