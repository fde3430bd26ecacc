// Package loads gathers the loads of runs that are wanted at the same time into sets.
//
// A recovery begins hundreds of runs in a moment, and each asks for its history by itself. Two
// sets are under way at a time; what is asked for meanwhile waits and makes up the next one. So a
// run alone is loaded at once, and of many a hundred share a round trip while those before them
// are replayed. A store that loads one run at a time is asked for each, as soon as it is wanted.
//
//	s := loads.New(ctx, st)
//	h, err := s.Load(ctx, "order-42", store.Cursor{}) // as st.Load
package loads

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Sets loads runs in sets.
type Sets struct {
	ctx    context.Context // for what a set reads on behalf of many callers
	store  store.Store
	loader store.Loader // nil: the store loads one at a time

	mu      sync.Mutex
	waiting []*wanted
	sets    int // under way
	held    int
	asked   int // how many loads were asked for,
	awaited int // and for how many the next set waits
}

// wanted is a load that somebody waits for.
type wanted struct {
	store.RunCursor
	store.Loaded
	left bool           // its caller waits no longer; guarded by the mutex
	lead chan []*wanted // gets the set to load, if it is this one's turn to do so
	done chan struct{}
}

const (
	// maxSet is how many runs one set loads.
	maxSet = 100
	// maxSets is how many sets are under way at a time.
	maxSets = 2
)

// New returns Sets of loads from a store. What they read ends with ctx.
func New(ctx context.Context, s store.Store) *Sets {
	return &Sets{ctx: ctx, store: s, loader: store.CapabilitiesOf(s).Loader}
}

// Hold makes loads wait until release is called, because many more are about to be asked for, and
// then until as many were asked for since Hold as release is told, for a moment at most.
// Releasing again does nothing.
func (s *Sets) Hold() (release func(asks int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held++
	before, held := s.asked, true
	return func(asks int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !held {
			return
		}
		held = false
		s.held--
		if all := before + asks; all > s.asked {
			s.awaited = max(s.awaited, all)
			time.AfterFunc(moment, func() { s.giveUp(all) })
		}
		s.begin()
	}
}

// moment is how long a set waits for loads that were announced. Those who were to ask may have
// ended without.
const moment = 2 * time.Millisecond

// giveUp ends the wait for so many loads.
func (s *Sets) giveUp(all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited <= all {
		s.awaited = 0
	}
	s.begin()
}

// Load is the Load of the store. The range over the events ends with ctx, too.
func (s *Sets) Load(ctx context.Context, runID string, c store.Cursor) (*store.History, error) {
	if s.loader == nil {
		return s.store.Load(ctx, runID, c)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &wanted{RunCursor: store.RunCursor{RunID: runID, Cursor: c}, lead: make(chan []*wanted, 1), done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.asked++
	s.begin()
	s.mu.Unlock()
	select {
	case <-w.done:
	case set := <-w.lead:
		s.load(ctx, set)
	case <-ctx.Done():
		s.leave(w)
		return nil, ctx.Err()
	}
	if w.Err == nil && !c.NoEvents {
		w.History.Events = until(ctx, w.History.Events)
	}
	return w.History, w.Err
}

// begin begins as many sets as may be under way. The first that waits for a set loads it. The
// caller holds the mutex.
func (s *Sets) begin() {
	for s.held == 0 && s.asked >= s.awaited && s.sets < maxSets && len(s.waiting) > 0 {
		n := min(len(s.waiting), maxSet)
		set := s.waiting[:n:n]
		s.waiting = s.waiting[n:]
		s.sets++
		set[0].lead <- set
	}
}

// leave ends the wait of a caller. If that was to load a set, another caller of the set does so.
func (s *Sets) leave(w *wanted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.left = true
	s.waiting = slices.DeleteFunc(s.waiting, func(o *wanted) bool { return o == w })
	select {
	case set := <-w.lead:
		set = slices.DeleteFunc(set, func(o *wanted) bool { return o.left })
		if len(set) > 0 {
			set[0].lead <- set
			return
		}
		s.sets--
		s.begin()
	default:
	}
}

// load loads a set. A single run is loaded for as long as its ctx lasts; a larger set, even if
// nobody waits for it any more.
func (s *Sets) load(ctx context.Context, set []*wanted) {
	asked := make([]store.RunCursor, len(set))
	for i, w := range set {
		asked[i] = w.RunCursor
	}
	if len(set) > 1 {
		ctx = s.ctx
	}
	got := store.LoadedNothing(len(set), errNothing) // what they get if the store panics
	defer func() {
		s.mu.Lock()
		s.sets--
		s.begin()
		s.mu.Unlock()
		for i, w := range set {
			w.Loaded = got[i]
			close(w.done)
		}
	}()
	if all := s.loader.LoadAll(ctx, asked); len(all) == len(set) {
		got = all
	}
}

// errNothing is the outcome of loads that the store did not answer.
var errNothing = errors.New("durable: LoadAll of the store did not return an outcome for each run: see S43 of its contract")

// until yields events as long as ctx has not ended.
func until(ctx context.Context, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		n := 0
		for e, err := range events {
			if n++; n%64 == 0 && ctx.Err() != nil {
				yield(store.Event{}, ctx.Err())
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
