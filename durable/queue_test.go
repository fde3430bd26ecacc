package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// meter is what the bodies of steps see of the limits of their queue.
type meter struct {
	mu    sync.Mutex
	now   int
	most  int
	began []string
	at    []time.Time
}

// enter counts a body; the returned function ends it.
func (m *meter) enter(id string) (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now++
	m.most = max(m.most, m.now)
	m.began, m.at = append(m.began, id), append(m.at, time.Now())
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now--
	}
}

func TestAQueueLetsInNoMoreRunsThanItsMax(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "body", func(ctx context.Context) error {
				defer m.enter(durable.Attempt(ctx).RunID)()
				time.Sleep(time.Second)
				return nil
			})
		})
		o := with(wf)
		o.Queues = []durable.Queue{{Name: "q", Max: 2}}
		w.boot(t, o)
		_, err := durable.Recover(w.ctx())
		require.NoError(t, err)
		began := time.Now()
		for i := range 6 {
			_, err := wf.Start(w.ctx(), fmt.Sprint("r", i), i, durable.OnQueue("q"))
			require.NoError(t, err)
		}
		for i := range 6 {
			_, err := wait(t, w, wf, fmt.Sprint("r", i))
			require.NoError(t, err)
		}
		require.Equal(t, 2, m.most)
		for i := 0; i < 6; i += 2 {
			require.ElementsMatch(t, []string{fmt.Sprint("r", i), fmt.Sprint("r", i+1)}, m.began[i:i+2], "first come, first served")
		}
		require.Less(t, time.Since(began), 3*time.Second+100*time.Millisecond, "a place that becomes free is given at once")
		synctest.Wait()
	})
}

func TestAnotherStartWithTheKeyIsToldWhoHasIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "body", func(ctx context.Context) error { <-hold; return nil })
		})
		w.boot(t, with(wf))
		_, err := durable.Recover(w.ctx())
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "a", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "b", 1, durable.OnQueue("q"), durable.Dedup("k"))
		var conflict *durable.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, &durable.ConflictError{RunID: "b", Want: "w", Queue: "q", Dedup: "k", Holder: "a"}, conflict)
		require.ErrorIs(t, err, durable.ErrConflict)
		_, err = wf.Start(w.ctx(), "a", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err, "a start that is made again")
		_, err = wf.Start(w.ctx(), "c", 1, durable.OnQueue("other"), durable.Dedup("k"))
		require.NoError(t, err, "of another queue")
		close(hold)
		_, err = wait(t, w, wf, "a")
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "b", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err, "the key is free again")
		require.False(t, errors.Is(err, durable.ErrConflict))
	})
}
