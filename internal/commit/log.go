package commit

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// An Owner is the execution that owns a run's log. The committer calls it under its
// mutex: no method may block or call the committer.
type Owner interface {
	// Admit returns why w must not be recorded any more, nil if it may.
	Admit(w *Write) error
	// Row returns the patch that brings the run's row up to date, nil if it already
	// is. The patch is committed with the next change; events says whether that has any.
	Row(events bool) *store.RowPatch
	// Tear says that an event which was handed to Stash will never be recorded, because of err.
	// From then on the log takes nothing but an interruption.
	Tear(ev *store.Event, err error)
	// RowRefused says that the last patch was not applied to the row, because the
	// change that carried it was refused.
	RowRefused()
	// Lose says that nothing more of this execution can be recorded, because of err.
	Lose(err error)
	// Lost returns the error with which Lose, or the owner itself, has ended
	// recording; nil while recording goes on.
	Lost() error
	// Landed says that a change is durable.
	Landed(c *store.Change)
}

// A Log is the end of a run's log, as one execution knows it: what is to be written
// next, what is in flight, and where it goes. While the run is executed, only the Log
// assigns places in the log, when a change is formed (build). Each place is recorded,
// or handed back before the call that asked for it returns, or the execution is over.
//
// The committer works on many Logs at a time, under a single mutex, its own, which
// Lock takes.
type Log struct {
	id    string // of the run
	owner Owner
	clock *storeclock.Clock // it stamps the events

	mu *sync.Mutex // the committer's
	// pending holds writes that wait for their change; flight is the change in
	// flight.
	pending []*Write
	flight  *flight
	queued  *lane // whose queue it is in

	// stashed holds events to be committed before the next write; early is what must
	// be done before they are durable.
	stashed     []store.Event
	stashedSize int // bytes
	early       []*Early
	torn        error // why stashed events are missing; see tear

	head   Head
	lastAt store.Time
	steps  int32

	began      time.Time     // when this execution began
	activeThen time.Duration // active time of earlier executions
}

// NewLog returns the log of a run that o executes from now on. clock stamps its
// events.
func (c *Committer) NewLog(runID string, o Owner, clock *storeclock.Clock) Log {
	return Log{id: runID, owner: o, clock: clock, mu: &c.mu, began: time.Now()}
}

// Begin says that the execution begins at t: from then on it is active.
func (lg *Log) Begin(t time.Time) { lg.began = t }

// Lock takes the mutex of the committer, which works on no log until Unlock.
func (lg *Log) Lock() { lg.mu.Lock() }

// Unlock releases the mutex of the committer.
func (lg *Log) Unlock() { lg.mu.Unlock() }

// Create starts an empty log, for a run that is about to be created.
func (lg *Log) Create(row *store.Run) {
	lg.head = Head{Epoch: row.Epoch}
	lg.lastAt = row.CreatedAt
}

// Follow continues the log after the last event of a claimed row, without its history
// having been read.
func (lg *Log) Follow(row *store.Run) {
	if last := row.Last; last != nil {
		lg.head = Head{Seq: last.Seq, Sum: last.Sum, Epoch: row.Epoch, Branch: row.Branch}
		lg.lastAt, lg.steps, lg.activeThen = last.At, last.Steps, last.Active
	}
}

// FollowPast continues the log after a history that was read.
func (lg *Log) FollowPast(row *store.Run, p *history.Past) {
	lg.head = Head{Seq: p.Head.Seq, Sum: p.Head.Sum, Epoch: row.Epoch, Branch: row.Branch}
	lg.lastAt, lg.steps = p.LastAt, p.Steps
	if row.Last != nil {
		lg.activeThen = row.Last.Active
	}
}

// Conceive builds the change that creates the run with this row, sealed and complete,
// for another run's write to carry.
func (lg *Log) Conceive(row *store.Run, events []store.Event) store.Change {
	lg.stamp(events, time.Time{})
	for i := range events {
		lg.head.Append(lg.id, &events[i])
	}
	return store.Change{RunID: lg.id, Expect: store.Expect{Absent: true}, Create: row, Events: events}
}

// Last returns a change with one more event, for a run that was claimed and is not
// executed: it bypasses the committer. now is the store's time.
func (lg *Log) Last(ev store.Event, now store.Time) store.Change {
	lg.lastAt = max(lg.lastAt, now)
	ev.At, ev.Steps, ev.Active = lg.lastAt, lg.steps, lg.activeThen
	lg.head.Append(lg.id, &ev)
	return store.Change{RunID: lg.id, Expect: store.Expect{Epoch: lg.head.Epoch}, Events: []store.Event{ev}}
}

// Time returns that of the last event.
func (lg *Log) Time() store.Time {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return lg.lastAt
}

// Totals returns what the next event would say: how many steps are done, and how long
// the run was executed. A branch that has lost a race may still be writing.
func (lg *Log) Totals() (steps int, active time.Duration) {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return int(lg.steps), lg.activeThen + time.Since(lg.began)
}

// Busy reports whether anything is in flight or waits for its change. The mutex is
// held.
func (lg *Log) Busy() bool { return lg.flight != nil || len(lg.pending) > 0 }

// stamp gives events their time (clock, or now if it is zero), which never goes
// backwards, and the running totals. The mutex is held.
func (lg *Log) stamp(events []store.Event, clock time.Time) {
	if len(events) == 0 {
		return
	}
	if clock.IsZero() {
		clock = time.Now()
	}
	now, active := lg.clock.At(clock), lg.activeThen+clock.Sub(lg.began)
	for i := range events {
		ev := &events[i]
		if history.IsStepOutcome(ev) {
			lg.steps++
		}
		lg.lastAt = max(lg.lastAt, now)
		ev.At, ev.Steps, ev.Active = lg.lastAt, lg.steps, active.Truncate(time.Microsecond)
	}
}

// takeOff moves the pending writes into f: all of them, or only the first if that must
// be alone.
func (lg *Log) takeOff(f *flight) *flight {
	n := 1
	if !lg.pending[0].Alone {
		// Nothing may follow a write that yields the run.
		for n < len(lg.pending) && !lg.pending[n].Alone && !lg.pending[n-1].Yield {
			n++
		}
	}
	if n == len(lg.pending) {
		f.writes, lg.pending = lg.pending, f.writes[:0]
	} else {
		f.writes = append(f.writes[:0], lg.pending[:n]...)
		lg.pending = append(lg.pending[:0], lg.pending[n:]...)
	}
	f.again, f.sent = false, sent{}
	lg.flight = f
	return f
}

// putBack undoes takeOff.
func (lg *Log) putBack() {
	lg.pending = append(append([]*Write{}, lg.flight.writes...), lg.pending...)
	lg.flight = nil
}

// unsettled returns the writes of the log that are not settled.
func (lg *Log) unsettled() []*Write {
	if lg.flight != nil {
		return lg.flight.writes
	}
	return lg.pending
}

// settlePending answers the callers whose writes are not in flight. The mutex is
// held.
func (lg *Log) settlePending(err error) {
	for _, w := range lg.pending {
		w.settle(err)
	}
	lg.pending = nil
}

// build makes the change of the flight and assigns places to the events in order.
// Only the leader calls it, and the leader owns the head as long as the flight lasts.
func (lg *Log) build() []store.Change {
	f := lg.flight
	if f.again {
		return f.change[:]
	}
	f.before = lg.head
	f.again = true
	if w := f.writes[0]; len(f.writes) == 1 && w.plain() {
		lg.buildPlain(w)
		return f.change[:]
	}
	events, c := f.events[:0], &f.change[0]
	*c, f.plain = store.Change{RunID: lg.id, Expect: store.Expect{Epoch: lg.head.Epoch}}, false
	for _, w := range f.writes {
		for i := range w.Events {
			ev := &w.Events[i]
			if w.Branching != nil && i == w.Branching.At {
				w.Branching.begin(&lg.head, ev)
				c.Branch = &w.Branching.Branch
			}
			lg.head.append(&f.sealing, lg.id, ev)
			events = append(events, *ev)
		}
		c.Row = c.Row.Over(w.Row)
		c.Send = append(c.Send, w.Send...)
		c.Start = append(c.Start, w.Start...)
		if w.Create != nil {
			c.Create = w.Create
			c.Expect.Epoch = 0
		}
		c.Expect.Absent = c.Expect.Absent || w.Expect.Absent
		c.Expect.NoCancel = c.Expect.NoCancel || w.Expect.NoCancel
		if w.Expect.Inbox != nil {
			c.Expect.Inbox = w.Expect.Inbox
		}
		c.Hold = append(c.Hold, w.Hold...)
		c.Release = c.Release || w.Release
		c.Yield = c.Yield || w.Yield
	}
	c.Events, f.events = events, events
	if n := len(c.Send); n > 0 {
		c.Sent = make([]int64, n)
	}
	return f.change[:]
}

// buildPlain is build for the usual checkpoint: one write of nothing but events. The
// change has them where the write has them, which stays as it is until it is settled.
func (lg *Log) buildPlain(w *Write) {
	f := lg.flight
	c := &f.change[0]
	if !f.plain {
		*c, f.plain = store.Change{}, true
	}
	for i := range w.Events {
		lg.head.append(&f.sealing, lg.id, &w.Events[i])
	}
	c.RunID, c.Expect.Epoch, c.Events = lg.id, lg.head.Epoch, w.Events
}

// handBack takes back the places of the flight: the store has not accepted its
// change, and never will. The mutex is held.
func (lg *Log) handBack() { lg.head = lg.flight.before }

// count adds the outcomes that w records to the running totals of what follows it, or
// takes them away again. The mutex is held.
func (lg *Log) count(w *Write, sign int32) {
	n := int32(0)
	for i := range w.Events {
		if history.IsStepOutcome(&w.Events[i]) {
			n += sign
		}
	}
	lg.steps += n
	for i := range lg.stashed {
		lg.stashed[i].Steps += n
	}
	for _, p := range lg.pending {
		for i := range p.Events {
			p.Events[i].Steps += n
		}
	}
}

// EndsAt returns the patch with the end of a run, if it sets one, at the time of the
// event that records it, so that the two can be compared.
func EndsAt(p *store.RowPatch, at store.Time) *store.RowPatch {
	if p == nil || p.EndedAt == nil || *p.EndedAt == 0 {
		return p
	}
	own, end := *p, at // a copy of at, so that a write which ends nothing allocates nothing
	own.EndedAt = &end
	return &own
}
