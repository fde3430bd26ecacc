//go:build cgo && (linux || darwin)

package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever has the turn in a bubble may be waiting for a time, which goes on only if nobody waits in
// the kernel.
func TestTheTimeOfABubbleGoesOnWhileAHandleWaitsForItsTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writers")
	synctest.Test(t, func(t *testing.T) {
		other, err := os.OpenFile(path+".turn", os.O_CREATE|os.O_RDWR, 0o600)
		require.NoError(t, err)
		defer other.Close()
		require.True(t, tryLock(other))
		go func() {
			time.Sleep(20 * time.Millisecond)
			unlock(other)
		}()

		q := &turns{path: path}
		q.met()
		began := time.Now()
		q.take(t.Context(), nil)
		require.True(t, q.held)
		require.InDelta(t, 20*time.Millisecond, time.Since(began), float64(time.Millisecond))
		q.give()

		require.True(t, tryLock(other))
		began = time.Now()
		q.take(t.Context(), nil)
		require.False(t, q.held)
		require.Equal(t, turnMost, time.Since(began))
		q.give()
		q.close() // ends the goroutine that waits, or the bubble would not end
	})
	require.False(t, inBubble())
}
