package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func create(id string, at store.Time) store.Change {
	e := store.Event{Seq: 1, Type: store.WorkflowCreated, At: at, Payload: []byte(`{"n":1}`)}
	e.Sum = store.Seal(id, 0, &e)
	return store.Change{
		RunID: id, Expect: store.Expect{Absent: true}, Events: []store.Event{e},
		Create: &store.Run{ID: id, Workflow: "w", Version: "1", Status: store.Pending, Epoch: int64(at), CreatedAt: at},
	}
}

func TestHandlesShareDataAndCloseAlone(t *testing.T) {
	ctx := t.Context()
	a := memory.Open()
	b := a.Handle()
	require.NoError(t, a.Commit(ctx, []store.Change{create("r", 1)})[0])
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Commit(ctx, []store.Change{create("s", 1)})[0], store.ErrClosed)
	h, err := b.Load(ctx, "r", store.Cursor{})
	require.NoError(t, err)
	require.Equal(t, int64(1), h.Run.Last.Seq)
	c := a.Handle()
	_, err = c.Load(ctx, "r", store.Cursor{})
	require.NoError(t, err)
}

func TestBytesAreCopiedBothWays(t *testing.T) {
	ctx := t.Context()
	s := memory.Open()
	c := create("r", 1)
	c.Create.Attributes = map[string]string{"k": "v"}
	require.NoError(t, s.Commit(ctx, []store.Change{c})[0])
	c.Events[0].Payload[0] = 'X'
	c.Create.Attributes["k"] = "changed"
	read := func() *store.History {
		h, err := s.Load(ctx, "r", store.Cursor{})
		require.NoError(t, err)
		return h
	}
	h := read()
	require.Equal(t, `{"n":1}`, string(h.Run.Last.Payload))
	require.Equal(t, "v", h.Run.Attributes["k"])
	h.Run.Last.Payload[0] = 'Y'
	h.Run.Attributes["k"] = "changed"
	require.Equal(t, `{"n":1}`, string(read().Run.Last.Payload))
	require.Equal(t, "v", read().Run.Attributes["k"])
}

func TestLeaseRunsOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := memory.Open()
		defer s.Close()
		beat := func(id string) {
			_, err := s.Beat(ctx, store.Executor{ID: id, Lease: time.Minute})
			require.NoError(t, err)
		}
		claim := func(id string) int {
			runs, err := s.Claim(ctx, store.Claim{Executor: id, Max: 1, IDs: []string{"r"}, Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}}})
			require.NoError(t, err)
			return len(runs)
		}
		require.NoError(t, s.Commit(ctx, []store.Change{create("r", 1)})[0])
		beat("a")
		require.Equal(t, 1, claim("a"))
		time.Sleep(time.Minute - time.Microsecond)
		beat("b")
		require.Zero(t, claim("b"), "the lease has a microsecond left")
		time.Sleep(time.Microsecond)
		require.Equal(t, 1, claim("b"))
	})
}

func TestNotifyMayCallTheStore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := memory.Open()
	heard := make(chan string)
	ended := make(chan error)
	go func() {
		ended <- s.Notify(ctx, func(n store.Notice) {
			for _, id := range n.RunIDs {
				h, err := s.Load(ctx, id, store.Cursor{NoEvents: true})
				if err == nil {
					heard <- h.Run.ID
				}
			}
		})
	}()
	// The listener registers at a moment of its own, so this is done until one is heard.
	for i := store.Time(1); ; i++ {
		require.NoError(t, s.Commit(ctx, []store.Change{create(time.UnixMicro(int64(i)).String(), i)})[0])
		select {
		case <-heard:
			cancel()
			for {
				select {
				case <-heard:
				case err := <-ended:
					require.ErrorIs(t, err, context.Canceled)
					return
				}
			}
		default:
		}
	}
}

func TestLongLogIsReadInOrderWhileItGrows(t *testing.T) {
	ctx := t.Context()
	s := memory.Open()
	require.NoError(t, s.Commit(ctx, []store.Change{create("r", 1)})[0])
	const n = 2000
	var written atomic.Int64
	written.Store(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seq := int64(2); seq <= n; seq++ {
			c := store.Change{RunID: "r", Expect: store.Expect{Epoch: 1}, Events: []store.Event{{Seq: seq, Type: store.StepCompleted, Payload: []byte{byte(seq)}}}}
			if err := s.Commit(ctx, []store.Change{c})[0]; err != nil {
				t.Errorf("event %d: %v", seq, err)
				return
			}
			written.Store(seq)
		}
	}()
	for stop := false; !stop; {
		select {
		case <-done:
			stop = true
		default:
		}
		before := written.Load()
		h, err := s.Load(ctx, "r", store.Cursor{})
		require.NoError(t, err)
		seq := int64(0)
		for e, err := range h.Events {
			require.NoError(t, err)
			seq++
			require.Equal(t, seq, e.Seq)
		}
		require.GreaterOrEqual(t, seq, before)
	}
	require.Equal(t, int64(n), written.Load())
}

// BenchmarkCheckpoint writes runs of 1,000 checkpoints, as they come, and
// deletes each when it is written.
func BenchmarkCheckpoint(b *testing.B) {
	ctx := b.Context()
	s := memory.Open()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	e := store.Event{Type: store.StepCompleted, Key: "charge", Payload: []byte(`{"v":1,"codec":"json","data":42}`)}
	batch := []store.Change{{RunID: "order-42", Expect: store.Expect{Epoch: 1}, Events: []store.Event{e}}}
	b.ReportAllocs()
	for seq := int64(0); b.Loop(); seq++ {
		if seq%1000 == 0 {
			_, err := s.Delete(ctx, store.Deletion{RunIDs: []string{"order-42"}, Force: true})
			check(err)
			check(s.Commit(ctx, []store.Change{create("order-42", 1)})[0])
		}
		batch[0].Events[0].Seq = seq%1000 + 2
		check(s.Commit(ctx, batch)[0])
	}
}
