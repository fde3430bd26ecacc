package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
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
