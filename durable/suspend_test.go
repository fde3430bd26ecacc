package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// lagging is the clocks of a machine that was suspended for an hour: until its next heartbeat it is behind
// by as much.
type lagging struct{ since atomic.Pointer[time.Time] }

func (l *lagging) suspend() {
	now := time.Now()
	l.since.Store(&now)
}

func (l *lagging) skew(t time.Time) (monotonic, wall time.Duration) {
	if since := l.since.Load(); since != nil && !t.Before(*since) {
		return -time.Hour, 0
	}
	return 0, 0
}

// A machine that was suspended does not know by its monotonic clock for how long. What begins before
// its next heartbeat lasts as long as it should, also in a process elsewhere.
func TestWhatBeginsAfterASuspendIsNotShorterElsewhere(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"a sleep": func(ctx context.Context) error { return durable.Sleep(ctx, 30*time.Minute) },
		"a wait": func(ctx context.Context) error {
			if _, err := durable.Await[int](ctx, "answer", durable.Timeout(30*time.Minute)); !errors.Is(err, durable.ErrTimeout) {
				return errors.New("it had an answer")
			}
			return nil
		},
		"a pause between attempts": func(ctx context.Context) error {
			_, err := durable.Retry(ctx, "try", durable.Policy{MaxAttempts: 2, Initial: 30 * time.Minute, Max: time.Hour, Jitter: -1}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number == 1 {
					return 0, errors.New("not yet")
				}
				return 0, nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var machine lagging
				data := memory.Open()
				wf := durable.Define("w", func(ctx context.Context, _ int) (time.Time, error) {
					err := wait(ctx)
					return time.Now(), err
				})
				open := func(ctx context.Context) *durable.Engine {
					eng, err := durable.Open(ctx, data.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
					require.NoError(t, err)
					return eng
				}
				laptop := open(storeclock.WithSkew(t.Context(), machine.skew))
				time.Sleep(12 * time.Second)
				machine.suspend()
				began := time.Now()
				_, err := wf.Start(durable.NewContext(t.Context(), laptop), "r", 0)
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.NoError(t, laptop.Close())

				server := open(t.Context())
				defer func() { require.NoError(t, server.Close()) }()
				_, err = server.Recover(t.Context())
				require.NoError(t, err)
				h, err := wf.Handle(durable.NewContext(t.Context(), server), "r")
				require.NoError(t, err)
				ended, err := h.Wait(t.Context())
				require.NoError(t, err)
				require.GreaterOrEqual(t, ended.Sub(began), 30*time.Minute)
			})
		})
	}
}

// The deadline of all attempts of a step that begins then is not one that has passed: neither here, once
// the clock is right, nor for a process that goes on with the step from its beginning on record.
func TestTheDeadlineOfAttemptsThatBeginAfterASuspendHasItsTime(t *testing.T) {
	for name, o := range map[string][]durable.StepOption{"a step": nil, "a long one": {durable.LongOperation()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var machine lagging
				var mu sync.Mutex
				bodies := 0
				data := memory.Open()
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Retry(ctx, "try", durable.Policy{MaxAttempts: 3, Deadline: 30 * time.Minute}, func(ctx context.Context) (int, error) {
						mu.Lock()
						defer mu.Unlock()
						if bodies++; bodies == 1 {
							return 0, errors.New("not yet")
						}
						return bodies, nil
					}, o...)
				})
				ctx := storeclock.WithSkew(t.Context(), machine.skew)
				eng, err := durable.Open(ctx, data, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
				require.NoError(t, err)
				defer func() { require.NoError(t, eng.Close()) }()
				time.Sleep(12 * time.Second)
				machine.suspend()
				began := store.TimeOf(time.Now())
				n, err := wf.Run(durable.NewContext(t.Context(), eng), "r", 0)
				require.NoError(t, err)
				require.Equal(t, 2, n)
				h, err := data.Load(t.Context(), "r", store.Cursor{})
				require.NoError(t, err)
				for ev, err := range h.Events {
					require.NoError(t, err)
					if ev.Key == "try" {
						require.GreaterOrEqual(t, ev.At, began, string(ev.Type))
					}
				}
			})
		})
	}
}

// The deadline of a run that is started then is not one that has passed.
func TestARunThatIsStartedAfterASuspendHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var machine lagging
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Minute) })
		ctx := storeclock.WithSkew(t.Context(), machine.skew)
		eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		time.Sleep(12 * time.Second)
		machine.suspend()
		out, err := wf.Run(durable.NewContext(t.Context(), eng), "r", 0, durable.Deadline(10*time.Minute))
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

// Nor is it while the store does not say the time, but takes the start a little later: that one is refused,
// and a child waits for the time.
func TestWhatIsStartedWhileTheStoreDoesNotSayTheTimeHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var machine lagging
		var silent atomic.Bool
		d := &disk{Store: memory.Open()}
		kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Minute) })
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			err := durable.Do(ctx, "body", func(context.Context) error { time.Sleep(20 * time.Second); return nil })
			if err != nil {
				return 0, err
			}
			return kid.Run(ctx, durable.AutoID, 0, durable.Deadline(10*time.Minute))
		})
		d.tamperCalls(func(call string, forward func() error) error {
			if call == "beat" && silent.Load() {
				return errDisk
			}
			return forward()
		})
		d.tamper(func(batch []store.Change, forward func() []error) []error {
			if silent.Load() {
				time.Sleep(2 * time.Second)
			}
			return forward()
		})
		eng, err := durable.Open(storeclock.WithSkew(t.Context(), machine.skew), d, durable.Options{Workflows: []durable.Definition{wf, kid}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		ctx := durable.NewContext(t.Context(), eng)
		h, err := wf.Start(ctx, "r", 0)
		require.NoError(t, err)
		time.Sleep(19 * time.Second)
		machine.suspend()
		silent.Store(true)
		_, err = kid.Start(ctx, "late", 0, durable.Deadline(10*time.Minute))
		require.ErrorIs(t, err, durable.ErrUnavailable)
		time.Sleep(10 * time.Second)
		silent.Store(false)
		out, err := h.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, out)
		_, err = kid.Run(ctx, "late", 0, durable.Deadline(10*time.Minute))
		require.NoError(t, err)
	})
}

// The timers of a process stand still while its machine is suspended. What it waits for ends when its time
// has come by the store's clock nevertheless, once the next heartbeat has asked for that.
func TestWhatIsUnderWayWhenAMachineIsSuspendedEndsInTime(t *testing.T) {
	for _, way := range []struct {
		name string
		o    []durable.StartOption
		wait func(ctx context.Context) error
	}{
		{"a sleep", nil, func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) }},
		{"a wait", nil, func(ctx context.Context) error {
			if _, err := durable.Await[int](ctx, "answer", durable.Timeout(time.Hour)); !errors.Is(err, durable.ErrTimeout) {
				return errors.New("it had an answer")
			}
			return nil
		}},
		{"a pause between attempts", nil, func(ctx context.Context) error {
			return durable.RetryDo(ctx, "try", durable.Policy{MaxAttempts: 2, Initial: time.Hour, Max: time.Hour, Jitter: -1}, func(ctx context.Context) error {
				if durable.Attempt(ctx).Number == 1 {
					return errors.New("not yet")
				}
				return nil
			})
		}},
		{"a run with a deadline", []durable.StartOption{durable.Deadline(time.Hour)}, func(ctx context.Context) error {
			return durable.Do(ctx, "body", func(ctx context.Context) error { <-ctx.Done(); return nil })
		}},
	} {
		for loaded, o := range map[string][]durable.DefineOption{"": nil, ", loaded": {durable.KeepLoaded()}} {
			t.Run(way.name+loaded, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const suspended = 50 * time.Minute
					var by atomic.Int64 // how long the machine was suspended, which all clocks know but the monotonic one
					data := memory.OpenAt(func() time.Time { return time.Now().Add(time.Duration(by.Load())) })
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, way.wait(ctx) }, o...)
					ctx := storeclock.WithSkew(t.Context(), func(time.Time) (monotonic, wall time.Duration) { return 0, time.Duration(by.Load()) })
					eng, err := durable.Open(ctx, data, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
					require.NoError(t, err)
					defer func() { require.NoError(t, eng.Close()) }()
					ctx = durable.NewContext(t.Context(), eng)
					began := time.Now()
					h, err := wf.Start(ctx, "r", 0, way.o...)
					require.NoError(t, err)
					time.Sleep(time.Minute)
					by.Store(int64(suspended))
					if _, err = h.Wait(ctx); way.o == nil {
						require.NoError(t, err)
					} else {
						require.ErrorContains(t, err, "deadline")
					}
					require.GreaterOrEqual(t, time.Since(began)+suspended, time.Hour)
					require.Less(t, time.Since(began)+suspended, time.Hour+durable.DefaultLease)
				})
			})
		}
	}
}

// Nor is that of a run that an operator starts then.
func TestWhatAnOperatorStartsAfterASuspendHasItsTime(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, op *operate.Operator) (id string, err error){
		"a backfill": func(ctx context.Context, op *operate.Operator) (string, error) {
			b, err := op.BackfillSchedule(ctx, "s", time.Now().Add(-2*time.Hour), time.Now().Add(-2*time.Hour+time.Minute))
			return b.RunIDs[0], err
		},
		"a fork": func(ctx context.Context, op *operate.Operator) (string, error) {
			return op.Fork(ctx, "r", operate.ForkOptions{ID: durable.AutoID, At: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var machine lagging
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Minute) })
				limit := durable.Deadline(10 * time.Minute)
				eng, err := durable.Open(storeclock.WithSkew(t.Context(), machine.skew), memory.Open(), durable.Options{
					Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler),
					Schedules: []durable.Schedule{wf.Schedule("s", durable.Every(time.Minute), 0, limit).Paused()},
				})
				require.NoError(t, err)
				defer func() { require.NoError(t, eng.Close()) }()
				_, err = eng.Recover(t.Context())
				require.NoError(t, err)
				ctx := durable.NewContext(t.Context(), eng)
				_, err = wf.Run(ctx, "r", 0, limit)
				require.NoError(t, err)
				time.Sleep(time.Second)
				machine.suspend()
				id, err := start(ctx, operate.On(eng))
				require.NoError(t, err)
				h, err := wf.Handle(ctx, id)
				require.NoError(t, err)
				out, err := h.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, 7, out)
			})
		})
	}
}

// StartAll takes as long as its sequence.
func TestWhatStartAllStartsAfterASuspendHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var machine lagging
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Minute) })
		eng, err := durable.Open(storeclock.WithSkew(t.Context(), machine.skew), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		ctx := durable.NewContext(t.Context(), eng)
		time.Sleep(12 * time.Second)
		bulk, err := wf.StartAll(ctx, func(yield func(string, int) bool) {
			machine.suspend()
			yield("r", 0)
		}, durable.Deadline(10*time.Minute))
		require.NoError(t, err)
		require.Equal(t, 1, bulk.Started)
		h, err := wf.Handle(ctx, "r")
		require.NoError(t, err)
		_, err = h.Wait(ctx)
		require.NoError(t, err)
	})
}
