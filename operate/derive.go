package operate

import (
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// PendingWait is a wait that was requested and neither answered nor closed.
type PendingWait struct {
	Key    string // of the waiting call
	Name   string // of the signal
	Prompt string // empty: it asks no person
	Until  store.Time
	Seq    int64 // of wait_requested
}

// Derived is what the events of a lineage say about a run.
type Derived struct {
	// Status according to the events alone. A run that was repaired or resumed is
	// running until it waits or ends.
	Status store.Status
	// Seq of the last event, and Key of the last recorded durable call: the
	// position of the run.
	Seq int64
	Key string
	// Steps done, and the keys of everything that was completed (steps, children,
	// items), in order.
	Steps     int
	Completed []string
	// Waits that are pending, oldest first. A run that has ended waits for nothing,
	// whatever it had requested.
	Waits []PendingWait
}

// DeriveStatus reconstructs the state of a run from the events of its current
// branch lineage (Engine.History yields them), oldest first, and from nothing
// else. It is a pure function. Without events, or with unreadable ones, the result
// is what the readable events before say.
//
// A run counts as waiting if the last thing it did was to begin a wait, a timer or a
// child that is still open. No event says which of its goroutines go on meanwhile.
func DeriveStatus(events []store.Event) Derived {
	s := history.NewSurvey("")
	for i := range events {
		if s.Add(&events[i]) != nil {
			break
		}
	}
	return derivedOf(s)
}

func derivedOf(s *history.Survey) Derived {
	d := Derived{Status: s.Status, Seq: s.Last.Seq, Key: s.Key, Steps: int(s.Last.Steps), Completed: s.Done}
	if s.Status.Terminal() {
		return d
	}
	for _, o := range s.Open {
		if o.Typ == store.WaitRequested {
			i := len(d.Waits)
			for i > 0 && d.Waits[i-1].Seq > o.Wait.Seq {
				i--
			}
			d.Waits = append(d.Waits[:i:i], append([]PendingWait{PendingWait(o.Wait)}, d.Waits[i:]...)...)
		}
		if o.At.Seq == s.Call && s.Status == store.Running {
			d.Status = store.Waiting
		}
	}
	return d
}

// LastStableEvent returns the last event of a lineage after which a run can be taken
// up again: the outcome of a step, a child or an item, or the answer to a wait, with
// every earlier wait answered or closed by then. It returns nil if there is none. It
// is a pure function; the events are those of one lineage, oldest first.
//
// For example, of "step_completed a, wait_requested w, step_completed b,
// signal_received w, step_started c" it is signal_received.
func LastStableEvent(events []store.Event) *store.Event {
	waits := map[string]bool{}
	stable := -1
	for i := range events {
		switch e := &events[i]; e.Type {
		case store.WaitRequested:
			waits[e.Key] = true
		case store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
			delete(waits, e.Key)
		}
		if events[i].Type.Stable() && len(waits) == 0 {
			stable = i
		}
	}
	if stable < 0 {
		return nil
	}
	return &events[stable]
}
