package heart_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A look at the runs counts for what was before it only, also when the clock was last set to what it was when that look
// began.
func TestALookDoesNotCountAlthoughTheClockSaysWhatItSaidWhenThatBegan(t *testing.T) {
	for _, between := range []string{"the clock is set", "the store does not know it"} {
		t.Run(between, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = 30 * time.Second
				var set, gaps atomic.Int64
				h := heart.New(heart.Options{
					Store: memory.Open(), Log: slog.New(slog.DiscardHandler), Executor: store.Executor{ID: "e", Lease: lease},
					Late: func(context.Context) {},
					Gap:  func(context.Context) error { gaps.Add(1); time.Sleep(time.Second); return nil },
					Tend: func(*store.Pulse) {},
				})
				ctx, cancel := context.WithCancel(storeclock.WithSkew(t.Context(), func(time.Time) (monotonic, wall time.Duration) { return 0, time.Duration(set.Load()) }))
				defer synctest.Wait()
				defer cancel()
				require.NoError(t, h.Register(ctx))
				h.Begin()
				defer h.Lease.Stop()
				go h.Loop(ctx)
				go h.TendLoop(ctx)
				time.Sleep(time.Second)
				set.Store(int64(lease / 3)) // for good
				require.False(t, h.Lease.Holds(time.Now()))
				held := make(chan struct{})
				go func() { h.AwaitLease(nil, nil); close(held) }()
				time.Sleep(time.Second / 2)
				require.EqualValues(t, 1, gaps.Load(), "the look has begun")
				if between == "the clock is set" {
					set.Store(int64(2 * lease))
					require.False(t, h.Lease.Holds(time.Now()))
					set.Store(int64(lease / 3))
				} else {
					h.Lease.Doubt()
				}
				time.Sleep(time.Millisecond)
				require.False(t, h.Lease.Holds(time.Now()), "whoever asks last")
				<-held
				require.EqualValues(t, 2, gaps.Load())
				require.True(t, h.Lease.Holds(time.Now()))
			})
		})
	}
}
