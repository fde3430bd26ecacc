//go:build cgo

package sqlite_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// What comes while something else is written goes with the batch.
func TestABatchIsFormedWhenItCanBeWritten(t *testing.T) {
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(path)
		require.NoError(t, err)
		l := start(t, st, "mine")
		other, err := st.BeginTx(t.Context())
		require.NoError(t, err)
		var formed atomic.Bool
		written := make(chan []error)
		go func() {
			written <- st.CommitLate(t.Context(), func() []store.Change {
				formed.Store(true)
				return []store.Change{l.plain(1)}
			})
		}()
		synctest.Wait()
		require.False(t, formed.Load())
		require.NoError(t, other.Rollback())
		require.Equal(t, []error{nil}, <-written)
		require.NoError(t, st.Close())
	})
}
