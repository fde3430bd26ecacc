package durable

import (
	"errors"

	"github.com/holdfast-dev/holdfast/store"
)

// logHead is where a run's log ends. It is guarded by the committer's mutex, and
// by the flight while one is under way.
type logHead struct {
	seq    int64
	sum    uint32
	epoch  int64
	branch int32
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

// takeOff moves what is pending into a flight: all of it, or, when the first
// must be alone, that one.
func (r *run) takeOff() *flight {
	f := &r.flightSpace
	n := 1
	if !r.pending[0].alone {
		// Nothing may stand behind a write that gives the run up.
		for n < len(r.pending) && !r.pending[n].alone && !r.pending[n-1].yield {
			n++
		}
	}
	f.writes = append(f.writes[:0], r.pending[:n]...)
	r.pending = append(r.pending[:0], r.pending[n:]...)
	f.again, f.unknown = false, false
	r.flight = f
	return f
}

// putBack undoes takeOff.
func (r *run) putBack() {
	r.pending = append(append([]*write{}, r.flight.writes...), r.pending...)
	r.flight = nil
}

// build makes the change of a flight: one after the other the events get their
// numbers and sums. Only the leader is here, and the run's head is its own as
// long as the flight lasts.
func (f *flight) build(r *run) {
	if f.again {
		return
	}
	f.before = r.head
	events := f.change.Events[:0]
	f.change = store.Change{RunID: r.id, Expect: store.Expect{Epoch: r.head.epoch}}
	for _, w := range f.writes {
		for i := range w.events {
			ev := &w.events[i]
			if w.branching != nil && i == w.branching.at {
				w.branching.begin(&r.head, ev)
				f.change.Branch = &w.branching.branch
			}
			r.head.seq++
			ev.Seq, ev.Branch = r.head.seq, r.head.branch
			ev.Sum = store.Seal(r.id, r.head.sum, ev)
			r.head.sum = ev.Sum
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
}

// settle answers those who wait for the flight.
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

// mayFail reports whether everybody who waits for the flight takes a failure of
// the store for an answer.
func (f *flight) mayFail() bool {
	for _, w := range f.writes {
		if !w.once {
			return false
		}
	}
	return true
}

// definite reports whether the store has decided against a change as such.
func definite(err error) bool {
	for _, d := range []error{store.ErrExists, store.ErrStatus, store.ErrOccupied, store.ErrCancelAsked, store.ErrTooLarge, store.ErrInvalid, store.ErrCorrupt, store.ErrSchema} {
		if errors.Is(err, d) {
			return true
		}
	}
	return false
}
