package durable_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A boot names each run that cannot go on, and why: a number alone leads nowhere.
func TestABootNamesTheRunsThatAreStuckInItsLog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, _ int) (string, error) {
			return "", durable.Do(ctx, "a", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.crash()
		w.expire()
		rep := w.boot(t, with(durable.Define("refund", func(context.Context, int) (int, error) { return 0, nil })))
		require.Len(t, rep.Stuck, 1)
		lines := w.log.find("WARN durable: a run is stuck")
		require.Len(t, lines, 1)
		for _, part := range []string{"run=r", "code=not_registered", "reason=workflow order is not registered here", "next=run a program that serves workflow order"} {
			require.Contains(t, lines[0], part)
		}
	})
}

// clockAhead is a store on which another executor's clock is ahead of ours.
type clockAhead struct {
	store.Store
	by time.Duration
}

func (c clockAhead) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	p, err := c.Store.Beat(ctx, x)
	p.Skew = c.by
	return p, err
}

// That clocks differ is said, once, and not only what follows from it.
func TestClocksThatDifferAreSaidInTheLog(t *testing.T) {
	for by, said := range map[time.Duration]int{2 * time.Hour: 1, 10 * time.Millisecond: 0} {
		inWorld(t, func(t *testing.T, w *world) {
			eng, err := durable.Open(context.Background(), clockAhead{w.data.Handle(), by}, durable.Options{Logger: slog.New(w.log)})
			require.NoError(t, err)
			defer func() { require.NoError(t, eng.Close()) }()
			pass(5 * time.Minute)
			lines := w.log.find("WARN durable: the clock of another executor")
			require.Len(t, lines, said)
			if said > 0 {
				require.Contains(t, lines[0], "ahead_ms=7.2e+06")
			}
		})
	}
}
