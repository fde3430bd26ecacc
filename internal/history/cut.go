package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// Where a history may be cut, and what may be taken back in it, depends only on its
// calls: the functions here are pure.
//
// A prefix of a run's log is always a state that a crash could have left, so a
// cut that takes the whole run is sound at any event. A narrower cut is sound if nothing
// outside has used what it takes away:
//
//	3  items                  a Map
//	4  items[0]/resize
//	5  items[1]/resize        cut here
//	6  items[1]/upload
//	7  items[0]               item 0 is done
//
// Item 1 alone can go back to 5, because the Map has not ended. If it had ended, and the
// function had made no call since, its end would be taken back, too: by name, because
// that event is outside the scope that is cut.

// Forget makes calls, and items of Maps, count as neither ended nor failed: their bodies
// run again, from attempt 1. seq is the event that says so.
func (p *Past) Forget(keys []string, seq int64) {
	for _, key := range keys {
		if p.ResetAt == nil {
			p.ResetAt = map[string]int64{}
		}
		p.ResetAt[key] = seq
		if name, n, ok := SplitItem(key); ok {
			delete(p.Items[name], n)
		} else if rec := p.Call(key); rec != nil {
			if rec.Kind == CallWait {
				rec.Opened, rec.own().Until = false, 0 // it asks again
			}
			rec.Outcome, rec.Fresh = store.Event{}, true
			o := rec.own()
			o.Failures, o.Began = nil, 0
			switch rec.Kind {
			case CallGo, CallMap, CallChild:
				rec.LastAt = o.OpenedAt // which is what Now has shown to what was called in it and beside it
			}
		}
	}
}

// IsLast reports whether no call of the scope of key began after event seq, so
// that nothing in the scope can have used what was recorded there.
func (p *Past) IsLast(key string, seq int64) bool {
	calls := p.Scopes[ScopeOfKey(key)]
	return len(calls) == 0 || calls[len(calls)-1].Seq <= seq
}

// CallOfScope returns the key of the call that has opened a scope: the Map of an
// item, or the branch itself.
func CallOfScope(path string) string {
	if name, _, ok := SplitItem(path); ok {
		return name
	}
	return path
}

// release returns the outcomes that must be taken back, from the inside out, so
// that the function of a scope may run on: the outcome of the scope and those of the
// scopes around it. ok is false if one of them was used.
func (p *Past) release(path string) (keys []string, ok bool) {
	for path != "" {
		key := CallOfScope(path)
		if name, n, item := SplitItem(path); item && p.Items[name][n] != nil {
			keys = append(keys, path)
		}
		rec := p.Call(key)
		if rec == nil {
			return nil, false // the scope of compensations, which has no call
		}
		if rec.Outcome.Seq != 0 {
			if !p.IsLast(key, rec.Outcome.Seq) {
				return nil, false
			}
			keys = append(keys, key)
		}
		path = ScopeOfKey(key)
	}
	return keys, true
}

// CutScope returns the narrowest scope that can be cut after an event with this key, and
// what must be taken back outside of it.
func (p *Past) CutScope(key string) (path string, reset []string) {
	if len(p.Scopes[UndoScope]) > 0 {
		return "", nil // what was undone must be left behind, too
	}
	for path = ScopeOfKey(key); path != ""; path = ScopeOfKey(CallOfScope(path)) {
		keys, ok := p.release(path)
		if !ok {
			continue
		}
		return path, slices.DeleteFunc(keys, func(k string) bool { return store.InScope(k, path) })
	}
	return "", nil
}

// FailedKeys returns what ResetFailures takes back: steps, items and branches that
// have failed, or are about to be tried again, and waits that were refused a value, if
// nothing but the failure of the calls around them followed. resumed are the calls of
// children that had failed and go on, or have ended differently since: the outcome that
// they reported no longer counts.
func (p *Past) FailedKeys(ended bool, resumed map[string]bool) []string {
	set := map[string]bool{}
	add := func(key string, seq int64) {
		if !p.IsLast(key, seq) {
			return
		}
		outer, ok := p.release(ScopeOfKey(key))
		if !ok {
			return
		}
		set[key] = true
		for _, k := range outer {
			set[k] = true
		}
	}
	for path, calls := range p.Scopes {
		if path == UndoScope {
			continue
		}
		for _, rec := range calls {
			switch {
			case rec.Outcome.Type == store.WaitClosed:
				add(rec.Key, rec.Outcome.Seq)
			case resumed[rec.Key] && rec.Outcome.Type == store.ChildFinished:
				add(rec.Key, rec.Outcome.Seq)
			case rec.Kind != CallStep && rec.Kind != CallGo:
			case rec.Outcome.Type == store.StepFailed:
				add(rec.Key, rec.Outcome.Seq)
			case !ended && rec.Outcome.Seq == 0 && len(rec.Failures) > 0:
				add(rec.Key, rec.Failures[len(rec.Failures)-1].Seq)
			}
		}
	}
	for name, items := range p.Items {
		for _, ev := range items {
			if ev.Type != store.ItemFailed {
				continue
			}
			if keys, ok := p.release(ev.Key); ok && p.Call(name) != nil {
				for _, k := range keys {
					set[k] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// An Undone is a call whose compensation has begun.
type Undone struct {
	Key, By string // By is the compensation's
	// Child is set if the call's child has ended under an id that the workflow has chosen:
	// made again, the call finds that run, and nothing is done again.
	Child string
}

func (u *Undone) String() string {
	return u.Key + " (by " + strings.TrimPrefix(u.By, UndoScope+"/") + ")"
}

// FoundAgain separates undone calls that are made again: found would only find the child
// that they had.
func FoundAgain(again []Undone) (found, rest []Undone) {
	for _, u := range again {
		if u.Child != "" {
			found = append(found, u)
		} else {
			rest = append(rest, u)
		}
	}
	return found, rest
}

// Undone returns the calls that were undone. Histories of earlier versions do not say
// which: in them, all calls of the function count as undone.
func (p *Past) Undone() (calls []Undone) {
	undos := p.Scopes[UndoScope]
	if len(undos) > 0 && p.Undoes == nil {
		for _, rec := range p.Scopes[""] {
			switch rec.Kind {
			case CallStep, CallChild, CallGo, CallMap:
				calls = append(calls, Undone{Key: rec.Key, By: undos[0].Key})
			}
		}
	}
	for i, rec := range undos {
		if i < len(p.Undoes) && p.Undoes[i] != "" {
			calls = append(calls, Undone{Key: p.Undoes[i], By: rec.Key})
		}
	}
	for i := range calls {
		if rec := p.Call(calls[i].Key); rec != nil && rec.Kind == CallChild && !rec.Derived && rec.Outcome.Seq != 0 {
			calls[i].Child = rec.Child
		}
	}
	return calls
}

// SplitUndone separates calls that were undone into those that still count as done
// although their undoing does not, and those that are made again. A call whose outcome is
// about to be replaced is neither.
func SplitUndone(undone []Undone, counts, replaced func(key string) bool) (still, again []Undone) {
	for _, u := range undone {
		switch {
		case counts(u.By) || replaced(u.Key):
		case counts(u.Key):
			still = append(still, u)
		default:
			again = append(again, u)
		}
	}
	return still, again
}

// Counts reports whether a call is not made again.
func (p *Past) Counts(key string) bool {
	rec := p.Call(key)
	return rec != nil && (rec.Kind != CallStep || rec.Outcome.Seq != 0)
}

// AgainAnew returns which undone calls are made again after a cut, each with the branch
// since which that is so. Their compensations are made again with them. A compensation
// that has not ended, or has failed, has not certainly undone anything: the call that it
// undoes keeps its key, so that nothing is done twice.
func (p *Past) AgainAnew(again []Undone, branch int32) map[string]int32 {
	anew := maps.Clone(p.Anew)
	for _, u := range again {
		if rec := p.Call(u.By); rec == nil || rec.Outcome.Type != store.StepCompleted {
			continue
		}
		if anew == nil {
			anew = map[string]int32{}
		}
		anew[u.Key], anew[u.By] = branch, branch
	}
	return anew
}

// AnewKey returns the key of a call as its idempotency key uses it; p may be nil. For a call that was
// undone and is made again it adds the branch since which that is so, as in "charge~b2":
// given the earlier key, the other side would answer that it has done this already.
func AnewKey(p *Past, key string) string {
	if p == nil {
		return key
	}
	since := int32(0)
	for k, branch := range p.Anew {
		if rest, ok := strings.CutPrefix(key, k); ok && (k == "" || rest == "" || rest[0] == '/' || rest[0] == '[') {
			since = max(since, branch)
		}
	}
	if since == 0 {
		return key
	}
	return fmt.Sprintf("%s~b%d", key, since)
}

// Parted is a history taken apart at a cut.
type Parted struct{ Kept, Left []store.Event }

// CutAfter takes events apart after the one with number after; scope is that of
// store.Branch.CutScope.
func CutAfter(events []store.Event, after int64, scope string) Parted {
	c, b := Parted{}, store.Branch{Cutoff: after, CutScope: scope}
	for i := range events {
		if ev := &events[i]; b.Keeps(ev) {
			c.Kept = append(c.Kept, *ev)
		} else {
			c.Left = append(c.Left, *ev)
		}
	}
	return c
}

// EndsWithCut reports whether a child ends when a cut, of whatever kind, leaves its start
// behind. A child whose id the workflow has chosen goes on, as an abandoned one does: the new
// branch starts it under the same id, and would otherwise find it cancelled.
func EndsWithCut(derived, abandon bool) bool { return derived && !abandon }

// IsStepOutcome reports whether ev is the end of a step.
func IsStepOutcome(ev *store.Event) bool {
	return ev.Attempt > 0 && (ev.Type == store.StepCompleted || ev.Type == store.StepFailed)
}

// HalfKept returns what must be taken back in a history that ends before a narrow
// cut was made: the end of the scope that was cut is on no branch that is left, but the
// ends of the calls outside that had ended with it are.
//
//	5  items[1]/resize
//	9  items                  taken back by 12
//	12 jump_activated         cut behind 5 in items[1]
//
// After 9, item 1 has only begun, and so has the Map.
func HalfKept(left []store.Event) (keys []string, err error) {
	for i := range left {
		if t := left[i].Type; t != store.JumpActivated && t != store.Edited && t != store.WorkflowRecovered {
			continue
		}
		said, err := Decode(&left[i])
		if err != nil {
			return nil, err
		}
		_, r, _ := effectOf(said)
		keys = append(keys, r.Reset...)
	}
	return keys, nil
}

// around returns the keys of the outcomes that may have to be taken back when only the scope
// path was cut: those of everything around it. Resetting what has not ended changes nothing.
func around(path string) (keys []string) {
	for path != "" {
		if _, _, item := SplitItem(path); item {
			keys = append(keys, path)
		}
		path = CallOfScope(path)
		keys = append(keys, path)
		path = ScopeOfKey(path)
	}
	return keys
}
