package durable

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A write is what one durable call wants recorded.
type write struct {
	events []store.Event // without Seq, At, Sum, Branch and running totals
	row    *store.RowPatch
	create *store.Run
	send   []store.Message
	start  []store.Change
	expect store.Expect // of it Absent, NoCancel and Statuses are used
	yield  bool
	// branching begins a generation with one of the events.
	branching *branching
	// release frees the run's exclusive keys; hold takes some.
	release bool
	hold    []string
	// alone keeps the write out of a change with others: its precondition must
	// not fail them.
	alone bool
	// failFast gives the caller a store failure instead of trying for ever.
	failFast bool

	// clock is when the events happened; zero: now.
	clock time.Time

	// parks is the wait that the write records; see parking.unsaid.
	parks *parking

	// compose, if set, completes the write when it gets its place in the log,
	// under the committer's mutex: what it decides, it decides in that order. It
	// must not fail, and changes events, row and nothing else.
	compose func(*write)
	// then, if set, is called with the outcome, under the committer's mutex, even if
	// the caller has stopped waiting.
	then func(error)

	admitted bool
	settled  bool
	err      error
	at       store.Time // of its last event
	reply    chan bool  // true: lead; false: settled. Made by a caller that waits
}

func (w *write) size() int {
	n := 512
	for i := range w.events {
		n += len(w.events[i].Payload) + len(w.events[i].Data)
	}
	for i := range w.start {
		n += w.start[i].Size()
	}
	for i := range w.send {
		n += len(w.send[i].Payload) + len(w.send[i].Data)
	}
	return n
}

func (w *write) settle(err error) {
	w.settled, w.err = true, err
	if w.then != nil {
		w.then(err)
	}
	if w.reply != nil {
		select {
		case w.reply <- false:
		default: // it was just told to lead, and finds itself settled
		}
	}
}

// ends reports whether w begins a generation or ends the run: the only writes
// of a run whose leftovers were stopped.
func (w *write) ends() bool { return w.yield || w.branching != nil }

// A runLog is the end of a run's log, as this execution knows it: what is to be
// written next, what is on its way, and where it goes. While the run
// is executed it alone gives out places in the log, when a change is formed (build). Each place is recorded, or handed back
// before the call that asked for it returns, or the run is dead here.
//
// The committer works on many of them at a time, and under one mutex, its own.
type runLog struct {
	id    string      // of the run
	clock *storeClock // events are stamped by it

	mu *sync.Mutex // the committer's
	// pending are writes that wait for their change, flight the change under way.
	pending []*write
	flight  *flight
	space   flight // of flight, used again and again
	queued  bool   // it is in the committer's queue

	// stashed are events to be committed in front of the next write, unexported the
	// spans that are to be there before they are.
	stashed     []store.Event
	stashedSize int // bytes
	unexported  []*earlySpan

	head   logHead
	lastAt store.Time
	steps  int32

	began      time.Time     // when this execution began
	activeThen time.Duration // active time of earlier executions
}

// takeOff moves what is pending into a flight: all of it, or, when the first
// must be alone, that one.
func (lg *runLog) takeOff() *flight {
	f := &lg.space
	n := 1
	if !lg.pending[0].alone {
		// Nothing may follow a write that gives the run up.
		for n < len(lg.pending) && !lg.pending[n].alone && !lg.pending[n-1].yield {
			n++
		}
	}
	f.writes = append(f.writes[:0], lg.pending[:n]...)
	lg.pending = append(lg.pending[:0], lg.pending[n:]...)
	f.again, f.unknown = false, false
	lg.flight = f
	return f
}

// putBack undoes takeOff.
func (lg *runLog) putBack() {
	lg.pending = append(append([]*write{}, lg.flight.writes...), lg.pending...)
	lg.flight = nil
}

// unsettled returns the writes of the log that are not settled.
func (lg *runLog) unsettled() []*write {
	if lg.flight != nil {
		return lg.flight.writes
	}
	return lg.pending
}

// settlePending answers those whose writes are not under way. The mutex is
// held.
func (lg *runLog) settlePending(err error) {
	for _, w := range lg.pending {
		w.settle(err)
	}
	lg.pending = nil
}

// stamp gives events their time (clock, or now if it is zero), which never goes
// backwards, and the running totals. The mutex is held.
func (lg *runLog) stamp(events []store.Event, clock time.Time) {
	if len(events) == 0 {
		return
	}
	if clock.IsZero() {
		clock = time.Now()
	}
	now, active := lg.clock.at(clock), lg.activeThen+clock.Sub(lg.began)
	for i := range events {
		ev := &events[i]
		if history.IsStepOutcome(ev) {
			lg.steps++
		}
		lg.lastAt = max(lg.lastAt, now)
		ev.At, ev.Steps, ev.Active = lg.lastAt, lg.steps, active.Truncate(time.Microsecond)
	}
}

// follow lets the log go on after the last event of a row that was claimed, although
// its history was not read.
func (lg *runLog) follow(row *store.Run) {
	if last := row.Last; last != nil {
		lg.head = logHead{seq: last.Seq, sum: last.Sum, epoch: row.Epoch, branch: row.Branch}
		lg.lastAt, lg.steps, lg.activeThen = last.At, last.Steps, last.Active
	}
}

// followPast lets the log go on after a history that was read.
func (lg *runLog) followPast(row *store.Run, p *history.Past) {
	lg.head = logHead{seq: p.Head.Seq, sum: p.Head.Sum, epoch: row.Epoch, branch: row.Branch}
	lg.lastAt, lg.steps = p.LastAt, p.Steps
	if row.Last != nil {
		lg.activeThen = row.Last.Active
	}
}

// time returns that of the last event.
func (lg *runLog) time() store.Time {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return lg.lastAt
}

// totals returns what the next event would say: how many steps are done, and how long
// the run was executed. A branch that has lost a race may still be writing.
func (lg *runLog) totals() (steps int, active time.Duration) {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return int(lg.steps), lg.activeThen + time.Since(lg.began)
}

// What a run holds back is bounded, so that it fits into one change with the
// write it rides with, and a crash does not cost much.
const (
	maxStashed     = 1000
	maxStashedSize = 1 << 20
)

// stash keeps an event to be committed in front of the next write. With full it is
// time for one.
func (lg *runLog) stash(ev store.Event) (at store.Time, full bool) {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	lg.stashed = append(lg.stashed, ev)
	lg.stashedSize += len(ev.Payload) + len(ev.Data)
	lg.stamp(lg.stashed[len(lg.stashed)-1:], time.Time{})
	return lg.stashed[len(lg.stashed)-1].At, len(lg.stashed) >= maxStashed || lg.stashedSize >= maxStashedSize
}

// unstash puts what was stashed in front of the write that is about to be pending.
// The mutex is held.
func (lg *runLog) unstash() {
	if len(lg.stashed) > 0 {
		lg.pending = append(lg.pending, &write{events: lg.stashed})
		lg.stashed, lg.stashedSize = nil, 0
	}
}

// awaitExport keeps a span that must be exported before what is stashed from here on
// is durable.
func (lg *runLog) awaitExport(span *earlySpan) {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	lg.unexported = append(lg.unexported, span)
}

// export exports the spans that go before what is stashed, without the mutex, which
// is held on entry and on return.
func (lg *runLog) export() {
	for len(lg.unexported) > 0 {
		list := slices.Clone(lg.unexported)
		lg.mu.Unlock()
		for _, span := range list {
			span.once.Do(span.export) // another writer may be at it: it is waited for
		}
		lg.mu.Lock()
		lg.unexported = slices.DeleteFunc(lg.unexported, func(s *earlySpan) bool { return slices.Contains(list, s) })
	}
}

// stashes reports whether something waits for the next write.
func (lg *runLog) stashes() bool {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return len(lg.stashed) > 0
}

// build makes the change of the flight: one after the other the events get their
// places. Only the leader is here, and the head is its own as long as the flight
// lasts.
func (lg *runLog) build() store.Change {
	f := lg.flight
	if f.again {
		return f.change
	}
	f.before = lg.head
	events := f.change.Events[:0]
	f.change = store.Change{RunID: lg.id, Expect: store.Expect{Epoch: lg.head.epoch}}
	for _, w := range f.writes {
		for i := range w.events {
			ev := &w.events[i]
			if w.branching != nil && i == w.branching.at {
				w.branching.begin(&lg.head, ev)
				f.change.Branch = &w.branching.branch
			}
			lg.head.append(lg.id, ev)
			events = append(events, *ev)
		}
		f.change.Row = f.change.Row.Over(w.row)
		f.change.Send = append(f.change.Send, w.send...)
		f.change.Start = append(f.change.Start, w.start...)
		if w.create != nil {
			f.change.Create = w.create
			f.change.Expect.Epoch = 0
		}
		f.change.Expect.Absent = f.change.Expect.Absent || w.expect.Absent
		f.change.Expect.NoCancel = f.change.Expect.NoCancel || w.expect.NoCancel
		f.change.Hold = append(f.change.Hold, w.hold...)
		f.change.Release = f.change.Release || w.release
		f.change.Yield = f.change.Yield || w.yield
	}
	f.change.Events = events
	f.again = true
	return f.change
}

// conceive makes the change that creates the run with this row, sealed and complete.
func (lg *runLog) conceive(row *store.Run, events []store.Event) store.Change {
	lg.stamp(events, time.Time{})
	for i := range events {
		lg.head.append(lg.id, &events[i])
	}
	return store.Change{RunID: lg.id, Expect: store.Expect{Absent: true}, Create: row, Events: events}
}

// handBack takes back the places that the flight was given: the store has not taken
// its change, and never will. The mutex is held.
func (lg *runLog) handBack() { lg.head = lg.flight.before }

// logHead is where a run's log ends. It is guarded by the committer's mutex, and
// by the flight while one is under way.
type logHead struct {
	seq    int64
	sum    uint32
	epoch  int64
	branch int32
}

// append gives ev the next place: its number, its branch and its sum.
func (h *logHead) append(runID string, ev *store.Event) {
	h.seq++
	ev.Seq, ev.Branch = h.seq, h.branch
	ev.Sum = store.Seal(runID, h.sum, ev)
	h.sum = ev.Sum
}

// appendSealed is append for an event whose payload is not sealed yet.
func (h *logHead) appendSealed(s *payload.Sealer, runID string, ev *store.Event) {
	ev.Branch = h.branch
	ev.Payload = s.Seal(payload.PlaceOf(runID, ev), ev.Payload)
	h.append(runID, ev)
}

// flight is the change of a run that is being committed. Until its outcome is
// known it is sent again as it is, nothing merged in.
type flight struct {
	change store.Change
	writes []*write
	before logHead
	again  bool // the change is complete: send it, do not build it
	// unknown: it was sent, and what became of it is not known. From then on only a
	// decision of the store ends it: a failure of the store does not.
	unknown bool
}

// settle answers the callers that wait for the flight.
func (f *flight) settle(err error) {
	for i, w := range f.writes {
		w.settle(err)
		f.writes[i] = nil
	}
	f.writes = f.writes[:0]
}

// givenUp is the answer to a flight that is not sent again, because of why.
func (f *flight) givenUp(why error) error {
	if f.unknown {
		return unknownBecause(why, ErrClosed)
	}
	return why
}

// mayFail reports whether all callers that wait for the flight take a failure of the
// store for an answer.
func (f *flight) mayFail() bool {
	for _, w := range f.writes {
		if !w.failFast {
			return false
		}
	}
	return true
}

// endsAt returns the patch with the end of a run, if it sets one, at the time of the
// event that records it, so that the two can be compared.
func endsAt(p *store.RowPatch, at store.Time) *store.RowPatch {
	if p == nil || p.EndedAt == nil || *p.EndedAt == 0 {
		return p
	}
	own, end := *p, at // a copy of at, so that a write which ends nothing allocates nothing
	own.EndedAt = &end
	return &own
}

// branching is the part of a write that begins a generation.
type branching struct {
	at     int // index of the first event on the branch
	branch store.Branch
	data   history.Data // of that event
}

// begin turns to the branch, at its first event. It is called when the number
// and the sum of the event before are known, and again should the change be
// refused and built anew.
func (b *branching) begin(head *logHead, first *store.Event) {
	b.branch.Cutoff = head.seq
	head.branch = b.branch.N
	// Kept twice, so that the chain can be checked when what was before is gone.
	b.data.Sum = head.sum
	first.Data = b.data.Encode()
	first.Steps = 0
}
