package durable

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A branch is over a moment before its channel is closed. Another goroutine may be there in between, on a machine whose
// processors have other work.
func TestFirstNamesABranchWhoseGoroutineIsJustEnding(t *testing.T) {
	wf := Define("w", func(ctx context.Context, _ int) (int, error) {
		s, err := scopeOf(ctx, "won")
		if err != nil {
			return 0, err
		}
		ending := func(over bool) *Future[int] {
			return &Future[int]{branch: &branch{run: s.run, key: "b", done: make(chan struct{}), over: over}, value: 7}
		}
		i, v, err := First(ctx, "won", ending(false), ending(true))
		return 10*i + v, err
	})
	eng, err := Open(t.Context(), memory.Open(), Options{Workflows: []Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	out, err := wf.Run(NewContext(t.Context(), eng), "r", 0)
	require.NoError(t, err)
	require.Equal(t, 17, out)
}

// locker calls at with the number of each lock.
type locker struct {
	sync.Locker
	locks int
	at    func(lock int)
}

func (l *locker) Lock() {
	l.locks++
	l.at(l.locks)
	l.Locker.Lock()
}

// A cancel may end the branches while First looks which of them is over. Such a branch has no outcome on record, and a
// replay would wait for one.
func TestFirstRecordsNoWinnerThatACancelHasEnded(t *testing.T) {
	stopped := errors.New("cancelled")
	for _, end := range []int{1, 2, 3} { // before the wait for a branch, before the first look and before the second
		wf := Define("w", func(ctx context.Context, _ int) (int, error) {
			s, err := scopeOf(ctx, "won")
			if err != nil {
				return 0, err
			}
			r := s.run
			done := make(chan struct{})
			close(done)
			won := &Future[int]{branch: &branch{run: r, key: "a", done: done, over: true}}
			held := r.waits.mu
			r.waits.mu = &locker{Locker: held, at: func(lock int) {
				if lock == end {
					r.stop.because(stopped)
					won.err = stopped
				}
			}}
			_, _, err = First(ctx, "won", &Future[int]{branch: &branch{run: r, key: "b", done: make(chan struct{})}}, won)
			r.waits.mu = held
			require.ErrorIs(t, err, stopped)
			require.False(t, r.log.Stashes())
			return 0, err
		})
		st := memory.Open()
		eng, err := Open(t.Context(), st, Options{Workflows: []Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		_, err = wf.Run(NewContext(t.Context(), eng), "r", 0)
		require.Error(t, err)
		h, err := st.Load(t.Context(), "r", store.Cursor{})
		require.NoError(t, err)
		for ev, err := range h.Events {
			require.NoError(t, err)
			require.NotEqual(t, store.FirstWon, ev.Type, "%d", end)
		}
		require.NoError(t, eng.Close())
	}
}
