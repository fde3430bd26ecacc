package loads_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loads"
	"github.com/holdfast-dev/holdfast/store"
)

// shelf is a store that loads in sets, each when it is let.
type shelf struct {
	store.Store
	mu   sync.Mutex
	sets [][]string
	let  chan struct{} // nil: at once
	load func(ctx context.Context, l []store.RunCursor) []store.Loaded
}

var errGone = fmt.Errorf("gone: %w", store.ErrNotFound)

func (s *shelf) LoadAll(ctx context.Context, list []store.RunCursor) []store.Loaded {
	var ids []string
	for _, l := range list {
		ids = append(ids, l.RunID)
	}
	s.mu.Lock()
	s.sets = append(s.sets, ids)
	s.mu.Unlock()
	if s.let != nil {
		select {
		case <-s.let:
		case <-ctx.Done():
			return store.LoadedNothing(len(list), ctx.Err())
		}
	}
	if s.load != nil {
		return s.load(ctx, list)
	}
	all := make([]store.Loaded, len(list))
	for i, id := range ids {
		if all[i].Err = errGone; id != "gone" {
			all[i] = store.Loaded{History: &store.History{Run: store.Run{ID: id}, Events: func(func(store.Event, error) bool) {}}}
		}
	}
	return all
}

func (s *shelf) sizes() (n []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		n = append(n, len(set))
	}
	return n
}

// ask loads a run on a goroutine of its own.
func ask(ctx context.Context, sets *loads.Sets, id string) <-chan error {
	got := make(chan error, 1)
	go func() {
		h, err := sets.Load(ctx, id, store.Cursor{})
		if err == nil && h.Run.ID != id {
			err = fmt.Errorf("%s was loaded for %s", h.Run.ID, id)
		}
		got <- err
	}()
	synctest.Wait()
	return got
}

func TestWhatIsWantedWhileTwoSetsAreLoadedMakesUpTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{let: make(chan struct{})}
		sets := loads.New(t.Context(), s)
		var got []<-chan error
		for i := range 250 {
			got = append(got, ask(t.Context(), sets, fmt.Sprint("r", i)))
		}
		gone := ask(t.Context(), sets, "gone")
		require.Equal(t, []int{1, 1}, s.sizes())
		close(s.let)
		for _, g := range got {
			require.NoError(t, <-g)
		}
		require.ErrorIs(t, <-gone, store.ErrNotFound, "and nobody else is told so")
		require.ElementsMatch(t, []int{1, 1, 100, 100, 49}, s.sizes())
	})
}

func TestAHeldSetBeginsWhenTheLastHoldIsReleasedAndReleasingAgainDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		sets := loads.New(t.Context(), s)
		first, second := sets.Hold(), sets.Hold()
		a, b := ask(t.Context(), sets, "a"), ask(t.Context(), sets, "b")
		first(0)
		first(0)
		synctest.Wait()
		require.Empty(t, s.sizes())
		second(0)
		require.NoError(t, <-a)
		require.NoError(t, <-b)
		require.Equal(t, []int{2}, s.sizes())
		third := sets.Hold()
		third(0)
		third(0)
		require.NoError(t, <-ask(t.Context(), sets, "c"))
	})
}

func TestASetWaitsForThoseThatWereAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		sets := loads.New(t.Context(), s)
		release := sets.Hold()
		a := ask(t.Context(), sets, "a")
		synctest.Wait()
		release(3)
		b := ask(t.Context(), sets, "b")
		synctest.Wait()
		require.Empty(t, s.sizes())
		c, began := ask(t.Context(), sets, "c"), time.Now()
		for _, got := range []<-chan error{a, b, c} {
			require.NoError(t, <-got)
		}
		require.Equal(t, []int{3}, s.sizes())
		require.Zero(t, time.Since(began))

		sets.Hold()(2)
		require.NoError(t, <-ask(t.Context(), sets, "alone"))
		require.Equal(t, 2*time.Millisecond, time.Since(began), "the other one does not come")
	})
}

func TestOneWhoLeavesDoesNotKeepTheOthersOfItsSet(t *testing.T) {
	for leaves := range 3 {
		synctest.Test(t, func(t *testing.T) {
			s := &shelf{}
			sets := loads.New(t.Context(), s)
			release := sets.Hold()
			var got []<-chan error
			var cancel []context.CancelFunc
			for i := range 3 {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				got, cancel = append(got, ask(ctx, sets, fmt.Sprint(i))), append(cancel, stop)
			}
			cancel[leaves]()
			release(0) // at the same moment: it may still be the one that is to load
			for i, g := range got {
				if err := <-g; i != leaves || err != nil && !errors.Is(err, context.Canceled) {
					require.NoError(t, err)
				}
			}
			require.NoError(t, <-ask(t.Context(), sets, "later"), "the place of the set is free")
			require.NoError(t, <-ask(t.Context(), sets, "and again"))
		})
	}
}

func TestOneWhoLeavesWhileItWaitsReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{let: make(chan struct{})}
		sets := loads.New(t.Context(), s)
		a, b := ask(t.Context(), sets, "a"), ask(t.Context(), sets, "b")
		ctx, cancel := context.WithCancel(t.Context())
		left := ask(ctx, sets, "left")
		stays := ask(t.Context(), sets, "stays")
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		close(s.let)
		for _, g := range []<-chan error{a, b, stays} {
			require.NoError(t, <-g)
		}
		require.Equal(t, []int{1, 1, 1}, s.sizes())
	})
}

func TestARunAloneIsLoadedForAsLongAsItsContextLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{let: make(chan struct{})}
		sets := loads.New(t.Context(), s)
		ctx, cancel := context.WithCancel(t.Context())
		got := ask(ctx, sets, "a")
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		close(s.let)
		require.NoError(t, <-ask(t.Context(), sets, "b"))
	})
}

func TestASetUnderWayEndsWithTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{let: make(chan struct{})}
		life, end := context.WithCancel(t.Context())
		sets := loads.New(life, s)
		release := sets.Hold()
		a, b := ask(t.Context(), sets, "a"), ask(t.Context(), sets, "b")
		release(0)
		synctest.Wait()
		end()
		require.ErrorIs(t, <-a, context.Canceled)
		require.ErrorIs(t, <-b, context.Canceled)
	})
}

func TestAStoreThatSaysTooLittleOrPanicsLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{load: func(context.Context, []store.RunCursor) []store.Loaded { return nil }}
		sets := loads.New(t.Context(), s)
		require.ErrorContains(t, <-ask(t.Context(), sets, "a"), "S43")
		s.load = func(context.Context, []store.RunCursor) []store.Loaded { panic("ouch") }
		for range 3 {
			require.Panics(t, func() { _, _ = sets.Load(t.Context(), "a", store.Cursor{}) })
		}
		s.load = nil
		require.NoError(t, <-ask(t.Context(), sets, "a"))
	})
}

func TestTheEventsEndWithTheContextOfWhoReadsThem(t *testing.T) {
	var stop atomic.Bool
	s := &shelf{load: func(_ context.Context, l []store.RunCursor) []store.Loaded {
		return []store.Loaded{{History: &store.History{Events: func(yield func(store.Event, error) bool) {
			for !stop.Load() && yield(store.Event{}, nil) {
			}
		}}}}
	}}
	defer stop.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, err := loads.New(t.Context(), s).Load(ctx, "a", store.Cursor{})
	require.NoError(t, err)
	n := 0
	for _, err = range h.Events {
		if n++; n == 1000 {
			cancel()
		}
	}
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, n, 1100)
}
