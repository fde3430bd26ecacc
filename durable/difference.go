package durable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// What was done to a workflow's code, as far as the first difference between a history
// and the code tells (DefinitionChangedError.Change). They are words for people and for
// metrics; more of them may be added.
const (
	ChangeInserted  = "inserted"  // a call that is not recorded
	ChangeRemoved   = "removed"   // a recorded call is no longer made
	ChangeRenamed   = "renamed"   // a recorded call has another name
	ChangeReordered = "reordered" // a recorded call is made earlier, or another one later
	// One of two, which the first difference alone cannot tell apart. With the
	// names declared by Steps it often can.
	ChangeInsertedOrRenamed  = "inserted or renamed"
	ChangeRemovedOrReordered = "removed or reordered"
	// ChangeKind: a step has become a wait, a loop a Map, and so on.
	ChangeKind = "kind changed"
	// ChangeItems: a Map has other items.
	ChangeItems = "items changed"
	// ChangeInput: a step has another WithInput, an answer another request.
	ChangeInput = "input changed"
	// ChangeChild: a child run has another id.
	ChangeChild = "child changed"
	// ChangeBranches: a First has fewer branches.
	ChangeBranches = "branches changed"
	// ChangePatchRemoved: the history has the marker of a Patched that the code no
	// longer asks for.
	ChangePatchRemoved = "patch removed"
)

// changeOf names the edit at the first difference: call stands where recorded has
// another key, at ordinal (from 1). sameKind says whether the two calls are of one
// kind, and declared are the names the code now gives to Steps, nil if it names
// none. All keys are of one scope. For example:
//
//	recorded       call now   edit
//	a b c          x (at 2)   inserted or renamed; inserted if x is of another kind or the code still declares b
//	a b c          c (at 2)   removed or reordered; removed if the code declares no b
//	s s#2 s#3 b    b (at 3)   removed: one repetition less
//	s s#2 b        s#3 (at 3) inserted: one repetition more
func changeOf(recorded []string, ordinal int, call string, sameKind bool, declared []string) string {
	at := recorded[ordinal-1]
	still := slices.Contains(declared, baseOf(at))
	later := slices.Index(recorded[ordinal:], call)
	repeated := func(key string) bool { return key != baseKey(key) }
	switch {
	case later < 0 && repeated(call):
		return ChangeInserted
	case later >= 0 && repeated(at) && baseKey(at) != baseKey(call):
		return ChangeRemoved
	case later < 0 && (!sameKind || still):
		return ChangeInserted
	case later < 0 && declared != nil:
		return ChangeRenamed
	case later < 0 && alike(at, call):
		return ChangeRenamed
	case later < 0:
		return ChangeInsertedOrRenamed
	case still:
		return ChangeReordered
	case declared != nil:
		return ChangeRemoved
	}
	return ChangeRemovedOrReordered
}

// baseKey returns a key without its occurrence number.
func baseKey(key string) string {
	if i := strings.LastIndexByte(key, '#'); i > strings.LastIndexByte(key, '/') {
		return key[:i]
	}
	return key
}

// baseOf returns the name at the end of a key, as it is escaped there.
func baseOf(key string) string {
	key = baseKey(key)
	return key[strings.LastIndexByte(key, '/')+1:]
}

// alike reports whether two keys differ in case, or in what stands between their
// words, and in nothing else.
func alike(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}

// sentence says of the first difference what was edited.
func (e *DefinitionChangedError) sentence(recorded string) string {
	what := ""
	switch e.Change {
	case ChangeInserted:
		what = ": it was inserted"
	case ChangeRenamed:
		what = fmt.Sprintf(": %s was renamed", recorded)
	case ChangeInsertedOrRenamed:
		what = fmt.Sprintf(": it was inserted, or %s was renamed", recorded)
		if e.Ordinal == len(e.Recorded) {
			what += " or removed" // what came after it may not be recorded yet
		}
	case ChangeRemoved:
		what = fmt.Sprintf(": %s was removed", recorded)
	case ChangeReordered:
		what = ": the order was changed"
	case ChangeRemovedOrReordered:
		what = fmt.Sprintf(": %s was removed, or the order was changed", recorded)
	}
	return fmt.Sprintf("%s stands where %s was recorded%s.", e.Call, recorded, what)
}

// advice says what was edited and what to do about it. What it names, applied, heals
// the run: Patched is false for a run that has recorded a call here without its
// marker, whatever was edited.
func (e *DefinitionChangedError) advice() string {
	recorded := ""
	if e.Ordinal-1 < len(e.Recorded) {
		recorded = e.Recorded[e.Ordinal-1]
	}
	goBack := fmt.Sprintf("Or run this with %s.", e.RecordedBy)
	patched := func(change string) string {
		return fmt.Sprintf("Make it legal:\n  if durable.Patched(ctx, %q) { … as it is now } else { … as it was recorded: %s }", change, recorded)
	}
	switch {
	case e.Detail != "":
		return e.Detail + "\n" + goBack
	case e.Call == "":
		return fmt.Sprintf("%s is recorded and the code no longer calls it. Make it legal:\n  if !durable.Patched(ctx, %q) { … as it was recorded: %s }\n%s", recorded, "without-"+baseOf(recorded), recorded, goBack)
	case recorded == "":
		return fmt.Sprintf("%s is not in the history.", e.Call)
	}
	said := e.sentence(recorded)
	if e.Change == ChangeRemoved || e.Change == ChangeReordered || e.Change == ChangeRemovedOrReordered {
		return fmt.Sprintf("%s %s\n%s", said, patched("without-"+baseOf(recorded)), goBack)
	}
	return fmt.Sprintf("%s %s\n%s", said, patched(baseOf(e.Call)), goBack)
}

// Recorder says who recorded a call: who had the run then.
type Recorder struct {
	Version  string // of the workflow; empty: it has none
	Build    string // of the program, see Options.Build; empty: not known
	Executor string // Options.Name, or host name and process id; empty: not known
	At       store.Time
	// First: it is the code that the run was started with.
	First bool
}

// String names the code: "the code it was started with", or its version and build and
// who had it.
func (r Recorder) String() string {
	var parts []string
	if r.Version != "" {
		parts = append(parts, "version "+r.Version)
	}
	if r.Build != "" {
		parts = append(parts, "build "+r.Build)
	}
	if r.First {
		return strings.Join(append([]string{"the code it was started with"}, parts...), ", ")
	}
	if r.Executor != "" {
		parts = append(parts, fmt.Sprintf("of executor %s, which took the run at %s", r.Executor, r.At.Time().UTC().Format(time.DateTime)))
	}
	if len(parts) == 0 {
		return "the code that recorded it"
	}
	return "the code that recorded it: " + strings.Join(parts, ", ")
}

// recorder returns who had the run when event seq was recorded; version is that of the
// runs that were never pinned to another one.
func recorder(p *history.Past, seq int64, version string) Recorder {
	c, first := p.HolderAt(seq)
	if c == nil {
		return Recorder{}
	}
	return Recorder{Version: cmp.Or(c.Version, version), Build: c.Build, Executor: c.Name, At: c.At, First: first}
}
