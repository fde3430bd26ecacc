//go:build !race

package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// Nearly half of them are the driver's, which writes each argument as text.
func TestACheckpointAllocatesAtMost33Times(t *testing.T) {
	s := fresh(t)
	r := &runLog{id: "r"}
	commit(t, s, r.create("me"))
	batch := []store.Change{r.step(stepPayload)}
	batch[0].Events[0].Ordinal, batch[0].Events[0].Steps = 1000, 1000
	var seal store.Sealing
	n := testing.AllocsPerRun(500, func() {
		e := &batch[0].Events[0]
		e.Sum = seal.Seal("r", 0, e) // a store does not check what it is based on
		if err := s.Commit(t.Context(), batch)[0]; err != nil {
			t.Error(err)
		}
		e.Seq++
	})
	require.LessOrEqual(t, n, 33.0)
}
