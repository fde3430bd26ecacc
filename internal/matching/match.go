package matching

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// A Replay is the history of a scope, and how far its code has come in it. Replaying may
// be called at any time; everything else belongs to the one call that is in progress.
type Replay struct {
	run  *Run
	path string
	hist []*history.Call // the recorded calls by ordinal - 1
	live atomic.Bool     // set once the last of them is made

	made  int32           // ordinals given out
	rest  *rest           // what is left of hist, if it is matched by name
	asked map[string]bool // answers of Patched and DeprecatePatch, by the escaped name of the change
}

// rest is what is left of a scope's history when it is matched by name.
type rest struct {
	ordinals map[string]int32 // by key, of what the code has not called yet
	added    int32            // calls the history does not have
}

// Begin gives rp what the history has of the scope with this path.
func (rp *Replay) Begin(run *Run, path string) {
	rp.run, rp.path = run, path
	if run.Past != nil {
		rp.hist = run.Past.Scopes[path]
	}
}

// Empty reports whether the history has no call of the scope.
func (rp *Replay) Empty() bool { return len(rp.hist) == 0 }

// Replaying reports whether the next call of the scope is in the history.
func (rp *Replay) Replaying() bool { return len(rp.hist) > 0 && !rp.live.Load() }

// Made returns how many ordinals were given out.
func (rp *Replay) Made() int32 { return rp.made }

// Upcoming returns the call that was recorded at the next ordinal, nil if there is none.
func (rp *Replay) Upcoming() *history.Call {
	if int(rp.made) < len(rp.hist) {
		return rp.hist[rp.made]
	}
	return nil
}

// Match finds the record of the next call, nil if the history has none, and the ordinal
// that the call will keep. Take gives it out. A Difference says that the history has
// another call there.
func (rp *Replay) Match(key string, kind history.CallKind) (ordinal int32, rec *history.Call, d *Difference) {
	if rp.run.ByName && len(rp.hist) > 0 {
		return rp.matchByName(key, kind)
	}
	ordinal = rp.Next()
	if int(ordinal) > len(rp.hist) {
		if p := rp.unasked(); p != nil {
			d = rp.notAsked(int(ordinal), key, p)
		}
		return ordinal, nil, d
	}
	rec = rp.hist[ordinal-1]
	if rec.Key != key || rec.Kind != kind {
		d = rp.differs(ordinal, rec, key, kind)
	}
	return ordinal, rec, d
}

func (rp *Replay) matchByName(key string, kind history.CallKind) (ordinal int32, rec *history.Call, d *Difference) {
	if rp.rest == nil {
		rp.rest = &rest{ordinals: make(map[string]int32, len(rp.hist))}
		for i, rec := range rp.hist {
			rp.rest.ordinals[rec.Key] = int32(i + 1)
		}
	}
	ordinal, ok := rp.rest.ordinals[key]
	if !ok {
		rp.rest.added++
		return int32(len(rp.hist)) + rp.rest.added, nil, nil
	}
	rec = rp.hist[ordinal-1]
	if rec.Kind != kind {
		return ordinal, rec, rp.differs(ordinal, rec, key, kind)
	}
	delete(rp.rest.ordinals, key)
	return ordinal, rec, nil
}

// Next returns the ordinal after those that were given out.
func (rp *Replay) Next() int32 { return rp.made + 1 }

// Take gives out the ordinal that Match has found.
func (rp *Replay) Take(ordinal int32) {
	if len(rp.hist) > 0 && int(ordinal) >= len(rp.hist) {
		rp.live.Store(true)
	}
	rp.made++
}

// TakeBack undoes what Match has counted for a call that gets no place.
func (rp *Replay) TakeBack() {
	if rp.rest != nil {
		rp.rest.added--
	}
}

// AtFrontier reports whether the scope has made every call that the history has of it:
// the next one happens for the first time.
func (rp *Replay) AtFrontier() bool {
	switch {
	case rp.rest != nil:
		return len(rp.rest.ordinals) == 0
	case rp.run.ByName && len(rp.hist) > 0:
		return false // nothing was called yet
	}
	return int(rp.made) >= len(rp.hist)
}

// HasRest reports whether the history, matched by name, has calls that the code has not
// made yet.
func (rp *Replay) HasRest() bool { return rp.rest != nil && len(rp.rest.ordinals) > 0 }

// Finish checks, when the scope's function has returned, that nothing recorded was left
// uncalled. If calls are matched by name, calls that are left are not a difference; their
// keys are returned.
func (rp *Replay) Finish() (uncalled []string, d *Difference) {
	switch p := rp.unasked(); {
	case rp.run.ByName:
		return rp.left(p), nil
	case int(rp.made) < len(rp.hist):
		d = rp.difference(int(rp.made)+1, "")
		d.Change = ChangeRemoved
		return nil, d
	case p != nil:
		return nil, rp.notAsked(int(rp.made)+1, "", p)
	}
	return nil, nil
}

// left returns the keys of the calls that the history of the scope has and the code did
// not make; p is a change that it did not ask about, nil if there is none.
func (rp *Replay) left(p *history.Patch) []string {
	var keys []string
	switch {
	case rp.rest != nil:
		keys = slices.Sorted(maps.Keys(rp.rest.ordinals))
	case len(rp.hist) > 0:
		for _, rec := range rp.hist {
			keys = append(keys, rec.Key)
		}
	}
	if p != nil {
		keys = append(keys, history.JoinKey(rp.path, history.PatchPrefix+p.Name, 1))
	}
	return keys
}

// Changed returns the difference that code and history have at the call with this
// ordinal; detail describes it.
func (rp *Replay) Changed(change string, ordinal int32, key, detail string) *Difference {
	d := rp.difference(int(ordinal), key)
	d.Change, d.Detail = change, detail
	return d
}

// differs returns the difference that another call, or one of another kind, was recorded
// where a call was made.
func (rp *Replay) differs(ordinal int32, rec *history.Call, key string, kind history.CallKind) *Difference {
	d := rp.difference(int(ordinal), key)
	if rec.Key == key {
		d.Change, d.Detail = ChangeKind, fmt.Sprintf("%s was recorded as a %s and is a %s now.", key, rec.Kind, kind)
		return d
	}
	var declared []string // they concern only the workflow function
	if rp.path == "" {
		declared = rp.run.Steps
	}
	d.Change = changeOf(d.Recorded, d.Ordinal, d.Call, rec.Kind == kind, declared)
	return d
}

// difference describes where code and history differ.
func (rp *Replay) difference(ordinal int, key string) *Difference {
	recorded := make([]string, len(rp.hist))
	for i, rec := range rp.hist {
		recorded[i] = rec.Key
	}
	return &Difference{Scope: rp.path, Recorded: recorded, Ordinal: ordinal, Call: key, RecordedBy: rp.recordedBy(), Version: rp.run.Version}
}

// recordedBy returns whose code fits the history of the scope: the code that recorded its
// last call had replayed all of it.
func (rp *Replay) recordedBy() Recorder {
	if rp.run.Past == nil || len(rp.hist) == 0 {
		return Recorder{}
	}
	return rp.run.recorder(rp.hist[len(rp.hist)-1].Seq)
}
