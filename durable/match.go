package durable

import (
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/matching"
	"github.com/holdfast-dev/holdfast/store"
)

// MatchByName matches the calls of this workflow's runs with their history by
// name alone. A recorded call is found wherever the code now makes it; a call that is
// not recorded runs; and a recorded call that is no longer made is reported in the log
// (a warning when its function returns) and in Data of the event that ends the run.
//
// It gives up what the order protects: values that come from the order of calls
// (Now, Rand, NewID, and the number of a name that repeats, "send#2") may silently go to
// another call, and so may a result whose step now comes after other data. A call of
// another kind under a recorded name, a Map item with another value, another child and
// another WithInput still stop the run. Do not remove the option while runs exist that
// it has let through.
func MatchByName() DefineOption { return func(d *definition) { d.byName = true } }

// DefinitionChangedError shows the first durable call at which the code and
// the history differ.
type DefinitionChangedError struct {
	RunID    string
	Workflow string
	Scope    string   // path of the scope; empty: the workflow function itself
	Recorded []string // keys of the calls recorded in the scope, in order
	Ordinal  int      // 1-based place of the first difference
	Call     string   // key of the call that the code makes there; empty: it makes none
	Source   string   // file:line of that call, when known
	Detail   string   // what differs when the keys are equal
	Change   string   // what was done to the code, as far as that can be told; see ChangeInserted
	// RecordedBy is whose code fits what is recorded in the scope; zero: not known.
	RecordedBy Recorder
	Version    string // of the workflow, in the code that is here
}

func (e *DefinitionChangedError) Error() string {
	d := &matching.Difference{
		RunID: e.RunID, Workflow: e.Workflow, Scope: e.Scope, Recorded: e.Recorded, Ordinal: e.Ordinal, Call: e.Call,
		Source: e.Source, Detail: e.Detail, Change: e.Change, RecordedBy: matching.Recorder(e.RecordedBy), Version: e.Version,
	}
	return d.String()
}

func (e *DefinitionChangedError) Is(target error) bool { return target == ErrDefinitionChanged }

// What was done to a workflow's code, as far as the first difference between a history
// and the code tells (DefinitionChangedError.Change). They are words for people and for
// metrics; more of them may be added.
const (
	ChangeInserted  = matching.ChangeInserted  // a call that is not recorded
	ChangeRemoved   = matching.ChangeRemoved   // a recorded call is no longer made
	ChangeRenamed   = matching.ChangeRenamed   // a recorded call has another name
	ChangeReordered = matching.ChangeReordered // a recorded call is made earlier, or another one later
	// One of two, which the first difference alone cannot tell apart. With the
	// names declared by Steps it often can.
	ChangeInsertedOrRenamed  = matching.ChangeInsertedOrRenamed
	ChangeRemovedOrReordered = matching.ChangeRemovedOrReordered
	// ChangeKind: a step has become a wait, a loop a Map, and so on.
	ChangeKind = matching.ChangeKind
	// ChangeItems: a Map has other items.
	ChangeItems = matching.ChangeItems
	// ChangeInput: a step has another WithInput, an answer another request.
	ChangeInput = matching.ChangeInput
	// ChangeChild: a child run has another id.
	ChangeChild = matching.ChangeChild
	// ChangeBranches: a First has fewer branches.
	ChangeBranches = matching.ChangeBranches
	// ChangePatchRemoved: the history has the marker of a Patched that the code no
	// longer asks for.
	ChangePatchRemoved = matching.ChangePatchRemoved
)

// Recorder says who recorded a call: the code and the executor that had the run then.
type Recorder struct {
	Version  string // of the workflow; empty: it has none
	Build    string // of the program, see Options.Build; empty: not known
	Executor string // Options.Name, or host name and process id; empty: not known
	At       store.Time
	// First: it is the code that the run was started with.
	First bool
	// Same: it is the build, or the very process, that met the difference. Then the code most
	// likely decides by something that is not recorded.
	Same bool
}

// String names the code: "the code it was started with", or its version and build and
// the executor that had it.
func (r Recorder) String() string { return matching.Recorder(r).String() }

// A replay is the history of a scope, and how far its code has come in it. Where the two
// differ, it parks the run.
type replay struct {
	scope *scope
	matching.Replay
}

// match finds the record of call c, whose key is known, and gives the call the ordinal
// that it keeps. If it returns an error, the run is parked.
func (rp *replay) match(c *call, kind history.CallKind) (err error) {
	var d *matching.Difference
	if c.ordinal, c.rec, d = rp.Match(c.key, kind); d != nil {
		return rp.park(d)
	}
	return nil
}

// changed parks the run, because its code and its history differ at call c; detail says
// how.
func (rp *replay) changed(change string, c *call, detail string) error {
	return rp.park(rp.Changed(change, c.ordinal, c.key, detail))
}

// finish checks, when the scope's function has returned, that nothing recorded
// was left uncalled.
func (rp *replay) finish() error {
	uncalled, d := rp.Finish()
	if d != nil {
		return rp.park(d)
	}
	rp.noteUncalled(uncalled)
	return nil
}

// park parks the run because of a changed definition.
func (rp *replay) park(d *matching.Difference) error {
	r := rp.scope.run
	e := &DefinitionChangedError{
		RunID: r.id, Workflow: r.def.name, Scope: d.Scope, Recorded: d.Recorded, Ordinal: d.Ordinal, Call: d.Call,
		Detail: d.Detail, Change: d.Change, RecordedBy: Recorder(d.RecordedBy), Version: d.Version,
	}
	if e.Call != "" {
		e.Source = callerOutside()
	}
	return r.die(&death{kind: deathParked, code: CodeDefinitionChanged, err: e})
}

// noteUncalled keeps keys that were recorded in the scope and not called, and warns.
func (rp *replay) noteUncalled(keys []string) {
	if len(keys) == 0 {
		return
	}
	rp.scope.run.matching.NotCalled(keys)
	rp.scope.run.logLine(slog.LevelWarn, "durable: recorded calls were not made by this code (matched by name)", slog.String("scope", rp.scope.path), slog.Any("calls", keys))
}
