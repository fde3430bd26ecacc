package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestARunFromCreationToCompletion(t *testing.T) {
	s := fresh(t)
	r := &runLog{id: "order-1"}
	commit(t, s, r.create("me"))
	r2 := &runLog{id: "order-2"}
	commit(t, s, r2.create("me"), r.step([]byte("a\x00\xffb")))
	commit(t, s, r2.step(nil), r.step(nil))
	commit(t, s, r.step([]byte("x")))
	commit(t, s, r.complete(), r2.complete())
	h, events := load(t, s, "order-1")
	require.Equal(t, store.Completed, h.Run.Status)
	require.Len(t, events, 5)
	require.Equal(t, []byte("a\x00\xffb"), events[1].Payload)
	require.Equal(t, r.epoch+1, events[4].Epoch)
}
