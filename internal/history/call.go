package history

import (
	"github.com/holdfast-dev/holdfast/store"
)

// A Call is what the history holds of one durable call.
type Call struct {
	Key      string
	Kind     CallKind
	Seq      int64       // number of its first event
	Once     bool        // its body must not run twice (Once)
	Fresh    bool        // its failures were reset, and nothing is recorded since
	Opened   bool        // its beginning is recorded: timer_set, wait_requested, ...
	Child    string      // run id of a child
	Abandon  bool        // of a child: it outlives its parent
	Derived  bool        // of a child: its id was derived, and not chosen by the workflow
	Again    bool        // of a branch that has ended: its function is replayed all the same
	OpenedAt store.Time  // of its first event, if that is its beginning
	Until    store.Time  // of a timer or a wait: when it ends by itself
	Outcome  store.Event // what ended it; Seq 0: nothing yet
	Failures []store.Event
	progress *store.Event            // the last progress_saved without a name,
	slots    map[string]*store.Event // and the last one of each name
	Settled  int64                   // number of the last event that says how an attempt ended
	Input    string                  // hash of WithInput, as recorded with the first event
	Item     string                  // of the first call of an item: hash of the item
	Began    store.Time              // of step_started; 0: not recorded
	LastAt   store.Time
}

// saved files what a body has saved of its progress.
func (rec *Call) saved(slot string, ev *store.Event) {
	if slot == "" {
		rec.progress = ev
		return
	}
	if rec.slots == nil {
		rec.slots = map[string]*store.Event{}
	}
	rec.slots[slot] = ev
}

// LastSaved returns what was last saved under a name, nil if there is nothing.
func (rec *Call) LastSaved(slot string) *store.Event {
	switch {
	case rec == nil:
		return nil
	case slot == "":
		return rec.progress
	}
	return rec.slots[slot]
}
