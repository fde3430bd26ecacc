package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// A mutant is a store that is wrong in one way. It is shown to one case, by, which
// must fail and name the clause.
type mutant struct {
	name   string
	clause string
	by     string // in the name of the case
	wraps  func() func(store.Store) store.Store
}

// altered is a sound store with some methods replaced.
type altered struct {
	store.Store
	commit    func(next store.Store, ctx context.Context, batch []store.Change) []error
	load      func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error)
	list      func(next store.Store, ctx context.Context, f store.Filter) (store.Page, error)
	count     func(next store.Store, ctx context.Context, f store.Filter, by string) (map[string]int64, error)
	claim     func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error)
	beat      func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error)
	executors func(next store.Store, ctx context.Context) ([]store.Executor, error)
	remove    func(next store.Store, ctx context.Context, d store.Deletion) (int, error)
}

func (a altered) Commit(ctx context.Context, batch []store.Change) []error {
	if a.commit == nil {
		return a.Store.Commit(ctx, batch)
	}
	return a.commit(a.Store, ctx, batch)
}

func (a altered) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if a.load == nil {
		return a.Store.Load(ctx, id, c)
	}
	return a.load(a.Store, ctx, id, c)
}

func (a altered) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if a.list == nil {
		return a.Store.List(ctx, f)
	}
	return a.list(a.Store, ctx, f)
}

func (a altered) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	if a.count == nil {
		return a.Store.Count(ctx, f, by)
	}
	return a.count(a.Store, ctx, f, by)
}

func (a altered) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if a.claim == nil {
		return a.Store.Claim(ctx, c)
	}
	return a.claim(a.Store, ctx, c)
}

func (a altered) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if a.beat == nil {
		return a.Store.Beat(ctx, e)
	}
	return a.beat(a.Store, ctx, e)
}

func (a altered) Executors(ctx context.Context) ([]store.Executor, error) {
	if a.executors == nil {
		return a.Store.Executors(ctx)
	}
	return a.executors(a.Store, ctx)
}

func (a altered) Delete(ctx context.Context, d store.Deletion) (int, error) {
	if a.remove == nil {
		return a.Store.Delete(ctx, d)
	}
	return a.remove(a.Store, ctx, d)
}

// with makes a mutant of one altered method or more.
func with(a altered) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		return func(s store.Store) store.Store {
			a := a
			a.Store = s
			return a
		}
	}
}

// pulses alters what a beat brings.
func pulses(edit func(p *store.Pulse, e store.Executor)) func() func(store.Store) store.Store {
	return with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
		p, err := next.Beat(ctx, e)
		edit(&p, e)
		return p, err
	}})
}

// cutClaims alters how claims are answered whose context ends, although they have
// taken runs, and what later ones return; left is kept from call to call.
func cutClaims(answer func(left *[]store.Run, c store.Claim, runs []store.Run, err error) ([]store.Run, error)) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		var mu sync.Mutex
		var left []store.Run
		return with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			runs, err := next.Claim(context.WithoutCancel(ctx), c)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			return answer(&left, c, runs, ctx.Err())
		}})()
	}
}

// handing makes a claim hand over the first event of those runs for which whole returns true, as
// edit leaves it. whole sees the run as it was before the claim; the claim has taken it if took.
func handing(whole func(before *store.History, took bool) bool, edit func(e *store.Event)) func() func(store.Store) store.Store {
	yield := func(n int) { // so that what others do falls in between
		for range n {
			runtime.Gosched()
		}
	}
	return with(altered{commit: func(next store.Store, ctx context.Context, batch []store.Change) []error {
		yield(20)
		return next.Commit(ctx, batch)
	}, claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
		if c.Created == nil {
			return next.Claim(ctx, c)
		}
		before := map[string]*store.History{}
		p, err := next.List(ctx, store.Filter{Statuses: []store.Status{store.Pending}, Limit: 1000})
		for i := range p.Runs {
			if h, err := next.Load(ctx, p.Runs[i].ID, store.Cursor{All: true}); err == nil {
				before[h.Run.ID] = h
			}
		}
		if err != nil {
			return nil, err
		}
		yield(100)
		runs, err := next.Claim(ctx, c)
		for id, h := range before {
			took := slices.ContainsFunc(runs, func(r store.Run) bool { return r.ID == id })
			for e := range h.Events {
				if whole(h, took) {
					edit(&e)
					c.Created(id, e)
				}
				break
			}
		}
		return runs, err
	}})
}

// fresh reports whether a history is its creation and nothing else.
func fresh(h *store.History) bool {
	return h.Run.Last.Seq == 1 && h.Run.Inbox == 0 && len(h.Branches) == 0
}

// claimed alters the rows that a claim returns, and what is stored if patch says so.
func claimed(edit func(r *store.Run) *store.RowPatch) func() func(store.Store) store.Store {
	return with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
		runs, err := next.Claim(ctx, c)
		for i := range runs {
			r := &runs[i]
			p := edit(r)
			if p == nil {
				continue
			}
			if err := commit(next, ctx, store.Change{RunID: r.ID, Expect: store.Expect{Epoch: r.Epoch}, Row: p}); err != nil {
				return nil, err
			}
			h, err := next.Load(ctx, r.ID, store.Cursor{NoEvents: true})
			if err != nil {
				return nil, err
			}
			*r = h.Run
		}
		return runs, err
	}})
}

// rows alters every row that is read.
func rows(edit func(r *store.Run)) func() func(store.Store) store.Store {
	return with(altered{
		load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			h, err := next.Load(ctx, id, c)
			if err == nil {
				edit(&h.Run)
			}
			return h, err
		},
		list: func(next store.Store, ctx context.Context, f store.Filter) (store.Page, error) {
			p, err := next.List(ctx, f)
			for i := range p.Runs {
				edit(&p.Runs[i])
			}
			return p, err
		},
		claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			runs, err := next.Claim(ctx, c)
			for i := range runs {
				edit(&runs[i])
			}
			return runs, err
		},
	})
}

// ranges alters how events are ranged over.
func ranges(alter func(s store.Store, ctx context.Context, id string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error]) func() func(store.Store) store.Store {
	return with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
		h, err := next.Load(ctx, id, c)
		if err == nil {
			h.Events = alter(next, ctx, id, h.Events)
		}
		return h, err
	}})
}

// filtered alters what is asked of List and Count.
func filtered(edit func(f *store.Filter)) func() func(store.Store) store.Store {
	return with(altered{
		list: func(next store.Store, ctx context.Context, f store.Filter) (store.Page, error) {
			edit(&f)
			return next.List(ctx, f)
		},
		count: func(next store.Store, ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
			edit(&f)
			return next.Count(ctx, f, by)
		},
	})
}

// creations alters the rows that are created, those of Start too.
func creations(edit func(r *store.Run)) func() func(store.Store) store.Store {
	var each func(c *store.Change)
	each = func(c *store.Change) {
		if c.Create != nil {
			r := *c.Create
			r.Attributes = maps.Clone(r.Attributes)
			edit(&r)
			c.Create = &r
		}
		c.Start = slices.Clone(c.Start)
		for i := range c.Start {
			each(&c.Start[i])
		}
	}
	return edited(each)
}

// events alters what is stored of each event.
func events(edit func(e *store.Event)) func() func(store.Store) store.Store {
	return edited(func(c *store.Change) {
		c.Events = slices.Clone(c.Events)
		for i := range c.Events {
			edit(&c.Events[i])
		}
	})
}

// freesTheSuccessor frees a dedup value when a run is deleted that had it and has ended.
func freesTheSuccessor() func(store.Store) store.Store {
	var mu sync.Mutex
	freed := map[string]bool{}
	return func(s store.Store) store.Store {
		creating := creations(func(r *store.Run) {
			mu.Lock()
			defer mu.Unlock()
			if freed[r.Dedup] {
				r.Dedup = ""
			}
		})()(s)
		return altered{Store: creating, remove: func(next store.Store, ctx context.Context, d store.Deletion) (int, error) {
			p, err := next.List(ctx, store.Filter{IDs: d.RunIDs, Limit: len(d.RunIDs)})
			if err != nil {
				return 0, err
			}
			n, err := next.Delete(ctx, d)
			mu.Lock()
			defer mu.Unlock()
			for i := range p.Runs {
				freed[p.Runs[i].Dedup] = freed[p.Runs[i].Dedup] || err == nil && p.Runs[i].Status.Terminal()
			}
			return n, err
		}}
	}
}

// reasonFirst names another reason before ErrFenced, where it applies.
func reasonFirst(reason func(next store.Store, ctx context.Context, c store.Change, row store.Run) error) func() func(store.Store) store.Store {
	return each(func(next store.Store, ctx context.Context, c store.Change) error {
		err := commit(next, ctx, c)
		if !errors.Is(err, store.ErrFenced) {
			return err
		}
		h, lerr := next.Load(ctx, c.RunID, store.Cursor{NoEvents: true})
		if lerr != nil {
			return err
		}
		if other := reason(next, ctx, c, h.Run); other != nil {
			return other
		}
		return err
	})
}

// lossy are the mutants that lose one field of a record, made from the record's
// type, so that a field that is added is asked for too.
func lossy(record reflect.Type, clause, by string, not []string, breaks func(zero func(record any)) func() func(store.Store) store.Store) []mutant {
	var list []mutant
	for i := range record.NumField() {
		name := record.Field(i).Name
		if slices.Contains(not, name) {
			continue
		}
		list = append(list, mutant{"loses " + record.Name() + "." + name, clause, by, breaks(func(r any) {
			reflect.ValueOf(r).Elem().Field(i).SetZero()
		})})
	}
	return list
}

func trim(s *string) { *s = strings.TrimRight(*s, " ") }

// keepsSlices keeps the payloads that callers gave.
func keepsSlices() func(store.Store) store.Store {
	return keeps(func(_ *store.Change, e *store.Event) ([]byte, bool) { return e.Payload, true },
		func(e *store.Event, p []byte) { e.Payload = bytes.Clone(p) })
}

// keepsPlainEvents keeps only the list of events of a change that is nothing but events, and copies
// their bytes.
func keepsPlainEvents() func(store.Store) store.Store {
	return keeps(func(c *store.Change, e *store.Event) (*store.Event, bool) { return e, c.Plain() },
		func(e, given *store.Event) { e.Type, e.Key = given.Type, given.Key })
}

// keeps remembers what of says of the events that callers gave, and puts it back into those that are
// read, as a store does that keeps their memory: what they have changed since is then read too.
func keeps[V any](of func(c *store.Change, e *store.Event) (V, bool), back func(e *store.Event, given V)) func(store.Store) store.Store {
	var mu sync.Mutex
	given := make(map[string]V) // by run and seq
	return func(s store.Store) store.Store {
		return altered{
			Store: s,
			commit: func(next store.Store, ctx context.Context, batch []store.Change) []error {
				mu.Lock()
				defer mu.Unlock()
				for i := range batch {
					c := &batch[i]
					for k := range c.Events {
						if v, ok := of(c, &c.Events[k]); ok {
							given[fmt.Sprint(c.RunID, "/", c.Events[k].Seq)] = v
						}
					}
				}
				return next.Commit(ctx, batch)
			},
			load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
				h, err := next.Load(ctx, id, c)
				if err != nil {
					return nil, err
				}
				inner := h.Events
				h.Events = func(yield func(store.Event, error) bool) {
					for e, err := range inner {
						mu.Lock()
						if v, ok := given[fmt.Sprint(id, "/", e.Seq)]; ok {
							back(&e, v)
						}
						mu.Unlock()
						if !yield(e, err) {
							return
						}
					}
				}
				return h, nil
			},
		}
	}
}

func keepsMaps() func(store.Store) store.Store {
	var mu sync.Mutex
	given := make(map[string]map[string]string)
	wrapped := rows(func(r *store.Run) {
		mu.Lock()
		defer mu.Unlock()
		if m, ok := given[r.ID]; ok {
			r.Attributes = maps.Clone(m)
		}
	})()
	return func(s store.Store) store.Store {
		return changed{wrapped(s), func(next store.Store, ctx context.Context, batch []store.Change) []error {
			errs := next.Commit(ctx, batch)
			mu.Lock()
			defer mu.Unlock()
			for i, c := range batch {
				switch {
				case errs[i] != nil:
				case c.Create != nil:
					given[c.RunID] = c.Create.Attributes
				case c.Row != nil && c.Row.Attributes != nil:
					given[c.RunID] = c.Row.Attributes
				}
			}
			return errs
		}}
	}
}

// locksWriters keeps writers out while events are ranged over.
func locksWriters() func(store.Store) store.Store {
	var mu sync.RWMutex
	ranged := ranges(func(_ store.Store, _ context.Context, _ string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
		return func(yield func(store.Event, error) bool) {
			mu.RLock()
			defer mu.RUnlock()
			events(yield)
		}
	})()
	return func(s store.Store) store.Store {
		return changed{ranged(s), func(next store.Store, ctx context.Context, batch []store.Change) []error {
			for !mu.TryLock() {
				if ctx.Err() != nil {
					return slices.Repeat([]error{ctx.Err()}, len(batch))
				}
				time.Sleep(time.Millisecond)
			}
			defer mu.Unlock()
			return next.Commit(ctx, batch)
		}}
	}
}

// leaksConnections has fifty, and does not get one back that a range held which was
// broken off.
func leaksConnections() func(store.Store) store.Store {
	free := make(chan struct{}, 50)
	for range cap(free) {
		free <- struct{}{}
	}
	return with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
		h, err := next.Load(ctx, id, c)
		if err != nil {
			return nil, err
		}
		inner := h.Events
		h.Events = func(yield func(store.Event, error) bool) {
			select {
			case <-free:
			case <-ctx.Done():
				yield(store.Event{}, ctx.Err())
				return
			case <-time.After(time.Second):
				yield(store.Event{}, errors.New("too many connections"))
				return
			}
			for e, err := range inner {
				if !yield(e, err) {
					return
				}
			}
			free <- struct{}{}
		}
		return h, nil
	}})()
}

// torn reads the row at one moment and something of it at another.
func torn(later func(r *store.Run, now *store.Run)) func() func(store.Store) store.Store {
	again := func(s store.Store, ctx context.Context, r *store.Run) {
		time.Sleep(50 * time.Microsecond)
		if h, err := s.Load(ctx, r.ID, store.Cursor{NoEvents: true}); err == nil {
			later(r, &h.Run)
		}
	}
	return with(altered{
		load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			h, err := next.Load(ctx, id, c)
			if err == nil {
				again(next, ctx, &h.Run)
			}
			return h, err
		},
		list: func(next store.Store, ctx context.Context, f store.Filter) (store.Page, error) {
			p, err := next.List(ctx, f)
			for i := range p.Runs {
				again(next, ctx, &p.Runs[i])
			}
			return p, err
		},
	})
}

// shrinks a number to fewer bits and back.
func shrinks[N int8 | int16 | int32](v int64) int64 { return int64(N(v)) }

func mutants() []mutant {
	list := []mutant{
		// Reasons.
		{"a status before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(_ store.Store, _ context.Context, c store.Change, r store.Run) error {
			if len(c.Expect.Statuses) > 0 && !slices.Contains(c.Expect.Statuses, r.Status) {
				return &store.StatusError{RunID: r.ID, Status: r.Status}
			}
			return nil
		})},
		{"a step of the status before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(_ store.Store, _ context.Context, c store.Change, r store.Run) error {
			if c.Row != nil && c.Row.Status != nil && !store.MayFollow(r.Status, *c.Row.Status) {
				return &store.StatusError{RunID: r.ID, Status: r.Status, To: *c.Row.Status}
			}
			return nil
		})},
		{"an unread cancel before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(_ store.Store, _ context.Context, c store.Change, r store.Run) error {
			if c.Expect.NoCancel && r.CancelAsked {
				return store.ErrCancelAsked
			}
			return nil
		})},
		{"an occupied key before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(_ store.Store, _ context.Context, c store.Change, _ store.Run) error {
			if slices.Contains(c.Hold, "desk") {
				return &store.OccupiedError{RunID: c.RunID, Key: "desk", Holder: "held"}
			}
			return nil
		})},
		{"a receiver that is not there before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(next store.Store, ctx context.Context, c store.Change, _ store.Run) error {
			for _, m := range c.Send {
				if _, err := next.Load(ctx, m.To, store.Cursor{NoEvents: true}); err != nil {
					return err
				}
			}
			return nil
		})},
		{"a run that is started and exists before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(next store.Store, ctx context.Context, c store.Change, _ store.Run) error {
			for _, s := range c.Start {
				if _, err := next.Load(ctx, s.RunID, store.Cursor{NoEvents: true}); err == nil {
					return &store.ExistsError{RunID: s.RunID}
				}
			}
			return nil
		})},
		{"a live owner before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(_ store.Store, _ context.Context, c store.Change, r store.Run) error {
			if c.Expect.TakeEpoch && r.Owner != "" {
				return &store.OwnedError{RunID: r.ID, Owner: r.Owner}
			}
			return nil
		})},
		{"a branch that exists before ErrFenced", "S3", "told so, whatever else", reasonFirst(func(_ store.Store, _ context.Context, c store.Change, _ store.Run) error {
			if c.Branch != nil {
				return store.ErrInvalid
			}
			return nil
		})},

		// What was done already.
		{"takes the same event with a yield for carried out", "S6", "the same events under another act", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if n := len(c.Events); errors.Is(err, store.ErrFenced) && n > 0 {
				if h, lerr := next.Load(ctx, c.RunID, store.Cursor{NoEvents: true}); lerr == nil && h.Run.Last.Sum == c.Events[n-1].Sum {
					return nil
				}
			}
			return err
		})},

		// Claims.
		{"a claim clears the code", "S19", "a claim changes what it says", claimed(func(*store.Run) *store.RowPatch { return &store.RowPatch{Code: to("")} })},
		{"a claim clears the reason", "S19", "a claim changes what it says", claimed(func(*store.Run) *store.RowPatch { return &store.RowPatch{Reason: to("")} })},
		{"a claim raises Seen", "S19", "a claim changes what it says", claimed(func(r *store.Run) *store.RowPatch { return &store.RowPatch{Seen: &r.Inbox} })},
		{"a claim clears WakeAt", "S19", "a claim changes what it says", claimed(func(*store.Run) *store.RowPatch { return &store.RowPatch{WakeAt: to(store.Time(0))} })},
		{"a claim clears the deadline", "S19", "a claim changes what it says", claimed(func(*store.Run) *store.RowPatch { return &store.RowPatch{DeadlineAt: to(store.Time(0))} })},
		{"a claim sets StartedAt each time", "S19", "a claim changes what it says", claimed(func(r *store.Run) *store.RowPatch { return &store.RowPatch{StartedAt: &r.Last.At} })},
		{"a claim takes the cancel as read", "S19", "a claim changes what it says", claimed(func(*store.Run) *store.RowPatch { return &store.RowPatch{CancelAsked: to(false)} })},
		{"a claim returns no attributes", "S19", "a claim changes what it says", claimed(func(r *store.Run) *store.RowPatch { r.Attributes = nil; return nil })},
		{"a claim returns the row as it was", "S19", "a claim starts a pending run", claimed(func(r *store.Run) *store.RowPatch { r.Status = store.Pending; return nil })},
		{"a claim does not return its event", "S27", "a claim changes what it says", claimed(func(r *store.Run) *store.RowPatch { r.Last = nil; return nil })},
		{"a claim hands over what it has left", "S41", "the creation that a claim hands over", handing(func(h *store.History, _ bool) bool { return fresh(h) }, func(*store.Event) {})},
		{"a claim overlooks messages", "S41", "the creation that a claim hands over", handing(func(h *store.History, took bool) bool {
			return took && h.Run.Last.Seq == 1 && len(h.Branches) == 0
		}, func(*store.Event) {})},
		{"a claim overlooks branches", "S41", "the creation that a claim hands over", handing(func(h *store.History, took bool) bool {
			return took && h.Run.Last.Seq == 1 && h.Run.Inbox == 0
		}, func(*store.Event) {})},
		{"a claim overlooks events", "S41", "the creation that a claim hands over", handing(func(h *store.History, took bool) bool {
			return took && h.Run.Inbox == 0 && len(h.Branches) == 0
		}, func(*store.Event) {})},
		{"a claim hands over no input", "S41", "the creation that a claim hands over", handing(func(h *store.History, took bool) bool {
			return took && fresh(h)
		}, func(e *store.Event) { e.Payload = nil })},
		{"a claim hands over what it has read before it locked the run", "S41", "what comes while a run is claimed", handing(func(h *store.History, took bool) bool {
			return took && fresh(h)
		}, func(*store.Event) {})},
		{"a claim takes 50 runs at most", "S19", "as many are taken as asked for", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.Max = min(c.Max, 50)
			return next.Claim(ctx, c)
		}})},
		{"a claim takes one more", "S19", "no more are taken than asked for", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			if c.Max > 0 {
				c.Max++
			}
			return next.Claim(ctx, c)
		}})},
		{"a claim takes no notice of versions", "S19", "only what the executor serves", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			for i := range c.Serves {
				c.Serves = slices.Clone(c.Serves)
				c.Serves[i].Versions = append(slices.Clone(c.Serves[i].Versions), "v2")
			}
			return next.Claim(ctx, c)
		}})},
		{"a claim takes every queue", "S19", "named queues are taken only if listed", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.AnyQueue = true
			return next.Claim(ctx, c)
		}})},
		{"a claim takes no queue that is not listed", "S19", "named queues are taken only if listed", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.AnyQueue = false
			return next.Claim(ctx, c)
		}})},
		{"a claim overlooks its room for a queue", "S19", "named queues are taken only if listed", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.Queues = slices.Clone(c.Queues)
			for i := range c.Queues {
				c.Queues[i].Max = -1
			}
			return next.Claim(ctx, c)
		}})},
		{"a claim by id looks at the clock", "S19", "by id everything unfinished", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			if len(c.IDs) > 0 {
				var ids []string
				for _, id := range c.IDs {
					if h, err := next.Load(ctx, id, store.Cursor{NoEvents: true}); err == nil && h.Run.WakeAt < 1<<59 {
						ids = append(ids, id)
					}
				}
				if len(ids) == 0 {
					return nil, nil
				}
				c.IDs = ids
			}
			return next.Claim(ctx, c)
		}})},
		{"a claim ignores its data", "S19", "a claim starts a pending run", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.Data = nil
			return next.Claim(ctx, c)
		}})},
		{"a claim ignores DataOf", "S19", "a claim starts a pending run", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.DataOf = nil
			return next.Claim(ctx, c)
		}})},
		{"a claim ignores Spare", "S19", "a claim passes over the runs", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.Spare = nil
			return next.Claim(ctx, c)
		}})},
		{"a claim returns an older event", "S29", "a claim's event continues", claimed(func(r *store.Run) *store.RowPatch {
			last := *r.Last
			last.At--
			r.Last = &last
			return nil
		})},
		{"a claim returns an event of before the run was due", "S29", "a delayed run is taken", claimed(func(r *store.Run) *store.RowPatch {
			last := *r.Last
			last.At = r.CreatedAt
			r.Last = &last
			return nil
		})},
		{"anybody claims", "S20", "only an executor that is live", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			runs, err := next.Claim(ctx, c)
			if err != nil {
				return nil, nil
			}
			return runs, nil
		}})},

		{"returns runs with an error", "S32", "what a claim took that was answered", cutClaims(func(_ *[]store.Run, c store.Claim, runs []store.Run, err error) ([]store.Run, error) {
			return runs, err
		})},
		{"gives what an error has left to another executor", "S32", "what a claim took that was answered", cutClaims(func(left *[]store.Run, c store.Claim, runs []store.Run, err error) ([]store.Run, error) {
			if err != nil {
				*left = append(*left, runs...)
				return nil, err
			}
			runs = append(runs, *left...)
			*left = nil
			return runs, nil
		})},
		{"takes again what an error has left", "S32", "what a claim took that was answered", cutClaims(func(left *[]store.Run, c store.Claim, runs []store.Run, err error) ([]store.Run, error) {
			if err != nil {
				*left = append(*left, runs...)
				return nil, err
			}
			for len(*left) > 0 && (*left)[0].Owner == c.Executor {
				again := (*left)[0]
				again.Epoch++
				runs, *left = append(runs, again), (*left)[1:]
			}
			return runs, nil
		})},
		{"returns twice what an error has left", "S19", "what a claim took that was answered", cutClaims(func(left *[]store.Run, c store.Claim, runs []store.Run, err error) ([]store.Run, error) {
			if err != nil {
				*left = append(*left, runs...)
				return nil, err
			}
			if len(*left) > 0 && (*left)[0].Owner == c.Executor {
				runs = append(runs, (*left)[0])
			}
			return runs, nil
		})},
		{"leaves what an error took to nobody", "S32", "what a claim took that was answered", with(altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			runs, err := next.Claim(context.WithoutCancel(ctx), c)
			if ctx.Err() == nil || err != nil {
				return runs, err
			}
			for i := range runs {
				w := runs[i]
				e := store.Event{Seq: w.Last.Seq + 1, Type: store.WorkflowInterrupted, At: w.Last.At}
				e.Sum = store.Seal(w.ID, w.Last.Sum, &e)
				status := store.Interrupted
				change := store.Change{RunID: w.ID, Expect: store.Expect{Epoch: w.Epoch}, Events: []store.Event{e}, Row: &store.RowPatch{Status: &status}, Yield: true}
				if err := commit(next, context.WithoutCancel(ctx), change); err != nil {
					return nil, err
				}
			}
			return nil, ctx.Err()
		}})},

		// Numbers and texts.
		{"keeps Took in 32 bits", "S4", "times keep their microseconds", events(func(e *store.Event) {
			e.Took = time.Duration(shrinks[int32](int64(e.Took/time.Microsecond))) * time.Microsecond
		})},
		{"keeps priority in 16 bits", "S19", "higher priority goes first", creations(func(r *store.Run) { r.Priority = int32(shrinks[int16](int64(r.Priority))) })},
		{"keeps attempts in 16 bits", "S4", "an event reads back", events(func(e *store.Event) { e.Attempt = int32(shrinks[int16](int64(e.Attempt))) })},
		{"keeps the process id in 8 bits", "S20", "an executor reads back", with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			e.PID = int(shrinks[int8](int64(e.PID)))
			return next.Beat(ctx, e)
		}})},
		{"trims blanks from exclusive keys", "S11", "taken to the letter", edited(func(c *store.Change) {
			c.Hold = slices.Clone(c.Hold)
			for i := range c.Hold {
				trim(&c.Hold[i])
			}
		})},
		{"trims blanks from dedup values", "S12", "taken to the letter", creations(func(r *store.Run) { trim(&r.Dedup) })},
		{"frees the dedup value of a successor with its predecessor", "S12", "a dedup value is free when", freesTheSuccessor},
		{"folds the case of exclusive keys", "S11", "taken to the letter", edited(func(c *store.Change) {
			c.Hold = slices.Clone(c.Hold)
			for i := range c.Hold {
				c.Hold[i] = strings.ToLower(c.Hold[i])
			}
		})},
		{"normalises accents of dedup values", "S12", "taken to the letter", creations(func(r *store.Run) { r.Dedup = strings.ReplaceAll(r.Dedup, "e\u0301", "\u00e9") })},
		{"makes NUL a question mark", "S4", "a payload may be any bytes", events(func(e *store.Event) { e.Payload = bytes.ReplaceAll(e.Payload, []byte{0}, []byte("?")) })},
		{"mends UTF-8 in payloads", "S4", "a payload may be any bytes", events(func(e *store.Event) { e.Payload = bytes.ToValidUTF8(e.Payload, []byte("\ufffd")) })},

		// Batches.
		{"ignores Release in batches", "S11", "in a batch every part of a member", withBatch(func(c *store.Change) { c.Release = false })},
		{"ignores Hold in batches", "S11", "in a batch every part of a member", withBatch(func(c *store.Change) { c.Hold = nil })},
		{"ignores branches in batches", "S1", "in a batch every part of a member", withBatch(func(c *store.Change) { c.Branch = nil })},
		{"refuses batches over 512", "S2", "more members than are worth forming", with(altered{commit: func(next store.Store, ctx context.Context, batch []store.Change) []error {
			if len(batch) > 512 {
				return slices.Repeat([]error{store.ErrTooLarge}, len(batch))
			}
			return next.Commit(ctx, batch)
		}})},
		{"carries out the first 512 of a batch", "S2", "more members than are worth forming", with(altered{commit: func(next store.Store, ctx context.Context, batch []store.Change) []error {
			errs := make([]error, len(batch))
			copy(errs, next.Commit(ctx, batch[:min(len(batch), 512)]))
			return errs
		}})},
		{"takes a second change of one run", "S2", "a second change of one run", each(commit)},

		// Changes.
		{"a start drops the branch", "S1", "started with all that a creation may have", starts(func(c *store.Change) { c.Branch = nil })},
		{"a start drops the keys", "S1", "started with all that a creation may have", starts(func(c *store.Change) { c.Hold = nil })},
		{"a start keeps the first event alone", "S1", "started with all that a creation may have", starts(func(c *store.Change) { c.Events = c.Events[:1] })},
		{"a start does not yield", "S1", "started with all that a creation may have", starts(func(c *store.Change) { c.Yield = false })},
		{"drops the last event of a change", "S4", "an event reads back", edited(func(c *store.Change) {
			if len(c.Events) > 1 {
				c.Events = c.Events[:len(c.Events)-1]
			}
		})},
		{"drops all messages", "S13", "a message reads back", edited(func(c *store.Change) { c.Send = nil })},
		{"drops the branch", "S4", "a branch is recorded", edited(func(c *store.Change) { c.Branch = nil })},
		{"starts no runs", "S1", "a child is there together", edited(func(c *store.Change) { c.Start = nil })},
		{"does not release", "S11", "keys are freed by a release", edited(func(c *store.Change) { c.Release = false })},
		{"takes keys before it releases", "S25", "a release comes before", each(func(next store.Store, ctx context.Context, c store.Change) error {
			if c.Release && len(c.Hold) > 0 {
				c.Hold = nil
			}
			return commit(next, ctx, c)
		})},
		{"takes a second branch of one number", "S26", "a branch that is there already", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if c.Branch != nil && errors.Is(err, store.ErrInvalid) {
				c.Branch = nil
				return commit(next, ctx, c)
			}
			return err
		})},
		{"answers a second branch with an error of the database", "S26", "a branch that is there already", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if c.Branch != nil && errors.Is(err, store.ErrInvalid) {
				return errors.New("23505: duplicate key value violates unique constraint")
			}
			return err
		})},
		{"takes the epoch of a live owner", "S20", "the epoch cannot be taken", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if errors.Is(err, store.ErrOwned) {
				return nil
			}
			return err
		})},
		{"looks at no expected status", "S9", "a change is refused in a status", edited(func(c *store.Change) { c.Expect.Statuses = nil })},
		{"delivers to runs that have ended", "S15", "a message to a run that has ended", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if errors.Is(err, store.ErrStatus) && len(c.Send) > 0 && c.RunID == "" {
				return nil
			}
			return err
		})},
		{"drops messages to nobody", "S15", "a message to nobody", edited(func(c *store.Change) {
			c.Send = slices.Clone(c.Send)
			for i := range c.Send {
				c.Send[i].IfLive = true
			}
		})},
		{"fails for the dead", "S15", "a message to a run that has ended", edited(func(c *store.Change) {
			c.Send = slices.Clone(c.Send)
			for i := range c.Send {
				c.Send[i].IfLive = false
			}
		})},
		{"hands over the number of the message before", "S42", "the numbers that a commit hands over", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			for i, n := range c.Sent {
				c.Sent[i] = max(n-1, 0)
			}
			return err
		})},
		{"hands over a number for what it drops", "S42", "the numbers that a commit hands over", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			for i, n := range c.Sent {
				c.Sent[i] = max(n, 1)
			}
			return err
		})},
		{"leaves the numbers of an earlier attempt", "S42", "the numbers that a commit hands over", each(func(next store.Store, ctx context.Context, c store.Change) error {
			was := slices.Clone(c.Sent)
			err := commit(next, ctx, c)
			for i, n := range was {
				if n > 0 && c.Sent[i] == 0 {
					c.Sent[i] = n
				}
			}
			return err
		})},
		{"hands over what the inbox has once all is done", "S42", "senders that race", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if len(c.Sent) > 0 {
				time.Sleep(time.Millisecond) // others get in between
			}
			for i := range c.Sent {
				if h, e := next.Load(ctx, c.Send[i].To, store.Cursor{NoEvents: true}); e == nil && c.Sent[i] > 0 {
					c.Sent[i] = h.Run.Inbox
				}
			}
			return err
		})},
		{"a cancel ends every delay", "S15", "a cancel message asks", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			for _, m := range c.Send {
				if h, e := next.Load(ctx, m.To, store.Cursor{NoEvents: true}); err == nil && e == nil && m.Kind == store.KindCancel {
					err = commit(next, ctx, store.Change{RunID: m.To, Expect: store.Expect{Epoch: h.Run.Epoch}, Row: &store.RowPatch{WakeAt: new(store.Time)}})
				}
			}
			return err
		})},
		{"does not see a cancel", "S15", "a cancel message asks", rows(func(r *store.Run) { r.CancelAsked = false })},
		{"takes payloads over the limit", "S1", "what is over a limit", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if errors.Is(err, store.ErrTooLarge) {
				return nil
			}
			return err
		})},
		{"takes what is invalid", "S1", "an invalid change", each(func(next store.Store, ctx context.Context, c store.Change) error {
			err := commit(next, ctx, c)
			if errors.Is(err, store.ErrInvalid) && c.RunID != "" {
				return nil
			}
			return err
		})},

		// Times.
		{"leaves UpdatedAt to the caller", "S24", "when a row changed last", rows(func(r *store.Run) { r.UpdatedAt = 1 })},
		{"does not set UpdatedAt", "S24", "when a row changed last", rows(func(r *store.Run) { r.UpdatedAt = 0 })},
		{"UpdatedAt moves with every event", "S24", "when a row changed last", rows(func(r *store.Run) {
			if r.Last != nil {
				r.UpdatedAt += store.Time(r.Last.Seq)
			}
		})},
		{"UpdatedAt is the creation", "S24", "when a row changed last", rows(func(r *store.Run) { r.UpdatedAt = r.CreatedAt })},

		// Reading.
		{"Last is of another moment", "S27", "a row, its attributes and its last event", torn(func(r, now *store.Run) {
			if r.Last != nil {
				r.Last = now.Last
			}
		})},
		{"attributes are of another moment", "S27", "a row, its attributes and its last event", torn(func(r, now *store.Run) { r.Attributes = now.Attributes })},
		{"a deletion cuts a log short", "S27", "a run that is deleted meanwhile", ranges(func(s store.Store, ctx context.Context, id string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
			return func(yield func(store.Event, error) bool) {
				for e, err := range events {
					if _, gone := s.Load(ctx, id, store.Cursor{NoEvents: true}); gone != nil || !yield(e, err) {
						return
					}
				}
			}
		})},
		{"reads on after the context ended", "S27", "a range ends with its context", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			return next.Load(context.WithoutCancel(ctx), id, c)
		}})},
		{"ends in silence with the context", "S27", "a range ends with its context", ranges(func(_ store.Store, ctx context.Context, _ string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
			return func(yield func(store.Event, error) bool) {
				for e, err := range events {
					if ctx.Err() != nil || !yield(e, err) {
						return
					}
				}
			}
		})},
		{"can be ranged over once", "S4", "a long log is read whole", ranges(func(_ store.Store, _ context.Context, _ string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
			var once atomic.Bool
			return func(yield func(store.Event, error) bool) {
				if once.CompareAndSwap(false, true) {
					events(yield)
				}
			}
		})},
		{"leaks a connection by a range that is broken off", "S27", "broken off holds nothing", leaksConnections},
		{"locks writers out while events are ranged over", "S27", "events are written while", locksWriters},
		{"keeps the caller's slices", "S17", "what was given is the caller's", keepsSlices},
		{"keeps the caller's list of a checkpoint", "S17", "what was given is the caller's", keepsPlainEvents},
		{"keeps the caller's maps", "S17", "what was given is the caller's", keepsMaps},
		{"hands out its own events", "S17", "what was returned is the caller's own", handsOutItsOwn},
		{"reads the whole log as a lineage", "S4", "a history holds the lineage", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			c.All = true
			return next.Load(ctx, id, c)
		}})},
		{"reads from the beginning, not from After", "S4", "a part of a history", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			c.After = 0
			return next.Load(ctx, id, c)
		}})},
		{"adds one to a cursor, whatever it is", "S4", "a part of a history", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			if c.After == math.MaxInt64 {
				c.After = math.MinInt64
			}
			return next.Load(ctx, id, c)
		}})},
		{"reads the first events for the last", "S4", "a part of a history", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			c.Tail = 0
			return next.Load(ctx, id, c)
		}})},
		{"reads every message", "S13", "a run reads the messages behind", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			c.AfterMessage = 0
			return next.Load(ctx, id, c)
		}})},

		// Executors.
		{"Gone names one", "S20", "a beat tells of all that are gone", pulses(func(p *store.Pulse, _ store.Executor) { p.Gone = p.Gone[:min(1, len(p.Gone))] })},
		{"Gone names nobody", "S20", "a beat tells of all that are gone", pulses(func(p *store.Pulse, _ store.Executor) { p.Gone = nil })},
		{"Gone passes over those whose runs wait", "S20", "a beat tells of all that are gone", with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			p, err := next.Beat(ctx, e)
			p.Gone = slices.DeleteFunc(p.Gone, func(id string) bool {
				n, cerr := next.Count(ctx, store.Filter{Owners: []string{id}, Statuses: []store.Status{store.Running, store.Resuming}}, "")
				return cerr == nil && n[""] == 0
			})
			return p, err
		}})},
		{"a beat brings no mail for runs that wait", "S20", "a beat brings mail", with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			p, err := next.Beat(ctx, e)
			p.Mail = slices.DeleteFunc(p.Mail, func(m store.Mail) bool {
				h, lerr := next.Load(ctx, m.RunID, store.Cursor{NoEvents: true})
				return lerr == nil && h.Run.Status == store.Waiting
			})
			return p, err
		}})},
		{"a beat brings no mail", "S20", "a beat brings mail", pulses(func(p *store.Pulse, _ store.Executor) { p.Mail = nil })},
		{"a leaving beat brings mail", "S30", "a leaving beat brings no mail", pulses(func(p *store.Pulse, e store.Executor) {
			if e.Leaving {
				p.Mail = []store.Mail{{RunID: "mine", Inbox: 1}}
			}
		})},
		{"never late", "S20", "a beat after the lease", pulses(func(p *store.Pulse, _ store.Executor) { p.Late = false })},
		{"nothing is ever due", "S20", "a beat tells what is due", pulses(func(p *store.Pulse, _ store.Executor) { p.Due = false })},
		{"does not say when the next is", "S20", "a beat tells what is due", pulses(func(p *store.Pulse, _ store.Executor) { p.Next = 0 })},
		{"Due overlooks named queues", "S31", "what is due counts in every queue", with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			p, err := next.Beat(ctx, e)
			n, cerr := next.Count(ctx, store.Filter{Queues: []string{""}}, "")
			p.Due = p.Due && cerr == nil && n[""] > 0
			return p, err
		}})},
		{"forgets dead executors", "S30", "the record of a dead executor", with(altered{executors: func(next store.Store, ctx context.Context) ([]store.Executor, error) {
			all, err := next.Executors(ctx)
			return slices.DeleteFunc(all, func(e store.Executor) bool { return !e.Live }), err
		}})},
		{"nobody ever leaves", "S20", "an executor that leaves", with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
			if e.Leaving {
				e.Leaving, e.Lease = false, time.Hour
			}
			return next.Beat(ctx, e)
		}})},
		{"lists executors by name", "S20", "an executor reads back", with(altered{executors: func(next store.Store, ctx context.Context) ([]store.Executor, error) {
			all, err := next.Executors(ctx)
			slices.SortFunc(all, func(a, b store.Executor) int { return cmp.Compare(a.ID, b.ID) })
			return all, err
		}})},

		// Listings, counts, deletions.
		{"a count of nothing is empty", "S28", "a count without a field", with(altered{count: func(next store.Store, ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
			n, err := next.Count(ctx, f, by)
			maps.DeleteFunc(n, func(_ string, n int64) bool { return n == 0 })
			return n, err
		}})},
		{"a count stops at the limit", "S16", "a count takes the filter", with(altered{count: func(next store.Store, ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
			n, err := next.Count(ctx, f, by)
			for k := range n {
				if f.Limit > 0 {
					n[k] = min(n[k], int64(f.Limit))
				}
			}
			return n, err
		}})},
		{"a page is one too long", "S16", "pages of every size", with(altered{list: func(next store.Store, ctx context.Context, f store.Filter) (store.Page, error) {
			if f.Limit > 0 {
				f.Limit++
			}
			return next.List(ctx, f)
		}})},
		{"a tail counts every event of a run without branches", "S4", "whose record is lost", with(altered{load: func(next store.Store, ctx context.Context, id string, c store.Cursor) (*store.History, error) {
			h, err := next.Load(ctx, id, c)
			if err == nil && c.Tail > 0 && len(h.Branches) == 0 && h.Run.Last != nil {
				c.After, c.Tail = max(c.After, h.Run.Last.Seq-int64(c.Tail)), 0
				return next.Load(ctx, id, c)
			}
			return h, err
		}})},
		{"keeps a reason as it came", "S4", "a reason that is no text", rows(func(r *store.Run) { r.Reason = strings.ReplaceAll(r.Reason, "\uFFFD", "\xff") })},
		{"takes a byte that is no text for another", "S16", "values are compared as they are", filtered(func(f *store.Filter) {
			for i := range f.Workflows {
				f.Workflows[i] = strings.ToValidUTF8(f.Workflows[i], "\uFFFD")
			}
		})},
		{"a value that is named twice selects all", "S16", "each field of a filter", filtered(func(f *store.Filter) {
			if len(f.Statuses) > 1 && f.Statuses[0] == f.Statuses[len(f.Statuses)-1] {
				f.Statuses = nil
			}
			if len(f.Codes) > 1 && f.Codes[0] == f.Codes[len(f.Codes)-1] {
				f.Codes = nil
			}
		})},
		{"prefixes know no case", "S16", "values are compared as they are", with(altered{list: func(next store.Store, ctx context.Context, f store.Filter) (store.Page, error) {
			prefix := f.IDPrefix
			if prefix == "" {
				return next.List(ctx, f)
			}
			f.IDPrefix, f.Limit = "", 1000
			p, err := next.List(ctx, f)
			p.Runs = slices.DeleteFunc(p.Runs, func(r store.Run) bool { return !strings.HasPrefix(strings.ToLower(r.ID), strings.ToLower(prefix)) })
			return p, err
		}})},
		{"deletes what runs", "S1", "a run that has not ended is kept", with(altered{remove: func(next store.Store, ctx context.Context, d store.Deletion) (int, error) {
			d.Force = true
			return next.Delete(ctx, d)
		}})},
		{"deletes one by one", "S1", "a run that has not ended is kept", with(altered{remove: func(next store.Store, ctx context.Context, d store.Deletion) (int, error) {
			n := 0
			for i, id := range d.RunIDs {
				one := store.Deletion{RunIDs: []string{id}, Force: d.Force}
				if d.Epochs != nil {
					one.Epochs = d.Epochs[i : i+1]
				}
				k, err := next.Delete(ctx, one)
				if n += k; err != nil {
					return n, err
				}
			}
			return n, nil
		}})},
		{"counts what it was asked to delete", "S8", "a deletion removes whole runs", with(altered{remove: func(next store.Store, ctx context.Context, d store.Deletion) (int, error) {
			_, err := next.Delete(ctx, d)
			return len(d.RunIDs), err
		}})},
		{"hands out a read buffer", "S17", "what was read is not overwritten", handsOutUnmappedMemory},
	}
	row := "a created run reads back"
	list = append(list, lossy(reflect.TypeFor[store.Run](), "S4", row, []string{
		"ID", "Status", "Epoch", "Last", "UpdatedAt", "Inbox", "Dedup", // identity, and what the store gives
	}, func(zero func(any)) func() func(store.Store) store.Store {
		return creations(func(r *store.Run) { zero(r) })
	})...)
	list = append(list, lossy(reflect.TypeFor[store.Event](), "S4", "an event reads back", []string{"Seq", "Epoch", "Type", "Active", "Steps"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return events(func(e *store.Event) { zero(e) })
		})...)
	list = append(list, lossy(reflect.TypeFor[store.Message](), "S13", "a message reads back", []string{"To", "Kind", "ID", "Seq", "IfLive"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return edited(func(c *store.Change) {
				c.Send = slices.Clone(c.Send)
				for i := range c.Send {
					zero(&c.Send[i])
				}
			})
		})...)
	list = append(list, lossy(reflect.TypeFor[store.Branch](), "S4", "a branch is recorded", []string{"N"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return edited(func(c *store.Change) {
				if c.Branch != nil {
					b := *c.Branch
					zero(&b)
					c.Branch = &b
				}
			})
		})...)
	list = append(list, lossy(reflect.TypeFor[store.Executor](), "S4", "an executor reads back", []string{"ID", "Lease", "Leaving", "StartedAt", "BeatAt", "Live"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return with(altered{beat: func(next store.Store, ctx context.Context, e store.Executor) (store.Pulse, error) {
				zero(&e)
				return next.Beat(ctx, e)
			}})
		})...)
	list = append(list, lossy(reflect.TypeFor[store.RowPatch](), "S10", "each field of a row patch", nil,
		func(zero func(any)) func() func(store.Store) store.Store {
			return edited(func(c *store.Change) {
				if c.Row != nil {
					p := *c.Row
					zero(&p)
					c.Row = &p
				}
			})
		})...)
	list = append(list, lossy(reflect.TypeFor[store.Filter](), "S16", "each field of a filter", []string{"Unarchived", "OldestFirst", "Limit", "After", "WithLast"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return filtered(func(f *store.Filter) { zero(f) })
		})...)
	return append(list,
		mutant{"lists what is archived", "S16", "what is not archived", filtered(func(f *store.Filter) { f.Unarchived = false })},
		mutant{"lists the newest first, always", "S16", "the newest come first", filtered(func(f *store.Filter) { f.OldestFirst = false })},
		mutant{"lists without the last event", "S16", "the last event comes along", filtered(func(f *store.Filter) { f.WithLast = false })},
	)
}

func to[T any](v T) *T { return &v }

// withBatch edits the members of batches of more than one.
func withBatch(edit func(c *store.Change)) func() func(store.Store) store.Store {
	return with(altered{commit: func(next store.Store, ctx context.Context, batch []store.Change) []error {
		if len(batch) > 1 {
			batch = slices.Clone(batch)
			for i := range batch {
				edit(&batch[i])
			}
		}
		return next.Commit(ctx, batch)
	}})
}

// starts edits the runs that are started on behalf of others.
func starts(edit func(c *store.Change)) func() func(store.Store) store.Store {
	return edited(func(c *store.Change) {
		c.Start = slices.Clone(c.Start)
		for i := range c.Start {
			edit(&c.Start[i])
		}
	})
}

// handsOutItsOwn returns the same events each time it is asked.
func handsOutItsOwn() func(store.Store) store.Store {
	var mu sync.Mutex
	cache := make(map[string]store.Event)
	return ranges(func(_ store.Store, _ context.Context, id string, events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
		return func(yield func(store.Event, error) bool) {
			for e, err := range events {
				mu.Lock()
				key := fmt.Sprint(id, "/", e.Seq, "/", e.Sum)
				if own, ok := cache[key]; ok {
					e = own
				} else if err == nil {
					cache[key] = e
				}
				mu.Unlock()
				if !yield(e, err) {
					return
				}
			}
		}
	})()
}

// TestTheSuiteCatchesMutants shows each mutant to the case that is to see it, and
// prints how many were caught.
func TestTheSuiteCatchesMutants(t *testing.T) {
	all := mutants()
	var caught atomic.Int64
	t.Run("mutants", func(t *testing.T) {
		for _, m := range all {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				c := find(t, m.by)
				require.Contains(t, clausesOf(c), m.clause, "the case %q checks another clause", c.Title())
				failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, broken(m.wraps)) })
				require.NotEmpty(t, failures, "%q passes", c.Title())
				require.Contains(t, failures[0], "broken: ")
				require.Regexp(t, `\b`+m.clause+`\b`, strings.Join(failures, "\n"), "the clause that is broken is named")
				caught.Add(1)
			})
		}
	})
	total := int(caught.Load()) + len(brokenStores)
	t.Logf("%d mutants are caught, and %d broken stores by the clauses they break: %d", caught.Load(), len(brokenStores), total)
	require.Equal(t, len(all), int(caught.Load()))
	require.GreaterOrEqual(t, total, 100)
}

// The wrapping itself must not fail any of the cases that mutants are shown to.
func TestAWrappingThatAltersNothingPasses(t *testing.T) {
	h := broken(with(altered{}))
	shown := make(map[string]bool)
	for _, m := range mutants() {
		if c := find(t, m.by); !shown[c.Title()] {
			shown[c.Title()] = true
			require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) }), c.Title())
		}
	}
}
