//go:build cgo

package sqlite_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A long history is read packed, but for its large events and for what comes after them.
func TestALongHistoryWithLargeEventsIsReadAsItWasWritten(t *testing.T) {
	st := open(t, file(t), sqlite.Options{})
	l, c := create("r", nil)
	want := c.Events
	commit(t, st, c)
	for batch := range 8 {
		c := store.Change{RunID: "r", Expect: store.Expect{Epoch: l.epoch}}
		for i := range 200 {
			e := store.Event{Type: store.StepCompleted, Key: "step", Attempt: 1, Ordinal: int32(i), Payload: bytes.Repeat([]byte{byte(i)}, i%5)}
			switch {
			case i%50 == 7:
				e.Payload = bytes.Repeat([]byte{1}, 4095+i/50)
			case i == 9:
				e.Data = bytes.Repeat([]byte("1"), 4095+batch%3)
			case batch == 6:
				e.Payload = bytes.Repeat([]byte{2}, 50_000) // more than a chunk of them
			}
			c.Events = append(c.Events, l.next(e))
		}
		want = append(want, c.Events...)
		commit(t, st, c)
	}
	for _, after := range []int64{0, 1, 127, 128, 500, 1599, 1600, 1601, 5000} {
		h, err := st.Load(t.Context(), "r", store.Cursor{After: after})
		require.NoError(t, err)
		for range 2 { // the first range has the beginning from the load
			left := want[min(after, int64(len(want))):]
			for e, err := range h.Events {
				require.NoError(t, err)
				require.NotZero(t, len(left))
				require.True(t, same(&left[0], &e), "event %d after %d", e.Seq, after)
				left = left[1:]
			}
			require.Zero(t, len(left))
		}
	}
	for _, n := range []int{1, 3, 600, 5000} {
		h, err := st.Load(t.Context(), "r", store.Cursor{Tail: n})
		require.NoError(t, err)
		left := want[max(0, len(want)-n):]
		for e, err := range h.Events {
			require.NoError(t, err)
			require.True(t, same(&left[0], &e), "event %d of the last %d", e.Seq, n)
			left = left[1:]
		}
		require.Zero(t, len(left))
	}
}

func same(a, b *store.Event) bool {
	return a.Seq == b.Seq && a.Epoch == b.Epoch && a.Sum == b.Sum && store.Seal("r", 0, a) == store.Seal("r", 0, b)
}
