package commit

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Write is what one durable call wants recorded. Once it was handed to a
// Committer, only Compose may change its fields; after an error, which may leave it with
// a store that has not answered, nobody may.
type Write struct {
	Events []store.Event // without Seq, At, Sum, Branch and running totals
	Row    *store.RowPatch
	Create *store.Run
	Send   []store.Message
	Start  []store.Change
	// Expect: only Absent, NoCancel and Inbox are used. If there are other messages than Inbox says,
	// the write is refused, and the run goes on: whether it is lost, the next write finds out.
	Expect store.Expect
	Yield  bool
	// Branching begins a generation with one of the events.
	Branching *Branching
	// Release frees the run's exclusive keys; Hold takes some.
	Release bool
	Hold    []string
	// Alone keeps the write out of a change with others: its precondition must
	// not fail them.
	Alone bool
	// FailFast returns a store failure to the caller instead of retrying for ever.
	FailFast bool

	// Clock is when the events happened; zero: now.
	Clock time.Time

	// Compose, if set, completes the write when it gets its place in the log,
	// under the committer's mutex, so that its decisions follow the order of the
	// log. It must not fail. It may change only Events and Row of the write.
	Compose func(*Write)
	// Then, if set, is called with the outcome, under the committer's mutex, even if
	// the caller has stopped waiting.
	Then func(error)

	stashed  bool // its events were handed to Stash
	unsure   bool // an answer of the store has left open what became of it
	admitted bool
	settled  bool
	err      error
	at       store.Time    // of its last event
	bytes    int           // about how large it is, once it is pending
	reply    chan *leading // what to lead; nil: it is settled. Made by a caller that waits
	chosen   bool          // reply has what to lead
	run      string        // in whose log it has its place
	turn     chan bool     // of a write that its caller carries out: true: do; false: settled
}

// At returns the time of the last event, once the write is settled.
func (w *Write) At() store.Time { return w.at }

// Admitted reports whether the write got its place in the log, once Commit has
// returned. A write that did not is settled without a call of Then.
func (w *Write) Admitted() bool { return w.admitted }

// Renew makes w, which had nothing but events and is durable, ready to be another such write, in the
// same memory. It reports false, and does nothing, if the store may still be reading that.
func (w *Write) Renew() bool {
	if w.unsure || w.err != nil || !w.settled {
		return false
	}
	if w.Row != nil || w.reply != nil {
		w.Row, w.reply = nil, nil // only if need be: the collector makes each such write dear
	}
	w.admitted, w.settled, w.chosen, w.Alone, w.at, w.bytes = false, false, false, false, 0, 0
	return true
}

// Ends reports whether w begins a generation or ends the run: the only writes
// of a run whose leftovers were stopped.
func (w *Write) Ends() bool { return w.Yield || w.Branching != nil }

// interrupts reports whether w gives the run up without an end.
func (w *Write) interrupts() bool {
	return w.Yield && (w.Row == nil || w.Row.Status == nil || !w.Row.Status.Terminal())
}

// plain reports whether w is nothing but events.
func (w *Write) plain() bool {
	return len(w.Events) > 0 && w.Row == nil && w.Create == nil && len(w.Send) == 0 && len(w.Start) == 0 && w.Branching == nil &&
		!w.Expect.Absent && !w.Expect.NoCancel && w.Expect.Inbox == nil && len(w.Hold) == 0 && !w.Release && !w.Yield
}

// isLarge reports whether w is one of those that small writes do not wait for.
func (w *Write) isLarge() bool { return w.bytes >= largeSize }

func (w *Write) size() int {
	n := 512
	for i := range w.Events {
		n += len(w.Events[i].Payload) + len(w.Events[i].Data)
	}
	for i := range w.Start {
		n += w.Start[i].Size()
	}
	for i := range w.Send {
		n += len(w.Send[i].Payload) + len(w.Send[i].Data)
	}
	return n
}

func (w *Write) settle(err error) {
	w.settled, w.err = true, err
	if w.Then != nil {
		w.Then(err)
	}
	// Last: from then on the caller may use w for something else.
	switch {
	case w.turn != nil:
		select {
		case w.turn <- false:
		default: // it has its turn
		}
	case w.reply != nil:
		select {
		case w.reply <- nil:
		default: // it was just picked to lead, and finds itself settled
		}
	}
}

// Branching is the part of a write that begins a generation.
type Branching struct {
	At     int // index of the first event on the branch
	Branch store.Branch
	Data   history.Beginning // of that event
}

// begin switches to the branch, at its first event. It is called when the number and
// the sum of the previous event are known, and again if the change is refused and
// rebuilt.
func (b *Branching) begin(head *Head, first *store.Event) {
	b.Branch.Cutoff = head.Seq
	head.Branch = b.Branch.N
	// Stored a second time, so that the chain can be checked when the earlier events
	// are gone.
	b.Data.Sum = head.Sum
	first.Data = history.Encode(&b.Data)
	first.Steps = 0
}
