package archive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
)

// An id that was deleted and used again is that of the later run, whichever copy
// comes last and however long the earlier one is.
func TestOfAnIDThatWasUsedAgainTheLaterRunIsKept(t *testing.T) {
	_, earlier := states(t, "r")
	later := export(t, "r", 0)
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		for _, order := range [][][]byte{{earlier, later}, {later, earlier}} {
			for _, file := range order {
				require.NoError(t, a.Store(t.Context(), "r", file))
			}
			e, err := a.Get(t.Context(), "r")
			require.NoError(t, err)
			require.Equal(t, later, e.File)
		}
	})
}
