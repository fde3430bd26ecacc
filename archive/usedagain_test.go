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
			require.NoError(t, a.Store(t.Context(), "r", order[0]))
			if err := a.Store(t.Context(), "r", order[1]); err != nil {
				var reused *archive.ReusedIDError
				require.ErrorAs(t, err, &reused, "what is not kept is not acknowledged")
				require.Equal(t, later, order[0])
			}
			e, err := a.Get(t.Context(), "r")
			require.NoError(t, err)
			require.Equal(t, later, e.File)
		}
	})
}
