//go:build cgo && !race

package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Two of them are the driver's, one is the answer, and the others are arguments that are never
// the same.
func TestACheckpointAllocatesAtMost10Times(t *testing.T) {
	st := open(t, file(t), sqlite.Options{Synchronous: sqlite.Normal})
	l := start(t, st, "r")
	batch := []store.Change{l.plain(1)}
	batch[0].Events[0].Ordinal, batch[0].Events[0].Steps = 1000, 1000
	var seal store.Sealing
	n := testing.AllocsPerRun(500, func() {
		e := &batch[0].Events[0]
		e.Sum = seal.Seal("r", 0, e) // a store does not check what it is based on
		if err := st.Commit(t.Context(), batch)[0]; err != nil {
			t.Error(err)
		}
		e.Seq++
	})
	require.LessOrEqual(t, n, 10.0)
}
