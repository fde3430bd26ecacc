package durable

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// Where a history may be cut, and what may be taken back in it, are questions
// about its calls alone: the functions here are pure.
//
// A prefix of a run's log is always a state that a crash could have left, so a
// cut that takes the whole run is sound at any event. A narrower one is sound if
// nothing outside has made use of what it takes away:
//
//	3  items                  a Map
//	4  items[0]/resize
//	5  items[1]/resize        cut here
//	6  items[1]/upload
//	7  items[0]               item 0 is done
//
// Item 1 alone can go back to 5, since the Map has not come to its end. Had it,
// and had the function made no call since, its end is taken back, too, by name,
// for the event that makes the branch stands outside of the scope that is cut.

// forget makes calls, and items of Maps, ones that have not ended and have not
// failed: their bodies run again, from attempt 1. It was event seq that said so.
func (p *past) forget(keys []string, seq int64) {
	for _, key := range keys {
		if p.resetAt == nil {
			p.resetAt = map[string]int64{}
		}
		p.resetAt[key] = seq
		if name, n, ok := splitItem(key); ok {
			delete(p.items[name], n)
		} else if rec := p.call(key); rec != nil {
			if rec.kind == callWait {
				rec.opened, rec.until = false, 0 // it asks anew
			}
			rec.outcome, rec.failures, rec.began, rec.fresh = store.Event{}, nil, 0, true
		}
	}
}

// last reports whether no call of the scope of key began after event seq, so
// that nobody in it can have made use of what was recorded there.
func (p *past) last(key string, seq int64) bool {
	calls := p.scopes[scopeOfKey(key)]
	return len(calls) == 0 || calls[len(calls)-1].seq <= seq
}

// callOfScope returns the key of the call that has opened a scope: the Map of an
// item, or the branch itself.
func callOfScope(path string) string {
	if name, _, ok := splitItem(path); ok {
		return name
	}
	return path
}

// release returns the outcomes that must be taken back, from the inside out, so
// that the function of a scope may run on: its own and those of the scopes
// around it. ok is false if one of them was made use of.
func (p *past) release(path string) (keys []string, ok bool) {
	for path != "" {
		key := callOfScope(path)
		if name, n, item := splitItem(path); item && p.items[name][n] != nil {
			keys = append(keys, path)
		}
		rec := p.call(key)
		if rec == nil {
			return nil, false // compensations, which have no call
		}
		if rec.outcome.Seq != 0 {
			if !p.last(key, rec.outcome.Seq) {
				return nil, false
			}
			keys = append(keys, key)
		}
		path = scopeOfKey(key)
	}
	return keys, true
}

// cutScope returns the narrowest scope that can be cut behind an event with this
// key, and what must be taken back outside of it.
func (p *past) cutScope(key string) (path string, reset []string) {
	if len(p.scopes[undoScope]) > 0 {
		return "", nil // what was undone must be left behind, too
	}
	for path = scopeOfKey(key); path != ""; path = scopeOfKey(callOfScope(path)) {
		keys, ok := p.release(path)
		if !ok {
			continue
		}
		return path, slices.DeleteFunc(keys, func(k string) bool { return store.InScope(k, path) })
	}
	return "", nil
}

// failed returns what ResetFailures takes back: steps, items and branches that
// have failed, or are about to be tried again, waits that were refused a value, and from which nothing followed
// but the failure of what is around them. resumed are the calls of children that had failed
// and go on, or have come to another end: what they told counts no more.
func (p *past) failed(ended bool, resumed map[string]bool) []string {
	set := map[string]bool{}
	add := func(key string, seq int64) {
		if !p.last(key, seq) {
			return
		}
		outer, ok := p.release(scopeOfKey(key))
		if !ok {
			return
		}
		set[key] = true
		for _, k := range outer {
			set[k] = true
		}
	}
	for path, calls := range p.scopes {
		if path == undoScope {
			continue
		}
		for _, rec := range calls {
			switch {
			case rec.outcome.Type == store.WaitClosed:
				add(rec.key, rec.outcome.Seq)
			case resumed[rec.key] && rec.outcome.Type == store.ChildFinished:
				add(rec.key, rec.outcome.Seq)
			case rec.kind != callStep && rec.kind != callGo:
			case rec.outcome.Type == store.StepFailed:
				add(rec.key, rec.outcome.Seq)
			case !ended && rec.outcome.Seq == 0 && len(rec.failures) > 0:
				add(rec.key, rec.failures[len(rec.failures)-1].Seq)
			}
		}
	}
	for name, items := range p.items {
		for _, ev := range items {
			if ev.Type != store.ItemFailed {
				continue
			}
			if keys, ok := p.release(ev.Key); ok && p.call(name) != nil {
				for _, k := range keys {
					set[k] = true
				}
			}
		}
	}
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// An undoneCall is one whose compensation has begun.
type undoneCall struct {
	key, by string // by is the compensation's
	// child is set if the call's child has ended under an id that the workflow has chosen:
	// made again, the call finds that run, and nothing is done anew.
	child string
}

func (u *undoneCall) String() string {
	return u.key + " (by " + strings.TrimPrefix(u.by, undoScope+"/") + ")"
}

// foundAgain takes from undone calls that are made again those that would only find the
// child they had.
func foundAgain(again []undoneCall) (found, rest []undoneCall) {
	for _, u := range again {
		if u.child != "" {
			found = append(found, u)
		} else {
			rest = append(rest, u)
		}
	}
	return found, rest
}

// undone returns the calls that were undone. Histories of earlier versions do not say
// which: there all calls of the function are.
func (p *past) undone() (calls []undoneCall) {
	undos := p.scopes[undoScope]
	if len(undos) > 0 && p.undoes == nil {
		for _, rec := range p.scopes[""] {
			switch rec.kind {
			case callStep, callChild, callGo, callMap:
				calls = append(calls, undoneCall{key: rec.key, by: undos[0].key})
			}
		}
	}
	for i, rec := range undos {
		if i < len(p.undoes) && p.undoes[i] != "" {
			calls = append(calls, undoneCall{key: p.undoes[i], by: rec.key})
		}
	}
	for i := range calls {
		if rec := p.call(calls[i].key); rec != nil && rec.kind == callChild && !rec.derived && rec.outcome.Seq != 0 {
			calls[i].child = rec.child
		}
	}
	return calls
}

// apart tells, of calls that were undone, those that count as done though their undoing
// does not, and those that are made again. A call whose outcome is about to be replaced is
// neither.
func apart(undone []undoneCall, counts, replaced func(key string) bool) (still, again []undoneCall) {
	for _, u := range undone {
		switch {
		case counts(u.by) || replaced(u.key):
		case counts(u.key):
			still = append(still, u)
		default:
			again = append(again, u)
		}
	}
	return still, again
}

// counts reports whether a call is not made again.
func (p *past) counts(key string) bool {
	rec := p.call(key)
	return rec != nil && (rec.kind != callStep || rec.outcome.Seq != 0)
}

// againAnew returns which calls are made again, behind a cut, that were undone, each
// with the branch since which that is so. Their compensations are made again with them.
// A compensation that has not come to its end, or has failed, has undone nothing for
// sure: then what it undoes keeps its key, so that nothing is done twice.
func (p *past) againAnew(again []undoneCall, branch int32) map[string]int32 {
	anew := maps.Clone(p.anew)
	for _, u := range again {
		if rec := p.call(u.by); rec == nil || rec.outcome.Type != store.StepCompleted {
			continue
		}
		if anew == nil {
			anew = map[string]int32{}
		}
		anew[u.key], anew[u.by] = branch, branch
	}
	return anew
}

// parted is a history taken apart at a cut.
type parted struct{ kept, left []store.Event }

// cutBehind takes events apart behind the one with number after; scope as in
// branchCut.
func cutBehind(events []store.Event, after int64, scope string) parted {
	var c parted
	for i := range events {
		if ev := &events[i]; ev.Seq > after && store.InScope(ev.Key, scope) {
			c.left = append(c.left, *ev)
		} else {
			c.kept = append(c.kept, *ev)
		}
	}
	return c
}

// endsWithCut reports whether a child ends when a cut, of whatever kind, leaves its
// start behind. One whose id the workflow has chosen goes on, as an abandoned one does:
// the new branch starts it under the same id, and would find it cancelled.
func endsWithCut(derived, abandon bool) bool { return derived && !abandon }

// isStepOutcome reports whether ev is the end of a step.
func isStepOutcome(ev *store.Event) bool {
	return ev.Attempt > 0 && (ev.Type == store.StepCompleted || ev.Type == store.StepFailed)
}

// halfKept returns what must be taken back in a history that ends before a narrow
// cut was made: of the scope that was cut, the end is on no branch that is left,
// but the calls outside that had ended with it are.
//
//	5  items[1]/resize
//	9  items                  taken back by 12
//	12 jump_activated         cut behind 5 in items[1]
//
// Behind 9, item 1 is no more than begun, and so the Map is.
func halfKept(left []store.Event) (keys []string, err error) {
	for i := range left {
		if t := left[i].Type; t != store.JumpActivated && t != store.Edited && t != store.WorkflowRecovered {
			continue
		}
		d, err := dataOf(&left[i])
		if err != nil {
			return nil, err
		}
		keys = append(keys, d.Reset...)
	}
	return keys, nil
}

// around returns the outcomes that may have to be taken back when only the
// scope path was cut: of all that is around it. Resetting what has not ended
// changes nothing.
func around(path string) (keys []string) {
	for path != "" {
		if _, _, item := splitItem(path); item {
			keys = append(keys, path)
		}
		path = callOfScope(path)
		keys = append(keys, path)
		path = scopeOfKey(path)
	}
	return keys
}
