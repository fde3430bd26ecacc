package memory

import (
	"context"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory/internal/eventlog"
)

// Load implements store.Store. All of it is as of one moment, including the events.
func (s *Store) Load(ctx context.Context, runID string, c store.Cursor) (*store.History, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.data.mu.Unlock()
	return s.load(ctx, runID, c)
}

// LoadAll implements store.Loader. All runs are as of one moment.
func (s *Store) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	if err := s.read(ctx); err != nil {
		return store.LoadedNothing(len(loads), err)
	}
	defer s.data.mu.Unlock()
	all := make([]store.Loaded, len(loads))
	for i := range loads {
		all[i].History, all[i].Err = s.load(ctx, loads[i].RunID, loads[i].Cursor)
	}
	return all
}

func (s *Store) load(ctx context.Context, runID string, c store.Cursor) (*store.History, error) {
	r := s.data.runs[runID]
	if r == nil {
		return nil, notFound(runID)
	}
	h := &store.History{
		Run:      r.view(true),
		Branches: slices.Clone(r.branches),
		Events:   func(func(store.Event, error) bool) {},
	}
	for i := max(c.AfterMessage, 0); i < int64(len(r.inbox)); i++ {
		h.Inbox = append(h.Inbox, copyMessage(&r.inbox[i]))
	}
	if !c.NoEvents {
		h.Events = s.events(ctx, r.log.Snapshot(), wanted(r, c), c)
	}
	return h, nil
}

// wanted returns the test for the branches that c asks for.
func wanted(r *run, c store.Cursor) func(*store.Event) bool {
	if c.All {
		return func(*store.Event) bool { return true }
	}
	n := r.row.Branch
	if c.Branch != nil {
		n = *c.Branch
	}
	return store.LineageOf(r.branches, n).Has
}

func (s *Store) events(ctx context.Context, l eventlog.Log, want func(*store.Event) bool, c store.Cursor) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		from := min(max(c.After, 0), l.Len()) + 1
		if c.Tail > 0 {
			from = tail(l, want, from, c.Tail)
		}
		for seq := from; seq <= l.Len(); seq++ {
			if err := s.usable(ctx); err != nil {
				yield(store.Event{}, err)
				return
			}
			if e := l.Read(seq); want(&e) && !yield(e, nil) {
				return
			}
		}
	}
}

// usable reports why a reader of events has to stop.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.done:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}

// tail returns the Seq of the n-th last wanted event at or after from.
func tail(l eventlog.Log, want func(*store.Event) bool, from int64, n int) int64 {
	first := l.Len() + 1
	for seq := l.Len(); seq >= from && n > 0; seq-- {
		if want(l.At(seq)) {
			first = seq
			n--
		}
	}
	return first
}
