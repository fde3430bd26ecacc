package history

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// A Revision is a change that an operator wants of a run's history: to cut it, to take
// back failures, or both. It is worked out before anything is changed.
type Revision struct {
	Force  bool  // match the calls that follow by name
	Lifted int64 // cancels up to this message were taken back before, and stay so

	Cut       *BranchCut // nil: no branch
	From      int64      // the last event that is kept
	Scope     string     // only this scope is cut; empty: the whole run
	NewBranch bool
	Branch    int32         // the run goes on
	Kept      []store.Event // of the history

	// Reset are the calls that the event names as not ended: Failures, and what a
	// narrow cut takes back outside of its scope.
	Reset      []string
	Failures   []string
	Undone     int32             // steps among Reset that were done
	Anew       map[string]int32  // calls that were undone and are made again; see AgainAnew
	Attributes map[string]string // those that the row must have; nil: those it has
	Left       []LeftBehind      // what is in progress and is left behind
	Children   []string          // among Left, those that end with it
	Replaced   string            // the call whose outcome is replaced
	Warnings   []string
}

// BranchCut is where a new branch begins.
type BranchCut struct {
	After  int64  // the last event that is kept
	Scope  string // only what is in this scope is left behind; empty: everything
	Reason string
	Least  int32 // the smallest number that the branch may have; 0: the next one
	Steps  int32 // steps done in what is kept
}

// LeftBehind is a child, timer or wait that a new branch leaves behind.
type LeftBehind struct {
	Kind  string // "child run", "sleep" or "wait"
	Key   string // of the call
	Child string // run id of a child
	Kept  bool   // a child that goes on
}

// A Cutting says how a history is to be cut.
type Cutting struct {
	At       *store.Event    // after it; nil: no cut
	Reset    Resetting       // which failures are taken back
	Force    bool            // though a body of Once runs again
	Replaced string          // the call whose outcome is replaced
	Anew     map[string]bool // calls of children that have failed and were resumed since
	// Damage, if set, is the reason: then the cut takes the whole run, and what follows
	// the damage is read as far as it can be.
	Damage *Audit
}

// Resetting says which failures are taken back.
type Resetting int

// What is taken back.
const (
	ResetNone   Resetting = iota
	ResetEnding           // those with which the run has ended
	ResetAll              // and those of steps that are being tried
)

// ErrWasUndone: the effects of a run were undone, so its failures stay as they are.
var ErrWasUndone = errors.New("what it had done was undone, so its failures cannot be reset: resume it from a checkpoint, or fork it")

// CrossingError names the bodies of Once that have begun in what would be left behind.
type CrossingError struct{ Keys []string }

func (e *CrossingError) Error() string {
	return strings.Join(e.Keys, ", ") + " must run at most once and has begun"
}

// StillDoneError names the calls that were undone and would count as done.
type StillDoneError struct{ Calls []Undone }

func (e *StillDoneError) Error() string { return "calls that were undone would count as done" }

// Revise is the one place that says what a cut means: which calls it takes back, what
// the row must say, which children end with it, and whether a body that must not run
// twice would run again. kept is the history as it is then.
func (v *View) Revise(q Cutting) (rv *Revision, kept *Past, err error) {
	rv = &Revision{Branch: v.Row.Branch, Replaced: q.Replaced, Lifted: v.Past.Lifted}
	kept = v.Past
	c := Parted{Kept: v.Events}
	if q.At != nil {
		var scope string
		if q.Damage == nil {
			scope, rv.Reset = v.Past.CutScope(q.At.Key)
		}
		c = CutAfter(v.Events, q.At.Seq, scope)
		half, err := q.half(c.Left)
		if err != nil {
			return nil, nil, &Damage{RunID: v.Row.ID, Err: err}
		}
		rv.Reset = append(rv.Reset, half...)
		if kept, err = PastOf(v.Row.ID, c.Kept); err != nil {
			return nil, nil, err
		}
		kept.Forget(rv.Reset, q.At.Seq)
		rv.Cut = &BranchCut{After: q.At.Seq, Scope: scope}
		// An operator asked for this after the cut, and meant the calls before it: the
		// code that is here still does not fit those.
		rv.Force = v.Past.Forced || q.Damage != nil && q.Damage.Forced
		rv.Attributes = v.attributesAfter(kept)
	}
	if last := c.Kept[len(c.Kept)-1]; rv.Cut != nil {
		rv.From, rv.Scope, rv.NewBranch, rv.Branch = rv.Cut.After, rv.Cut.Scope, true, NextBranch(v.Branches)
	} else {
		rv.From = last.Seq
	}
	switch undone := len(kept.Scopes[UndoScope]) > 0; {
	case undone && q.Reset == ResetAll:
		return nil, nil, ErrWasUndone
	case !undone && q.Reset != ResetNone:
		rv.Failures = kept.FailedKeys(q.Reset == ResetEnding, q.Anew)
		rv.Undone = kept.StepsOf(rv.Failures)
		rv.Reset = append(rv.Reset, rv.Failures...)
	}
	once := slices.DeleteFunc(v.crossed(c.Left, rv.Reset, q.Damage), func(k string) bool { return k == q.Replaced })
	if len(once) > 0 {
		if !q.Force {
			return nil, nil, &CrossingError{Keys: once}
		}
		rv.Warn("%s must run at most once and runs again", strings.Join(once, ", "))
	}
	kept.Forget(rv.Reset, rv.From)
	if rv.Cut != nil {
		undone := v.Past.Undone()
		if q.Damage != nil {
			undone = q.Damage.UndoneBehind(c.Left)
		}
		still, again := SplitUndone(undone, kept.Counts, func(key string) bool { return key == q.Replaced })
		found, again := FoundAgain(again)
		still = append(still, found...)
		if len(still) > 0 {
			if !q.Force {
				return nil, nil, &StillDoneError{Calls: still}
			}
			rv.Warn("%s", v.UndoneText(still))
		}
		rv.Anew = v.Past.AgainAnew(again, rv.Branch)
		for i := range again {
			if rv.Anew[again[i].Key] == rv.Branch {
				rv.Warn("%s was undone and is made again, with another idempotency key", &again[i])
			} else {
				rv.Warn("%s was perhaps undone, and is made again with the idempotency key it had", &again[i])
			}
		}
	}
	rv.Kept = c.Kept
	if rv.Cut != nil {
		rv.Cut.Steps = int32(len(kept.DoneKeys()))
	}
	v.leaveBehind(rv, c.Left, q.Damage != nil)
	return rv, kept, nil
}

// half returns what a narrow cut that is left behind had taken back outside its scope.
func (q *Cutting) half(left []store.Event) ([]string, error) {
	if q.Damage != nil {
		return q.Damage.Half(q.At.Seq), nil // the data of the events may be what is damaged
	}
	return HalfKept(left)
}

// Warn adds to what a person should know before the revision is made.
func (rv *Revision) Warn(format string, args ...any) {
	rv.Warnings = append(rv.Warnings, fmt.Sprintf(format, args...))
}

// attributesAfter returns what the row must say once the history is cut; nil if
// nothing changes.
func (v *View) attributesAfter(kept *Past) map[string]string {
	set := v.Born.Attributes
	if kept.Attributes != nil {
		set = *kept.Attributes
	}
	switch {
	case maps.Equal(set, v.Row.Attributes):
		return nil
	case set == nil:
		return map[string]string{} // nil would leave them as they are
	}
	return set
}

// crossed returns the calls of Once that have begun in what is left behind, or
// are reset. After damage, a beginning of a body that cannot be believed counts as that
// of a body that must not run twice.
func (v *View) crossed(left []store.Event, reset []string, damage *Audit) []string {
	once := map[string]bool{}
	if damage != nil {
		maps.Copy(once, damage.Once)
	}
	for _, calls := range v.Past.Scopes {
		for _, rec := range calls {
			if rec.Once {
				once[rec.Key] = true
			}
		}
	}
	var keys []string
	look := func(key string) {
		if once[key] {
			keys = append(keys, key)
			delete(once, key)
		}
	}
	for i := range left {
		if left[i].Type == store.StepStarted || IsStepOutcome(&left[i]) || damage != nil && damage.Unsound[left[i].Seq] {
			look(left[i].Key)
		}
	}
	for _, k := range reset {
		look(k)
	}
	return keys
}

// leaveBehind lists what is in progress in left, and which children in it end. What
// follows damage is in no record of a call.
func (v *View) leaveBehind(rv *Revision, left []store.Event, damaged bool) {
	for i := range left {
		ev := &left[i]
		if ev.Type != store.TimerSet && ev.Type != store.WaitRequested && ev.Type != store.ChildStarted {
			continue
		}
		rec := v.Past.Call(ev.Key)
		if rec == nil && damaged {
			rec = v.recordOf(ev)
		}
		if rec == nil || rec.Outcome.Seq != 0 {
			continue
		}
		l := LeftBehind{Kind: string(rec.Kind), Key: ev.Key, Child: rec.Child}
		if ev.Type == store.ChildStarted {
			l.Kept = !EndsWithCut(rec.Derived, rec.Abandon)
			if l.Kept && !rec.Abandon {
				rv.Warn("child %s was given its id by the workflow: it goes on, and the new branch finds it if it starts it again", rec.Child)
			}
			if !l.Kept {
				rv.Children = append(rv.Children, rec.Child)
			}
		}
		rv.Left = append(rv.Left, l)
	}
}

// recordOf returns what the event that begins a wait says of its call, when nothing else
// is known of the call. An event that cannot be believed names no child: no other run may
// end because of it.
func (v *View) recordOf(ev *store.Event) *Call {
	kind, _ := RoleOf(ev.Type)
	rec := newCall(ev.Key, kind)
	if d, err := Of[ChildBegun](ev); err == nil {
		o := rec.own()
		o.Child, o.Abandon = d.Child, d.Abandon
		o.Derived = DerivedChild(v.Row.ID, ev, &d)
	}
	return &rec
}

// NextBranch returns the number of a run's next branch.
func NextBranch(branches []store.Branch) int32 {
	n := int32(0)
	for i := range branches {
		n = max(n, branches[i].N)
	}
	return n + 1
}

// EndLeft returns the messages that cancel the children that a cut of their parent ends.
func EndLeft(children []string, parent string, at store.Time) (list []store.Message) {
	for _, id := range children {
		list = append(list, EndChild(id, fmt.Sprintf("run %s was taken back to before it was started", parent), at))
	}
	return list
}

// EndChild returns the message by which a run cancels one of its children. Each has an id of its
// own: the child may have been cancelled before, and resumed by force.
func EndChild(child, reason string, at store.Time) store.Message {
	data, _ := json.Marshal(MessageData{Reason: reason}) // a string
	return store.Message{To: child, Kind: store.KindCancel, ID: FirstCancel + "-" + rand.Text(), At: at, Data: data, IfLive: true}
}
