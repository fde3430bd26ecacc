package durable

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// A call is matched with the history of its scope by order and name: the n-th
// call must be the n-th that was recorded. With MatchByName, or for a run that
// was forced, it is matched by name alone:
//
//	recorded          code now          by order          by name
//	a b c             a x b c           stops at x        a, b, c as recorded; x runs
//	a b c             b a c             stops at b        all as recorded
//	a b c             a c               stops at c        a, c as recorded; b is reported
//
// What runs anew is recorded after everything else of its scope, so that places
// in the history stay without a gap.

// MatchByName matches the calls of this workflow's runs with their history by
// name alone: a recorded call is found wherever the code now makes it, one that is
// not recorded runs, and one that is recorded and no longer made is reported in
// the log (a warning when its function returns) and in Data of the event that
// ends the run.
//
// It gives up what the order protects: values that come from the order of calls
// (Now, Rand, NewID, and the number of a name that repeats, "send#2") may change
// their owner without anybody noticing, and so may a result whose step now stands
// after other data. A call of another kind under a recorded name, a Map item
// whose value is another one, another child and another WithInput still stop the
// run. Do not take the option away while runs exist that it has let through.
func MatchByName() DefineOption { return func(d *definition) { d.byName = true } }

// A replay is the history of a scope, and how far its code has come in it.
type replay struct {
	scope *scope
	hist  []*history.Call // the recorded calls by ordinal - 1
	live  atomic.Bool     // set once the last of them is made

	// What follows belongs to the one call that is under way.
	next    int32           // ordinals given out
	rest    *rest           // what is left of hist, if it is matched by name
	patches map[string]bool // answers of Patched and DeprecatePatch
}

// rest is what is left of a scope's history when it is matched by name.
type rest struct {
	ordinals map[string]int32 // by key, of what the code has not called yet
	added    int32            // calls the history does not have
}

// match finds the record of call c, whose key is known, and gives the call its
// ordinal for good. An error has parked the run.
func (rp *replay) match(c *call, kind history.CallKind) error {
	if rp.scope.run.matching.byName && len(rp.hist) > 0 {
		return rp.matchByName(c, kind)
	}
	if int(c.ordinal) > len(rp.hist) {
		if p := rp.unasked(); p != nil {
			return rp.notAsked(c, p)
		}
		return nil
	}
	c.rec = rp.hist[c.ordinal-1]
	if c.rec.Key == c.key && c.rec.Kind == kind {
		return nil
	}
	return rp.differs(c, kind)
}

func (rp *replay) matchByName(c *call, kind history.CallKind) error {
	if rp.rest == nil {
		rp.rest = &rest{ordinals: make(map[string]int32, len(rp.hist))}
		for i, rec := range rp.hist {
			rp.rest.ordinals[rec.Key] = int32(i + 1)
		}
	}
	n, ok := rp.rest.ordinals[c.key]
	if !ok {
		rp.rest.added++
		c.ordinal = int32(len(rp.hist)) + rp.rest.added
		return nil
	}
	c.ordinal, c.rec = n, rp.hist[n-1]
	if c.rec.Kind != kind {
		return rp.differs(c, kind)
	}
	delete(rp.rest.ordinals, c.key)
	return nil
}

// takeBack undoes what match has counted for a call that gets no place.
func (rp *replay) takeBack() {
	if rp.rest != nil {
		rp.rest.added--
	}
}

// atFrontier reports whether the scope has called everything the history has of
// it: what comes next happens for the first time.
func (rp *replay) atFrontier() bool {
	switch {
	case rp.rest != nil:
		return len(rp.rest.ordinals) == 0
	case rp.scope.run.matching.byName && len(rp.hist) > 0:
		return false // nothing was called yet
	}
	return int(rp.next) >= len(rp.hist)
}

// finish checks, when the scope's function has returned, that nothing recorded
// was left uncalled.
func (rp *replay) finish() error {
	if rp.scope.run.matching.byName {
		rp.reportUncalled()
		return nil
	}
	if int(rp.next) < len(rp.hist) {
		return rp.leftOut()
	}
	if p := rp.unasked(); p != nil {
		return rp.notAsked(nil, p)
	}
	return nil
}

// reportUncalled keeps in mind what the history of the scope has and the code did
// not call, for the event that ends the run, and warns.
func (rp *replay) reportUncalled() {
	var left []string
	switch {
	case rp.rest != nil:
		left = slices.Sorted(maps.Keys(rp.rest.ordinals))
	case len(rp.hist) > 0:
		for _, rec := range rp.hist {
			left = append(left, rec.Key)
		}
	}
	if p := rp.unasked(); p != nil {
		left = append(left, history.JoinKey(rp.scope.path, history.PatchPrefix+p.Name, 1))
	}
	rp.scope.run.matching.noteUncalled(rp.scope.path, left)
}

// noteUncalled keeps keys that were recorded in a scope and not called, and warns.
func (m *matching) noteUncalled(scope string, keys []string) {
	if len(keys) == 0 {
		return
	}
	m.mu.Lock()
	m.uncalled = append(m.uncalled, keys...)
	m.mu.Unlock()
	m.run.logLine(slog.LevelWarn, "durable: recorded calls were not made by this code (matched by name)", slog.String("scope", scope), slog.Any("calls", keys))
}

// maxUncalled bounds how many keys the end of a run names.
const maxUncalled = 100

// completedData is the Data of workflow_completed.
func (m *matching) completedData() []byte {
	if !m.byName {
		return nil
	}
	return history.Encode(&history.End{Uncalled: m.leftOut()})
}

// matching is how the calls of a run are matched with its history. What is not
// beneath the mutex is set before the function is called.
type matching struct {
	run    *run
	byName bool             // by name alone
	anew   map[string]int32 // as Past.Anew

	mu       sync.Mutex
	uncalled []string // recorded calls that this code did not make
}

// leftOut returns their keys, sorted, at most maxUncalled of them.
func (m *matching) leftOut() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Clone(m.uncalled)
	slices.Sort(keys)
	return keys[:min(len(keys), maxUncalled)]
}

// replaying reports whether the next call of the scope is in the history.
func (rp *replay) replaying() bool { return len(rp.hist) > 0 && !rp.live.Load() }

// changed parks the run: its code and its history part at the call with this
// ordinal, in the way that detail says.
func (rp *replay) changed(change string, ordinal int, key, detail string) error {
	e := rp.difference(ordinal, key)
	e.Change, e.Detail = change, detail
	return rp.park(e)
}

// differs parks the run: another call, or one of another kind, stands where c was
// made.
func (rp *replay) differs(c *call, kind history.CallKind) error {
	e := rp.difference(int(c.ordinal), c.key)
	if c.rec.Key == c.key {
		e.Change, e.Detail = ChangeKind, fmt.Sprintf("%s was recorded as a %s and is a %s now.", c.key, c.rec.Kind, kind)
	} else {
		e.Change = changeOf(e.Recorded, e.Ordinal, e.Call, c.rec.Kind == kind, rp.declared())
	}
	return rp.park(e)
}

// leftOut parks the run: the function has returned and calls are left over.
func (rp *replay) leftOut() error {
	e := rp.difference(int(rp.next)+1, "")
	e.Change = ChangeRemoved
	return rp.park(e)
}

// notAsked parks the run: it has gone the new way of a change, and the code does
// not know the change. c is the call before which that was noticed, nil at the
// end of the function.
func (rp *replay) notAsked(c *call, p *history.Patch) error {
	ordinal, key := int(rp.next)+1, ""
	if c != nil {
		ordinal, key = int(c.ordinal), c.key
	}
	e := rp.difference(ordinal, key)
	e.Change = ChangePatchRemoved
	e.Detail = fmt.Sprintf("The run has gone the new way of durable.Patched(ctx, %q), and this code does not ask for it. Ask for it again, or run code that is the new way alone and has durable.DeprecatePatch(ctx, %q) in its place.", p.Change, p.Change)
	return rp.park(e)
}

// declared returns the names given to Steps, for the scope they tell of.
func (rp *replay) declared() []string {
	if rp.scope.path != "" {
		return nil
	}
	return rp.scope.run.def.steps
}

// difference describes where code and history part.
func (rp *replay) difference(ordinal int, key string) *DefinitionChangedError {
	recorded := make([]string, len(rp.hist))
	for i, rec := range rp.hist {
		recorded[i] = rec.Key
	}
	source := ""
	if key != "" {
		source = callerOutside()
	}
	return &DefinitionChangedError{
		RunID: rp.scope.run.id, Workflow: rp.scope.run.def.name, Scope: rp.scope.path, Recorded: recorded,
		Ordinal: ordinal, Call: key, Source: source, RecordedBy: rp.recordedBy(),
	}
}

// recordedBy returns whose code fits what the scope has recorded: that of who recorded
// its last call had replayed all of it.
func (rp *replay) recordedBy() Recorder {
	if rp.scope.run.past == nil || len(rp.hist) == 0 {
		return Recorder{}
	}
	return recorder(rp.scope.run.past, rp.hist[len(rp.hist)-1].Seq, rp.scope.run.def.version)
}

// park stops the run, resumable, because of a changed definition.
func (rp *replay) park(e *DefinitionChangedError) error {
	return rp.scope.run.die(&death{kind: deathParked, code: CodeDefinitionChanged, err: e})
}
