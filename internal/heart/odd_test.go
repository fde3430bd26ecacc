package heart_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A look at the runs counts for what was before it only, also when the clock was last set to what it was when that look
// began.
func TestALookDoesNotCountAlthoughTheClockSaysWhatItSaidWhenThatBegan(t *testing.T) {
	for _, between := range []string{"the clock is set", "the store does not know it"} {
		t.Run(between, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = 30 * time.Second
				var gaps atomic.Int64
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				h, ctx, set := beatingByASettableClock(t, ctx, lease, func() { gaps.Add(1); time.Sleep(time.Second) })
				defer h.Lease.Stop()
				go h.Loop(ctx)
				go h.TendLoop(ctx)
				time.Sleep(time.Second)
				set(lease / 3) // for good
				require.False(t, h.Lease.Holds(time.Now()))
				held := make(chan struct{})
				go func() { h.AwaitLease(nil, nil); close(held) }()
				time.Sleep(time.Second / 2)
				require.EqualValues(t, 1, gaps.Load(), "the look has begun")
				if between == "the clock is set" {
					set(2 * lease)
					require.False(t, h.Lease.Holds(time.Now()))
					set(lease / 3)
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
