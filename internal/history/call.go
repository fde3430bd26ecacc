package history

import (
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// A Call is what the history has of one durable call. A long run has as many as steps, so what
// few calls have is apart.
type Call struct {
	Key     string
	Kind    CallKind
	Seq     int64 // number of its first event
	Settled int64 // number of the last event that says how an attempt ended
	LastAt  store.Time
	Fresh   bool        // its failures were reset, and nothing was recorded since
	Opened  bool        // its beginning is recorded: timer_set, wait_requested, ...
	Again   bool        // of a branch that has ended: its function is replayed nevertheless
	Outcome store.Event // what ended it; Seq 0: nothing yet
	*rare               // never nil; see Call.own
}

// rare is what few calls have.
type rare struct {
	Once     bool       // its body must not run twice (Once)
	Child    string     // run id of a child
	Abandon  bool       // of a child: it outlives its parent
	Derived  bool       // of a child: its id was derived, and not chosen by the workflow
	OpenedAt store.Time // time of its first event, if that is its beginning
	Until    store.Time // of a timer or a wait: when it ends by itself
	Failures []store.Event
	progress *store.Event            // the last progress_saved without a name,
	slots    map[string]*store.Event // and the last one of each name
	Input    string                  // hash of WithInput, as recorded with the first event
	Item     string                  // of the first call of an item: hash of the item
	Began    store.Time              // of step_started; 0: not recorded
}

// plain is what all calls share that have nothing rare. Nobody writes to it.
var plain rare

// newCall returns the record of a call of which nothing else is known.
func newCall(key string, kind CallKind) Call { return Call{Key: key, Kind: kind, rare: &plain} }

// own returns what is rare about the call, for writing.
func (rec *Call) own() *rare {
	if rec.rare == &plain {
		rec.rare = new(rare)
	}
	return rec.rare
}

// filing has the calls of the scope that was filed last, because the next one is usually of the
// same scope, and room for the next records.
type filing struct {
	path  string
	calls []*Call
	space []Call
}

// of returns the calls of the scope with this path.
func (f *filing) of(scopes map[string][]*Call, path string) []*Call {
	if path != f.path || f.calls == nil {
		f.done(scopes)
		f.path, f.calls = path, scopes[path]
		if f.calls == nil && path == "" {
			f.calls = make([]*Call, 0, cap(f.space)) // most calls are there
		}
	}
	return f.calls
}

// done brings scopes up to date with what was filed.
func (f *filing) done(scopes map[string][]*Call) {
	if f.calls != nil {
		scopes[f.path] = f.calls
	}
}

// next returns an empty record.
func (f *filing) next() *Call {
	if len(f.space) == cap(f.space) {
		// A new block: records that were handed out stay where they are.
		f.space = make([]Call, 0, min(256, max(4, 2*cap(f.space))))
	}
	f.space = f.space[:len(f.space)+1]
	rec := &f.space[len(f.space)-1]
	rec.rare = &plain
	return rec
}

// open files that the call waits, until a time at the latest; 0: for as long as it takes.
func (rec *Call) open(e *store.Event, until store.Time) {
	rec.Opened = true
	o := rec.own()
	o.OpenedAt, o.Until = e.At, until
}

// end files how the call ended.
func (rec *Call) end(e *store.Event) {
	rec.Outcome, rec.Settled, rec.Again = *e, e.Seq, false
}

// input files the hash of the input, which all events of a step name.
func (rec *Call) input(hash string) {
	if rec.Input == "" && hash != "" {
		rec.own().Input = hash
	}
}

// saved files what a body has saved of its progress.
func (rec *Call) saved(slot string, e *store.Event) {
	ev := *e
	if slot == "" {
		env, err := envelope.Open(ev.Payload)
		if err != nil || env.Type != "shell.inFlight" {
			rec.own().progress = &ev
			return
		}
		slot = "holdfast/shell" // as package shell saved it before names existed
	}
	o := rec.own()
	o.slots = put(o.slots, slot, &ev)
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

// put sets m[k] to v, in a new map if m is nil.
func put[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[k] = v
	return m
}
