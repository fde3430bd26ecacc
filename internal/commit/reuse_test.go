package commit_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// A store that has not answered may still be reading a batch: the list of its changes is not used
// for the next one.
func TestABatchThatTheStoreHasNotAnsweredIsNotOverwritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		var given, want [][]store.Change
		n := 0
		s.answer = func(batch []store.Change) (bool, error) {
			time.Sleep(time.Millisecond)
			if n++; len(batch) > 1 && n%2 == 0 {
				own := slices.Clone(batch)
				for i := range own {
					own[i].Events = slices.Clone(own[i].Events)
				}
				given, want = append(given, batch), append(want, own)
				return true, store.ErrUnknown
			}
			return true, nil
		}
		o := newOffice(s)
		defer o.end()
		o.tenEach(t, 8)
		require.NoError(t, s.broken)
		require.NotEmpty(t, given)
		for i := range given {
			require.Equal(t, want[i], given[i])
		}
	})
}
