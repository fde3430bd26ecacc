package history

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// An Asked is a wait for a person that has not been answered yet.
type Asked struct {
	RunID    string
	Workflow string
	Key      string // of the wait
	Name     string // under which it was asked for
	Prompt   string
	Answer   string     // the signal name that answers this wait and no other
	AskedAt  store.Time // when it was first asked
	Until    store.Time // when it ends by itself; 0: never
	Seq      int64      // of wait_requested
	Sample   json.RawMessage
}

// OpenWaits returns the waits of a run that were asked for and neither answered nor
// closed.
func OpenWaits(h *store.History) ([]store.Event, error) {
	if h.Run.Status.Terminal() {
		return nil, nil
	}
	var open []store.Event
	for ev, err := range h.Events {
		if err != nil {
			return nil, err
		}
		switch ev.Type {
		case store.WaitRequested:
			open = append(open, ev)
		case store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
			open = slices.DeleteFunc(open, func(w store.Event) bool { return w.Key == ev.Key })
		}
	}
	return open, nil
}

// AskedBy returns those of a run's open waits that ask a person, except those whose
// answer is in the inbox and was not taken yet. The error is a *Damage.
func AskedBy(p *Past, row *store.Run, waits []store.Event, inbox []store.Message) ([]Asked, error) {
	var open []Asked
	for i := range waits {
		ev := &waits[i]
		d, err := Of[WaitBegun](ev)
		if err != nil {
			return nil, &Damage{RunID: row.ID, Seq: ev.Seq, Err: err}
		}
		a := Asked{
			RunID: row.ID, Workflow: row.Workflow, Key: ev.Key, Name: d.Name, Prompt: d.Prompt,
			Answer: WaitKey(ev.Key, row.Branch), AskedAt: ev.At, Until: d.Until, Seq: ev.Seq, Sample: d.Sample,
		}
		if d.Prompt != "" && !a.answeredBy(inbox, p) {
			open = append(open, a)
		}
	}
	return open, nil
}

// answeredBy reports whether an answer is among the messages that were not taken.
func (a *Asked) answeredBy(inbox []store.Message, p *Past) bool {
	for i := range inbox {
		m := &inbox[i]
		if m.Kind == store.KindSignal && (m.Name == a.Name || m.Name == a.Answer) && !p.Consumed(m) {
			return true
		}
	}
	return false
}
