package history_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A process may execute 100,000 runs, and most runs are short.
func TestAShortHistoryTakesNoRoomForALongOne(t *testing.T) {
	for _, steps := range []int{1, 20, 300} {
		for _, hint := range []int{0, steps - 1} {
			t.Run(fmt.Sprintf("%d steps, %d expected", steps, hint), func(t *testing.T) {
				const reads = 100
				events := longLog(steps)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range reads {
					_, err := history.Read("bench", func(yield func(store.Event, error) bool) {
						for i := range events {
							if !yield(events[i], nil) {
								return
							}
						}
					}, hint)
					require.NoError(t, err)
				}
				runtime.ReadMemStats(&after)
				// A record has about 230 bytes, and blocks double.
				require.Less(t, (after.TotalAlloc-before.TotalAlloc)/reads, uint64(6000+3*230*steps))
			})
		}
	}
}
