//go:build cgo

package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestEventsOfARunThatIsDeletedMeanwhileDoNotJustEnd(t *testing.T) {
	st := open(t, file(t), sqlite.Options{})
	for name, c := range map[string]store.Cursor{
		"all": {All: true}, "of a lineage": {}, "from the middle": {All: true, After: 1000}, "the tail": {All: true, Tail: 1200}, "the tail of a lineage": {Tail: 1200},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, created again %v", name, again), func(t *testing.T) {
				id := fmt.Sprint("r ", name, again)
				commit(t, st, start(t, st, id).plain(3000))
				h, err := st.Load(t.Context(), id, c)
				require.NoError(t, err)
				last := int64(0)
				var ended error
				for e, err := range h.Events {
					if ended = err; err != nil {
						break
					}
					if last == 0 {
						n, err := st.Delete(t.Context(), store.Deletion{RunIDs: []string{id}, Force: true})
						require.NoError(t, err)
						require.Equal(t, 1, n)
						if again {
							commit(t, st, start(t, st, id).plain(3))
						}
					}
					last = e.Seq
				}
				if ended == nil {
					require.EqualValues(t, 3001, last, "all that was there")
				} else {
					require.ErrorIs(t, ended, store.ErrNotFound)
				}
				refused := 0
				for e, err := range h.Events { // and from the beginning
					require.ErrorIs(t, err, store.ErrNotFound, "event %d", e.Seq)
					refused++
				}
				require.Equal(t, 1, refused)
			})
		}
	}
}
