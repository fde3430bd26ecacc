package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// What these tests are about shows under the race detector. They take real time: a
// virtual clock orders what they must not order.

func openPlain(t *testing.T, st store.Store, o durable.Options) (*durable.Engine, context.Context) {
	t.Helper()
	if o.Grace == 0 {
		o.Grace = -1
	}
	o.Logger = slog.New(slog.DiscardHandler)
	eng, err := durable.Open(context.Background(), st, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return eng, durable.NewContext(context.Background(), eng)
}

// A branch that does not heed the end of its context is left behind when its run is
// undone. What it does then must not meet the record of where the run was stopped.
func TestABranchThatGoesOnWhileItsRunIsUndoneDoesNotDisturbTheUndoing(t *testing.T) {
	var undone, late atomic.Int32
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		err := durable.Compensate(ctx, "undo", func(context.Context) error {
			time.Sleep(time.Second) // the branch ends meanwhile
			undone.Add(1)
			return nil
		})
		if err != nil {
			return 0, err
		}
		if _, err := durable.Step(ctx, "work", one); err != nil {
			return 0, err
		}
		durable.Go(ctx, "heeds", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
		durable.Go(ctx, "deaf", func(ctx context.Context) (int, error) {
			time.Sleep(1500 * time.Millisecond)
			late.Add(1)
			return 0, durable.Compensate(ctx, "too late", func(context.Context) error { undone.Add(100); return nil })
		})
		return 0, durable.Permanent(errStock)
	})
	eng, ctx := openPlain(t, memory.Open(), with(wf))
	_, err := wf.Run(ctx, "r", 0)
	require.ErrorIs(t, err, errStock)
	require.EqualValues(t, 1, undone.Load())
	require.EqualValues(t, 1, late.Load(), "it went on while the run was undone")
	v, err := operate.On(eng).Verify(ctx, "r")
	require.NoError(t, err)
	require.Empty(t, v.Findings)
}

// A branch that has lost a race may still be in a body when its run has ended and the
// span of that is made.
func TestABranchThatHasLostARaceMayRecordWhileTheEndOfItsRunIsTraced(t *testing.T) {
	over := make(chan struct{})
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
			defer close(over)
			return durable.Step(ctx, "s", func(context.Context) (int, error) {
				time.Sleep(200 * time.Millisecond)
				return 1, nil
			}, durable.Relaxed())
		})
		fast := durable.Go(ctx, "fast", func(ctx context.Context) (int, error) {
			time.Sleep(50 * time.Millisecond) // the other one is in its body
			return 2, nil
		})
		_, v, err := durable.First(ctx, "race", slow, fast)
		return v, err
	})
	spans := tracetest.NewSpanRecorder()
	_, ctx := openPlain(t, memory.Open(), durable.Options{
		Workflows: []durable.Definition{wf}, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), Grace: time.Second,
	})
	v, err := wf.Run(ctx, "r", 0)
	require.NoError(t, err)
	require.Equal(t, 2, v)
	<-over
}

// slowLog takes its time over the line which says that a run is resumed.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

func (slowLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "durable: run resumed" {
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// A run that recovery continues is told of, in the log and in metrics, while its
// history, which has the baggage of its start, is being read.
func TestARunWithBaggageIsToldOfWhileItsHistoryIsRead(t *testing.T) {
	member, err := baggage.NewMember("tenant", "acme")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	var tenant atomic.Value
	var open atomic.Bool
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
			if !open.Load() {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			tenant.Store(baggage.FromContext(ctx).Member("tenant").Value())
			return 1, nil
		})
	})
	data := memory.Open()
	o := with(wf)
	o.Logger, o.Grace = slog.New(slog.DiscardHandler), -1
	first, err := durable.Open(context.Background(), data.Handle(), o)
	require.NoError(t, err)
	_, err = wf.Start(baggage.ContextWithBaggage(durable.NewContext(context.Background(), first), bag), "r", 0)
	require.NoError(t, err)
	require.NoError(t, first.Close()) // interrupted
	open.Store(true)
	o.Logger = slog.New(slowLog{slog.DiscardHandler})
	eng, err := durable.Open(context.Background(), data.Handle(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	ctx := durable.NewContext(context.Background(), eng)
	rep, err := eng.Recover(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"r"}, rep.Resumed)
	h, err := wf.Handle(ctx, "r")
	require.NoError(t, err)
	_, err = h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "acme", tenant.Load())
}

// A goroutine that a body has left behind looks at the progress of its step while the next attempt
// saves some.
func TestAGoroutineThatABodyLeftBehindReadsProgressWhileTheNextAttemptSavesSome(t *testing.T) {
	var left sync.WaitGroup
	stop := make(chan struct{})
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 2, Initial: time.Nanosecond}, func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx).Number == 1 {
				left.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							_, _, _ = durable.NamedProgress[int](ctx, "1")
						}
					}
				})
				return 0, errors.Join(durable.SaveNamedProgress(ctx, "0", 0), errStock)
			}
			for i := range 1000 {
				if err := durable.SaveNamedProgress(ctx, fmt.Sprint(i), i); err != nil {
					return 0, err
				}
			}
			return 1, nil
		})
	})
	_, ctx := openPlain(t, memory.Open(), with(wf))
	_, err := wf.Run(ctx, "r", 0)
	close(stop)
	left.Wait()
	require.NoError(t, err)
}

// A goroutine that a function has left behind makes no call with its context once it has returned: a
// replay would not find that call, and the run would be parked as changed, with its effects in place.
func TestAGoroutineThatAFunctionLeftBehindMakesNoCallForIt(t *testing.T) {
	type function = func(ctx context.Context) (int, error)
	for name, in := range map[string]func(ctx context.Context, fn function) (int, error){
		"the function": func(ctx context.Context, fn function) (int, error) { return fn(ctx) },
		"the function, which panics": func(ctx context.Context, fn function) (int, error) {
			_, err := fn(ctx)
			panic(errors.Join(err, errStock))
		},
		"a branch": func(ctx context.Context, fn function) (int, error) {
			return durable.Go(ctx, "b", fn).Wait(ctx)
		},
		"an item": func(ctx context.Context, fn function) (int, error) {
			out, err := durable.Map(ctx, "m", upTo(1), durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return fn(ctx) })
			return len(out), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				undone, lives := 0, 0
				late := make(chan error, 10)
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					lives++
					for i := range 2 {
						if err := durable.Compensate(ctx, "undo", func(context.Context) error {
							if i == 0 && lives == 1 {
								<-ctx.Done() // the process dies while the run is undone
								return ctx.Err()
							}
							time.Sleep(2 * time.Second)
							undone++
							return nil
						}); err != nil {
							return 0, err
						}
						if err := durable.Do(ctx, "work", func(context.Context) error { return nil }); err != nil {
							return 0, err
						}
					}
					_, err := in(ctx, func(ctx context.Context) (int, error) {
						if err := durable.Compensate(ctx, "undo within", func(context.Context) error { undone++; return nil }); err != nil {
							return 0, err
						}
						_, err := durable.Step(ctx, "one", one)
						go func() {
							time.Sleep(time.Second)
							_, err := durable.Step(ctx, "late", one)
							late <- err
						}()
						return 1, err
					})
					return 0, errors.Join(err, durable.Permanent(errStock))
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				pass(time.Minute)
				require.ErrorIs(t, <-late, durable.ErrOutsideRun)
				w.reboot(t, with(wf))
				_, err := wait(t, w, wf, "r")
				require.ErrorContains(t, err, errStock.Error())
				require.Equal(t, 3, undone, w.story("r"))
			})
		})
	}
}
