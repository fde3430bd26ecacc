package postgres_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// The small values of a long history share memory. None of them may show another one, or be changed with it.
func TestTheEventsOfALongHistoryAreReadAsTheyWereWritten(t *testing.T) {
	st := fresh(t)
	l := &runLog{id: "r"}
	create := l.create("me")
	want := append([]store.Event(nil), create.Events...)
	commit(t, st, create)
	for i := 0; i < 3000; {
		var batch []store.Event
		for range 500 {
			var payload []byte
			switch i++; {
			case i%100 == 0:
				payload = []byte{}
			case i%100 == 1:
				payload = bytes.Repeat([]byte{byte(i)}, 254+i/100%4)
			case i%100 != 2:
				payload = bytes.Repeat([]byte{byte(i)}, i%60)
			}
			batch = append(batch, l.event(store.StepCompleted, "step", payload))
		}
		want = append(want, batch...)
		commit(t, st, store.Change{RunID: "r", Expect: store.Expect{Epoch: l.epoch}, Events: batch})
	}
	h, err := st.Load(t.Context(), "r", store.Cursor{})
	require.NoError(t, err)
	var got []store.Event
	for e, err := range h.Events {
		require.NoError(t, err)
		_ = append(e.Payload, "the next one"...)
		got = append(got, e)
	}
	require.Len(t, got, len(want))
	var sum uint32
	for i := range got {
		require.Equal(t, want[i].Payload, got[i].Payload, "event %d", got[i].Seq)
		require.Equal(t, got[i].Sum, store.Seal("r", sum, &got[i]), "event %d", got[i].Seq)
		sum = got[i].Sum
	}
}
