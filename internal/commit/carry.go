package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrNotLanded: the change of Hold.Commit is not durable and never will be, and the run
// goes on here.
var ErrNotLanded = errors.New("durable: the transaction was not committed")

// A Hold has a log to itself: nothing of the run is in flight, and what is handed to the
// committer waits until the Hold ends. Other runs do not wait. It is ended by one call of
// Commit or Release.
type Hold struct {
	c  *Committer
	lg *Log
	w  *Write // stands for the one to come
}

// Hold waits until what is pending in the log is committed, and holds it. The end of ctx
// ends the wait.
func (c *Committer) Hold(ctx context.Context, lg *Log) (*Hold, error) {
	w := &Write{Alone: true, turn: make(chan bool, 1)}
	c.mu.Lock()
	lg.doEarly()
	if err := lg.admits(w); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if c.stop.Err() != nil {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	lg.unstash(true)
	lg.pending = append(lg.pending, w)
	if lg.queued == nil && lg.flight == nil {
		c.call(c.enqueue(lg)) // what w follows may have no caller that leads
	}
	c.mu.Unlock()
	h := &Hold{c: c, lg: lg, w: w}
	select {
	case granted := <-w.turn:
		return h.granted(granted)
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case granted := <-w.turn:
		return h.granted(granted)
	default:
	}
	lg.pending = slices.DeleteFunc(lg.pending, func(p *Write) bool { return p == w })
	return nil, context.Cause(ctx)
}

func (h *Hold) granted(granted bool) (*Hold, error) {
	if !granted {
		return nil, h.w.err // the run is lost, or the engine has given up
	}
	return h, nil
}

// giveTurn makes the first pending write, which is a Hold, the flight. The mutex is held.
func (c *Committer) giveTurn(lg *Log) {
	w := lg.pending[0]
	lg.takeOff(c.flights.next())
	lg.flight.change[0], lg.flight.plain = store.Change{RunID: lg.id}, false
	c.held = append(c.held, lg)
	w.turn <- true
}

// Release ends the hold without a change.
func (h *Hold) Release() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.lg.flight.writes = h.lg.flight.writes[:0]
	h.end(ErrNotLanded)
}

// end ends the hold. The mutex is held.
func (h *Hold) end(err error) {
	h.c.held = slices.DeleteFunc(h.c.held, func(l *Log) bool { return l == h.lg })
	h.c.land(h.lg, err)
}

// Commit records w by carry, which makes its change durable together with something of
// its own, and ends the hold.
//
// carry answers as Store.Commit does, and is called at most once, because its change must
// never be sent again alone. So if it does not know the outcome, or says that the
// log has no place for the change, Commit commits rival, an event that changes nothing,
// to the same place: only one of the two can ever be there. If it is the rival, the
// error matches ErrNotLanded.
//
//	7 step_completed a      the head
//	8 step_completed b  ─┐  sent with COMMIT, whose answer is lost
//	8 step_started   b  ─┘  the rival: either it is refused, and event 8 is the first
//	                        one, or it is durable, and the first one never will be
//
// After any other error the change was not carried out, unless it matches ErrUnknown.
func (h *Hold) Commit(w *Write, rival store.Event, carry func(store.Change) error) error {
	c, lg := h.c, h.lg
	c.mu.Lock()
	if err := h.admit(w); err != nil {
		h.end(err)
		c.mu.Unlock()
		return err
	}
	change := lg.build()[0] // under the mutex, because Abandon may answer w meanwhile
	c.mu.Unlock()
	began := time.Now()
	err := carry(change)
	c.measure(time.Since(began), []error{err})
	c.mu.Lock()
	f := lg.flight
	answer := f.sent.hear(err)
	c.mu.Unlock()
	switch answer {
	case taken:
	case open, lost:
		var landed bool
		if landed, err = c.contest(lg, &change, rival); landed {
			err = nil
		}
	case closed:
		err = f.sent.unanswered(err, ErrClosed, ErrClosed)
		lg.handBack()
	default:
		lg.handBack()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		lg.count(w, -1)
		lg.owner.RowRefused()
	}
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrLost) {
		lg.owner.Lose(err)
	}
	gaveUp := w.settled
	h.end(err)
	if gaveUp {
		return w.err // the engine did, meanwhile
	}
	return err
}

// admit puts w in the place of the hold, before everything that is pending: what the hold
// had to wait for is in the log. The mutex is held.
func (h *Hold) admit(w *Write) error {
	lg := h.lg
	if h.w.settled {
		return h.w.err
	}
	if err := lg.admits(w); err != nil {
		return err
	}
	if h.c.stop.Err() != nil {
		return ErrClosed
	}
	if next := lg.next(); next != nil {
		// What follows has been stamped already, and its callers may know its time.
		steps := next.Steps
		if history.IsStepOutcome(next) {
			steps--
		}
		for i := range w.Events {
			ev := &w.Events[i]
			if history.IsStepOutcome(ev) {
				steps++
			}
			ev.At, ev.Active, ev.Steps = next.At, next.Active, steps
		}
		lg.count(w, +1)
	} else {
		lg.stamp(w.Events, w.Clock)
	}
	w.Row = lg.owner.Row(true).Over(w.Row)
	w.at = w.Events[len(w.Events)-1].At
	w.admitted = true
	lg.flight.writes = append(lg.flight.writes[:0], w)
	return nil
}

// contest finds out what became of a change: see Hold.Commit. It leaves the head of the log
// where the log ends. ErrLost says that the run is another executor's; ErrClosed, that
// nothing could be found out.
func (c *Committer) contest(lg *Log, change *store.Change, ev store.Event) (landed bool, err error) {
	f := lg.flight
	head, like := f.before, &change.Events[0]
	ev.At, ev.Active, ev.Steps = like.At, like.Active, like.Steps
	if history.IsStepOutcome(like) {
		ev.Steps--
	}
	head.Append(lg.id, &ev)
	rival := store.Change{RunID: lg.id, Expect: store.Expect{Epoch: head.Epoch}, Events: []store.Event{ev}}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := c.CommitKnown(c.stop, context.Background(), []store.Change{rival})[0]
		var answer sent
		switch answer.hear(err) {
		case taken:
			lg.head = head
			return false, ErrNotLanded
		case lost:
			if landed, err = c.landed(change); err == nil && !landed {
				return false, ErrLost
			}
			if err == nil {
				// It was read, maybe on the primary alone. It holds its place: sent again it writes
				// nothing, and the store acknowledges it only when it is safe.
				err = c.CommitKnown(c.stop, context.Background(), []store.Change{*change})[0]
			}
			if err == nil {
				return true, nil
			}
		}
		if c.stop.Err() != nil || answer.hear(err) == closed {
			return false, fmt.Errorf("%w: %w: %w", store.ErrUnknown, ErrClosed, err)
		}
		c.log.Warn("durable: it is not known whether a transaction was committed; it is asked again until it is", "run", lg.id, "error", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-c.stop.Done():
			t.Stop()
		}
	}
}

// landed reports whether a change is in the log.
func (c *Committer) landed(change *store.Change) (bool, error) {
	h, err := c.store.Load(c.stop, change.RunID, store.Cursor{After: change.Mark() - 1, All: true})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for ev, err := range h.Events {
		return err == nil && change.Did(&ev), err
	}
	return false, nil
}

// next returns the first event that waits for its place in the log, nil if there is none.
// The mutex is held.
func (lg *Log) next() *store.Event {
	for _, p := range lg.pending {
		if len(p.Events) > 0 {
			return &p.Events[0]
		}
	}
	if len(lg.stashed) > 0 {
		return &lg.stashed[0]
	}
	return nil
}
