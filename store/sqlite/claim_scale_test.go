//go:build cgo

package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// backlog makes runs that no claim of executor("e") may take now: waiting with
// a far timer, of another workflow, in a queue that is full.
func backlog(t testing.TB, st store.Store, n int) {
	t.Helper()
	for done := 0; done < n; {
		var batch []store.Change
		for range 500 {
			done++
			_, c := create(fmt.Sprintf("backlog-%06d", done), func(r *store.Run) {
				switch done % 3 {
				case 0:
					r.Status, r.WakeAt = store.Waiting, created.Add(100*365*24*time.Hour)
				case 1:
					r.Workflow = "another"
				case 2:
					r.Queue = "full"
				}
			})
			batch = append(batch, c)
		}
		for _, err := range st.Commit(t.Context(), batch) {
			require.NoError(t, err)
		}
	}
}

// A claim and a beat cost the same however many runs there are that it cannot
// take.
func BenchmarkClaimBehindABacklog(b *testing.B) {
	for _, n := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := open(b, file(b), sqlite.Options{Synchronous: sqlite.Off})
			backlog(b, st, n)
			e := executor("e")
			beat(b, st, e)
			_, c := create("busy", func(r *store.Run) { r.Queue, r.Status, r.Owner = "full", store.Running, "e" })
			commit(b, st, c)
			b.Run("claim", func(b *testing.B) {
				for b.Loop() {
					runs, err := st.Claim(b.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: 10, Queues: []store.QueueRoom{{Queue: "full", Max: 1}}})
					require.NoError(b, err)
					require.Empty(b, runs)
				}
			})
			b.Run("beat", func(b *testing.B) {
				for b.Loop() {
					beat(b, st, e)
				}
			})
			b.Run("count", func(b *testing.B) {
				for b.Loop() {
					_, err := st.Count(b.Context(), store.Filter{}, store.ByStatus)
					require.NoError(b, err)
				}
			})
			b.Run("list", func(b *testing.B) {
				for b.Loop() {
					_, err := st.List(b.Context(), store.Filter{Statuses: []store.Status{store.Waiting}, WithLast: true})
					require.NoError(b, err)
				}
			})
		})
	}
}
