package durable

import (
	"github.com/holdfast-dev/holdfast/store"
)

// A record is what the history holds of one durable call.
type record struct {
	key      string
	kind     callKind
	seq      int64       // number of its first event
	once     bool        // its body must not run twice (Once)
	fresh    bool        // its failures were reset, and nothing is recorded since
	opened   bool        // its beginning is recorded: timer_set, wait_requested, ...
	child    string      // run id of a child
	abandon  bool        // of a child: it outlives its parent
	derived  bool        // of a child: its id was derived, and not chosen by the workflow
	again    bool        // of a branch that has ended: its function is replayed; see replayEnded
	openedAt store.Time  // of its first event, if that is its beginning
	until    store.Time  // of a timer or a wait: when it ends by itself
	outcome  store.Event // what ended it; Seq 0: nothing yet
	failures []store.Event
	progress *store.Event            // the last progress_saved without a name,
	slots    map[string]*store.Event // and the last one of each name
	settled  int64                   // number of the last event that says how an attempt ended
	input    string                  // hash of WithInput, as recorded with the first event
	item     string                  // of the first call of an item: hash of the item
	began    store.Time              // of step_started; 0: not recorded
	lastAt   store.Time
}

// saved files what a body has saved of its progress.
func (rec *record) saved(slot string, ev *store.Event) {
	if slot == "" {
		rec.progress = ev
		return
	}
	if rec.slots == nil {
		rec.slots = map[string]*store.Event{}
	}
	rec.slots[slot] = ev
}

// lastSaved returns what was last saved under a name, nil if there is nothing.
func (rec *record) lastSaved(slot string) *store.Event {
	switch {
	case rec == nil:
		return nil
	case slot == "":
		return rec.progress
	}
	return rec.slots[slot]
}
