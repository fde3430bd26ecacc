// Package waiting looks into the store for all who wait, in one process, for the ends of runs
// that other processes execute: one look at a run for all its waiters, and one at all runs whose
// time to be looked at has come.
package waiting

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Options say how a Set looks and what it tells. All functions are called without a lock held.
type Options struct {
	Store store.Store
	// Here reports whether a run is executed in this process: its waiters hear of its end there.
	Here func(id string) bool
	// Near reports whether this process hears first of what happens to a run.
	Near func(id string) bool
	// Judge says what those who wait for a run are told, if anything yet. executors reads the
	// executors, once in a round.
	Judge func(run *store.Run, executors func() ([]store.Executor, error)) (v Verdict, told bool)
	// Idle returns why nothing will end a run that was read and goes on, empty if something
	// will. It warns of that, unless warned is set: it has done so before. nil: nobody is asked.
	Idle func(run *store.Run, executors func() ([]store.Executor, error), warned bool) (why string)
	// Go begins a goroutine that ends soon after Stop.
	Go func(func())
	// First is the pause after the first look at a run, and Last the longest one, where no
	// notice comes; NearLast is that for a run that is Near.
	First, Last, NearLast time.Duration
}

// Verdict is what a waiter is told.
type Verdict struct {
	// Here: the run is executed in this process now.
	Here bool
	// End is the event that completed the run.
	End store.Event
	// Err says why there is none, as Judge has it.
	Err error
	// Unread is the store's error if the run cannot be read.
	Unread error
}

// A Set has the waiters of a process. Its methods may be called at any time.
type Set struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	bell   chan struct{}

	mu      sync.Mutex
	of      map[string]*awaited
	urgent  []*awaited // to be looked at now
	next    time.Time  // when one of the others is due, at the earliest
	round   int64
	looking bool // the goroutine is there
	stopped bool
}

// awaited is a run that somebody waits for.
type awaited struct {
	id      string
	waiters map[*Waiter]bool
	due     time.Time
	pause   time.Duration // until the next look
	urgent  bool
	looks   int
	warned  bool   // used by the goroutine alone
	idle    string // as Idle said at the last look
}

// A Waiter waits for one run.
type Waiter struct {
	// C gets one value. What it says was looked up after the waiter was there.
	C <-chan Verdict

	c     chan Verdict
	s     *Set
	run   *awaited
	round int64 // the last round that had begun when it joined
}

// New returns a Set without waiters.
func New(o Options) *Set {
	s := &Set{o: o, bell: make(chan struct{}, 1), of: map[string]*awaited{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Stop ends all looks. Those who wait are told nothing more.
func (s *Set) Stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// Join adds a waiter. The caller must call Leave.
func (s *Set) Join(id string) *Waiter {
	w := &Waiter{c: make(chan Verdict, 1), s: s}
	w.C = w.c
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return w
	}
	r := s.of[id]
	if r == nil {
		r = &awaited{id: id, waiters: map[*Waiter]bool{}}
		s.of[id] = r
	}
	w.run, w.round = r, s.round
	r.waiters[w] = true
	s.hurry(r)
	if !s.looking {
		s.looking = true
		s.o.Go(s.loop)
	}
	return w
}

// Idle returns why nothing will end the run, as far as was seen at the last look.
func (w *Waiter) Idle() string {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.run == nil {
		return ""
	}
	return w.run.idle
}

// Leave ends the wait.
func (w *Waiter) Leave() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.run != nil {
		w.s.remove(w)
	}
}

// remove takes out a waiter, and the run that it was the last one for. The mutex is held.
func (s *Set) remove(w *Waiter) {
	r := w.run
	w.run = nil
	if delete(r.waiters, w); len(r.waiters) > 0 {
		return
	}
	if delete(s.of, r.id); len(s.of) == 0 {
		s.ring() // the goroutine ends
	}
}

// Changed makes the Set look at these runs now; with none, at all of them.
func (s *Set) Changed(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) == 0 {
		return
	}
	for _, id := range ids {
		if r := s.of[id]; r != nil {
			s.hurry(r)
		}
	}
	if len(ids) == 0 {
		for _, r := range s.of {
			s.hurry(r)
		}
	}
}

// hurry has a run looked at as soon as the goroutine is free. The mutex is held.
func (s *Set) hurry(r *awaited) {
	if r.pause = 0; !r.urgent {
		r.urgent = true
		s.urgent = append(s.urgent, r)
		s.ring()
	}
}

func (s *Set) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// loop looks until nobody waits.
func (s *Set) loop() {
	for {
		now, later, wait, ok := s.due()
		if !ok {
			return
		}
		if len(now)+len(later) > 0 {
			s.look(now, later)
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-s.bell:
		case <-t.C:
		case <-s.ctx.Done():
		}
		t.Stop()
	}
}

// due begins a round: it returns the runs that something may have happened to, and those whose
// time has come; if there are none, how long to wait. ok is false if there is nobody to look
// for.
func (s *Set) due() (now, later []*awaited, wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || len(s.of) == 0 {
		s.looking, s.urgent = false, nil
		return nil, nil, 0, false
	}
	for _, r := range s.urgent {
		if r.urgent, r.due = false, (time.Time{}); len(r.waiters) > 0 {
			now = append(now, r)
		}
	}
	s.urgent = nil
	at := time.Now()
	if !s.next.After(at) {
		s.next = at.Add(max(s.o.Last, s.o.NearLast))
		for _, r := range s.of {
			switch {
			case r.due.IsZero(): // a look at it is under way
			case !r.due.Add(-r.pause / 2).After(at):
				// Together with others that are due, though a little early: each alone would
				// be a look of its own.
				later = append(later, r)
			case r.due.Before(s.next):
				s.next = r.due
			}
		}
	}
	for _, r := range later {
		r.due = time.Time{}
	}
	s.round++
	return now, later, max(s.next.Sub(at), 0), true
}

// wholeEvery says at which looks a run is loaded even if its status says nothing: every 16th. It
// may have been deleted.
const wholeEvery = 16

// someIDs bounds how many runs one listing asks for.
const someIDs = 500

// ends are the statuses that a waiter may have to be told of.
var ends = []store.Status{store.Completed, store.Failed, store.Cancelled, store.Interrupted}

// look looks at the runs of a round, and tells their waiters.
func (s *Set) look(now, later []*awaited) {
	all := append(now, later...)
	near := make(map[*awaited]bool)
	byID := make(map[string]*awaited, len(all))
	load := now[:0:0]
	var ask []string
	for i, r := range all {
		switch {
		case s.o.Here(r.id):
			s.tell(r, Verdict{Here: true})
			continue
		case s.o.Near(r.id):
			near[r] = true // before the look: what happens afterwards is heard of
		}
		byID[r.id] = r
		if r.looks++; i < len(now) || r.looks%wholeEvery == 0 {
			load = append(load, r)
		} else {
			ask = append(ask, r.id)
		}
	}
	for _, id := range s.ended(ask) {
		load = append(load, byID[id])
	}
	s.load(load)
	for _, r := range all {
		s.settle(r, near[r])
	}
}

// ended returns those runs whose waiters may have to be told something. If they cannot be
// listed, it returns all of them: each is loaded then, and what is wrong with one is not told to
// those who wait for another.
func (s *Set) ended(ids []string) (some []string) {
	for from := 0; from < len(ids); from += someIDs {
		part := ids[from:min(from+someIDs, len(ids))]
		page, err := s.o.Store.List(s.ctx, store.Filter{IDs: part, Statuses: ends, Limit: len(part)})
		if err != nil {
			some = append(some, part...)
			continue
		}
		for i := range page.Runs {
			if row := &page.Runs[i]; !row.Paused || row.Status.Terminal() {
				some = append(some, row.ID)
			}
		}
	}
	return some
}

// noMessages reads a run without its history and its inbox.
var noMessages = store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1}

// load loads runs, and tells their waiters what there is to tell.
func (s *Set) load(runs []*awaited) {
	if len(runs) == 0 {
		return
	}
	cursors := make([]store.RunCursor, len(runs))
	for i, r := range runs {
		cursors[i] = store.RunCursor{RunID: r.id, Cursor: noMessages}
	}
	executors := s.executors(s.ctx)
	for i, l := range store.LoadAll(s.ctx, s.o.Store, cursors) {
		if v, told := s.judge(&l, executors); told {
			s.tell(runs[i], v)
		} else if s.o.Idle != nil {
			why := s.o.Idle(&l.History.Run, executors, runs[i].warned)
			runs[i].warned = runs[i].warned || why != ""
			s.mu.Lock()
			runs[i].idle = why
			s.mu.Unlock()
		}
	}
}

// Once looks at a run now, also after Stop. told is false while there is nothing to tell.
func (s *Set) Once(ctx context.Context, id string) (v Verdict, told bool) {
	h, err := s.o.Store.Load(ctx, id, noMessages)
	return s.judge(&store.Loaded{History: h, Err: err}, s.executors(ctx))
}

func (s *Set) executors(ctx context.Context) func() ([]store.Executor, error) {
	return sync.OnceValues(func() ([]store.Executor, error) { return s.o.Store.Executors(ctx) })
}

func (s *Set) judge(l *store.Loaded, executors func() ([]store.Executor, error)) (v Verdict, told bool) {
	if l.Err != nil {
		return Verdict{Unread: l.Err}, true
	}
	return s.o.Judge(&l.History.Run, executors)
}

// tell tells those who waited for a run when the round began. Those who came later wait for
// the next one: what was looked up may be older than what they know.
func (s *Set) tell(r *awaited, v Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return // the store may have refused because of that
	}
	for w := range r.waiters {
		if w.round < s.round {
			w.c <- v
			s.remove(w)
		}
	}
}

// settle says when a run is looked at again.
func (s *Set) settle(r *awaited, near bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.pause = min(max(2*r.pause, s.o.First), s.o.Last); near {
		r.pause = s.o.NearLast
	}
	if r.due = time.Now().Add(r.pause); r.due.Before(s.next) {
		s.next = r.due
	}
}
