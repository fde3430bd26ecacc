package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// The stores of this file are broken, each in one way. They wrap the memory
// store; state that outlives a handle is made once per data, by the func that
// breaks returns.

// changed is a store whose batches pass through a func first.
type changed struct {
	store.Store
	change func(next store.Store, ctx context.Context, batch []store.Change) []error
}

func (s changed) Commit(ctx context.Context, batch []store.Change) []error {
	return s.change(s.Store, ctx, batch)
}

// edited breaks each Change by itself, on a copy.
func edited(edit func(c *store.Change)) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			return changed{s, func(next store.Store, ctx context.Context, batch []store.Change) []error {
				batch = slices.Clone(batch)
				for i := range batch {
					edit(&batch[i])
				}
				return next.Commit(ctx, batch)
			}}
		}
	}
}

// each commits the members of a batch one by one.
func each(commit func(next store.Store, ctx context.Context, c store.Change) error) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			return changed{s, func(next store.Store, ctx context.Context, batch []store.Change) []error {
				errs := make([]error, len(batch))
				for i := range batch {
					errs[i] = commit(next, ctx, batch[i])
				}
				return errs
			}}
		}
	}
}

func commit(s store.Store, ctx context.Context, c store.Change) error {
	return s.Commit(ctx, []store.Change{c})[0]
}

// losesAnEvent acknowledges every fifth checkpoint without keeping it.
func losesAnEvent() func(store.Store) store.Store {
	var n atomic.Int64
	return each(func(next store.Store, ctx context.Context, c store.Change) error {
		if c.Plain() && n.Add(1)%5 == 0 {
			return nil
		}
		return commit(next, ctx, c)
	})()
}

// ignoresTheEpoch writes for whoever comes.
var ignoresTheEpoch = each(func(next store.Store, ctx context.Context, c store.Change) error {
	err := commit(next, ctx, c)
	if !errors.Is(err, store.ErrFenced) || !c.Plain() {
		return err
	}
	h, lerr := next.Load(ctx, c.RunID, store.Cursor{NoEvents: true})
	if lerr != nil {
		return lerr
	}
	c.Expect.Epoch = h.Run.Last.Epoch
	return commit(next, ctx, c)
})

// halvesAChange delivers messages and starts runs on their own, after the rest.
var halvesAChange = each(func(next store.Store, ctx context.Context, c store.Change) error {
	if c.RunID == "" {
		return commit(next, ctx, c)
	}
	rest := store.Change{Send: c.Send, Start: c.Start}
	c.Send, c.Start = nil, nil
	if err := commit(next, ctx, c); err != nil || len(rest.Send)+len(rest.Start) == 0 {
		return err
	}
	return commit(next, ctx, rest)
})

// failsTogether reports one failure for the whole batch.
func failsTogether() func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		return changed{s, func(next store.Store, ctx context.Context, batch []store.Change) []error {
			errs := next.Commit(ctx, batch)
			if err := errors.Join(errs...); err != nil {
				for i := range errs {
					errs[i] = err
				}
			}
			return errs
		}}
	}
}

// keepsTheOwner forgets that a yield ends its owner's writes.
var keepsTheOwner = edited(func(c *store.Change) {
	if c.Row == nil || c.Row.Status == nil || !c.Row.Status.Terminal() {
		c.Yield = false
	}
})

// forgetsWhatItDid takes a change that is sent again for a foreign one.
func forgetsWhatItDid() func(store.Store) store.Store {
	var mu sync.Mutex
	done := make(map[string]bool)
	return each(func(next store.Store, ctx context.Context, c store.Change) error {
		err := commit(next, ctx, c)
		if n := len(c.Events); err == nil && n > 0 {
			mu.Lock()
			defer mu.Unlock()
			key := fmt.Sprint(c.RunID, c.Expect.Epoch, c.Events[n-1].Seq, c.Events[n-1].Sum)
			if done[key] {
				return store.ErrFenced
			}
			done[key] = true
		}
		return err
	})()
}

// takesAnyStatus says yes to every step of a status.
var takesAnyStatus = each(func(next store.Store, ctx context.Context, c store.Change) error {
	err := commit(next, ctx, c)
	var status *store.StatusError
	if errors.As(err, &status) && status.To != "" {
		return nil
	}
	return err
})

// createsTwice takes any run under an id for the one to be created.
var createsTwice = each(func(next store.Store, ctx context.Context, c store.Change) error {
	err := commit(next, ctx, c)
	if errors.Is(err, store.ErrExists) && c.Create != nil && c.Create.Dedup == "" {
		return nil
	}
	return err
})

// patchesUnfenced writes the row under any epoch.
var patchesUnfenced = each(func(next store.Store, ctx context.Context, c store.Change) error {
	err := commit(next, ctx, c)
	if !errors.Is(err, store.ErrFenced) || len(c.Events) > 0 {
		return err
	}
	h, lerr := next.Load(ctx, c.RunID, store.Cursor{NoEvents: true})
	if lerr != nil {
		return lerr
	}
	c.Expect.Epoch = h.Run.Epoch
	return commit(next, ctx, c)
})

var forgetsKeys = edited(func(c *store.Change) { c.Hold = nil })

var ignoresDedup = edited(func(c *store.Change) {
	if c.Create != nil {
		run := *c.Create
		run.Dedup = ""
		c.Create = &run
	}
})

// dropsASignal delivers the first message of a change alone.
var dropsASignal = edited(func(c *store.Change) {
	if len(c.Send) > 1 {
		c.Send = c.Send[:1]
	}
})

// doublesMessages does not know a message again.
func doublesMessages() func(store.Store) store.Store {
	var n atomic.Int64
	return edited(func(c *store.Change) {
		c.Send = slices.Clone(c.Send)
		for i := range c.Send {
			c.Send[i].ID = fmt.Sprint(c.Send[i].ID, "-", n.Add(1))
		}
	})()
}

var ignoresNoCancel = edited(func(c *store.Change) { c.Expect.NoCancel = false })

// swapsEvents reads every second pair of events in the wrong order.
func swapsEvents() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return swapping{s} }
}

type swapping struct{ store.Store }

func (s swapping) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := s.Store.Load(ctx, id, c)
	if err != nil {
		return nil, err
	}
	h.Events = swapped(h.Events)
	return h, nil
}

func swapped(events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		var all []store.Event
		for e, err := range events {
			if err != nil {
				yield(e, err)
				return
			}
			all = append(all, e)
		}
		if n := len(all); n > 2 {
			all[n-1], all[n-2] = all[n-2], all[n-1]
		}
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// readsStale answers a second Load of a run from what the first one saw.
func readsStale() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return &stale{Store: s, seen: make(map[string]store.Run)} }
}

type stale struct {
	store.Store
	mu   sync.Mutex
	seen map[string]store.Run
}

func (s *stale) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := s.Store.Load(ctx, id, c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.seen[id]; ok && old.Epoch == h.Run.Epoch {
		h.Run = old
	}
	s.seen[id] = h.Run
	return h, nil
}

// forgetsAFilter lists the runs of every queue, and counts them.
func forgetsAFilter() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return unfiltered{s} }
}

type unfiltered struct{ store.Store }

func (s unfiltered) List(ctx context.Context, f store.Filter) (store.Page, error) {
	f.Queues = nil
	return s.Store.List(ctx, f)
}

func (s unfiltered) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	f.Queues = nil
	return s.Store.Count(ctx, f, by)
}

// pagesByOffset counts runs to find its place again, as OFFSET does.
func pagesByOffset() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return offset{s} }
}

type offset struct{ store.Store }

func (s offset) List(ctx context.Context, f store.Filter) (store.Page, error) {
	skip, limit := 0, f.Limit
	if f.After != "" {
		n, err := strconv.Atoi(f.After)
		if err != nil {
			return store.Page{}, store.ErrInvalid
		}
		skip = n
	}
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	f.After, f.Limit = "", 1<<20
	p, err := s.Store.List(ctx, f)
	if err != nil {
		return p, err
	}
	p.Runs = p.Runs[min(skip, len(p.Runs)):]
	if len(p.Runs) > limit {
		p.Runs, p.Next = p.Runs[:limit], strconv.Itoa(skip+limit)
	}
	return p, nil
}

// claimsTwice hands out a run that somebody has just claimed.
func claimsTwice() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return claimingTwice{s} }
}

type claimingTwice struct{ store.Store }

func (s claimingTwice) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	runs, err := s.Store.Claim(ctx, c)
	if err != nil || len(runs) > 0 {
		return runs, err
	}
	for _, id := range c.IDs {
		if h, err := s.Load(ctx, id, store.Cursor{NoEvents: true}); err == nil && h.Run.Last.Type.Claims() && h.Run.Owner != "" {
			runs = append(runs, h.Run)
		}
	}
	return runs, nil
}

// forgetsStrikes counts no deaths.
func forgetsStrikes() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return strikeless{s} }
}

type strikeless struct{ store.Store }

func (s strikeless) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	runs, err := s.Store.Claim(ctx, c)
	for i := range runs {
		zero := int32(0)
		runs[i].Strikes = 0
		reset := store.Change{RunID: runs[i].ID, Expect: store.Expect{Epoch: runs[i].Epoch}, Row: &store.RowPatch{Strikes: &zero}}
		if err := commit(s.Store, ctx, reset); err != nil {
			return nil, err
		}
	}
	return runs, err
}

// leasesTooLong takes an executor for live a thousand times as long.
func leasesTooLong() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return lenient{s} }
}

type lenient struct{ store.Store }

func (s lenient) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	e.Lease *= 1000
	return s.Store.Beat(ctx, e)
}

// deletesByID does not look at which run has the id.
func deletesByID() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return careless{s} }
}

type careless struct{ store.Store }

func (s careless) Delete(ctx context.Context, d store.Deletion) (int, error) {
	d.Epochs = nil
	return s.Store.Delete(ctx, d)
}

// reusesEpochs counts epochs from the first one up to the next and back again.
func reusesEpochs() func(store.Store) store.Store {
	var first sync.Map // run id to the epoch it was created with
	return func(s store.Store) store.Store { return reusing{s, &first} }
}

type reusing struct {
	store.Store
	first *sync.Map
}

func (s reusing) fold(id string, epoch int64) int64 {
	if first, ok := s.first.Load(id); ok {
		return first.(int64) + (epoch-first.(int64))%2
	}
	return epoch
}

func (s reusing) foldRun(r *store.Run) {
	r.Epoch = s.fold(r.ID, r.Epoch)
	if r.Last != nil {
		r.Last.Epoch = s.fold(r.ID, r.Last.Epoch)
	}
}

func (s reusing) Commit(ctx context.Context, batch []store.Change) []error {
	batch = slices.Clone(batch)
	for i := range batch {
		c := &batch[i]
		if c.Create != nil {
			s.first.LoadOrStore(c.RunID, c.Create.Epoch)
		} else if h, err := s.Store.Load(ctx, c.RunID, store.Cursor{NoEvents: true}); err == nil && s.fold(c.RunID, h.Run.Epoch) == c.Expect.Epoch {
			c.Expect.Epoch = h.Run.Epoch
		}
	}
	return s.Store.Commit(ctx, batch)
}

func (s reusing) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := s.Store.Load(ctx, id, c)
	if err != nil {
		return nil, err
	}
	s.foldRun(&h.Run)
	events := h.Events
	h.Events = func(yield func(store.Event, error) bool) {
		for e, err := range events {
			e.Epoch = s.fold(id, e.Epoch)
			if !yield(e, err) {
				return
			}
		}
	}
	return h, nil
}

func (s reusing) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	runs, err := s.Store.Claim(ctx, c)
	for i := range runs {
		s.foldRun(&runs[i])
	}
	return runs, err
}

// ignoresContexts works on for callers that have gone.
func ignoresContexts() func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		return changed{s, func(next store.Store, ctx context.Context, batch []store.Change) []error {
			return next.Commit(context.WithoutCancel(ctx), batch)
		}}
	}
}

// staysOpen does not close.
func staysOpen() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return open{s} }
}

type open struct{ store.Store }

func (open) Close() error { return nil }

// roundsTimes keeps milliseconds.
var roundsTimes = edited(func(c *store.Change) {
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		c.Events[i].Took = c.Events[i].Took.Round(time.Millisecond)
	}
})

// isWell is broken in no way: the wrapping itself must not fail the suite.
var isWell = edited(func(*store.Change) {})

// reusesItsBuffer hands out the payloads of all events in one place.
func reusesItsBuffer() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return bufferReuser{s} }
}

type bufferReuser struct{ store.Store }

func (b bufferReuser) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := b.Store.Load(ctx, id, c)
	if err != nil {
		return h, err
	}
	events, buffer := h.Events, make([]byte, 0, 1<<10)
	h.Events = func(yield func(store.Event, error) bool) {
		for e, err := range events {
			if len(e.Payload) > 0 && len(e.Payload) <= cap(buffer) {
				e.Payload = append(buffer[:0], e.Payload...)
			}
			if !yield(e, err) {
				return
			}
		}
	}
	return h, nil
}

// readsOnLater reads the events as they are when they are ranged over.
func readsOnLater() func(store.Store) store.Store {
	return func(s store.Store) store.Store { return laterReader{s} }
}

type laterReader struct{ store.Store }

func (l laterReader) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := l.Store.Load(ctx, id, c)
	if err != nil || c.NoEvents {
		return h, err
	}
	h.Events = func(yield func(store.Event, error) bool) {
		now, err := l.Store.Load(ctx, id, c)
		if err != nil {
			yield(store.Event{}, err)
			return
		}
		now.Events(yield)
	}
	return h, nil
}
