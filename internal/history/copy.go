package history

import (
	"cmp"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Copyable returns the events of calls that have ended, in order, as far as they
// leave no gap: after a call that is left out, nothing of its scope is copied. The marker of a
// change goes with the call that it precedes: without one, the question is open again.
func (p *Past) Copyable(events []store.Event) []store.Event {
	take := map[string]bool{}   // keys of calls and items whose events are copied
	calls := map[string]int32{} // how many calls of each scope those are
	p.copyScope("", take, calls)
	var kept []store.Event
	for i := range events {
		ev := &events[i]
		_, r := RoleOf(ev.Type)
		switch {
		case ev.Type == store.Patched:
			if ev.Ordinal > calls[ScopeOfKey(ev.Key)] {
				continue
			}
		case ev.Seq == p.Created.Seq || r == RoleRun:
			continue
		case ev.Type == store.AttributesSet && ev.Key == "":
		case !take[ev.Key] || p.takenBack(ev):
			continue
		}
		kept = append(kept, *ev)
	}
	return kept
}

// takenBack reports whether ev no longer counts, because its call was reset since.
func (p *Past) takenBack(ev *store.Event) bool {
	if ev.Seq > p.ResetAt[ev.Key] {
		return false
	}
	// The beginning of a branch or a Map still counts.
	rec := p.Call(ev.Key)
	return ev.Type != store.StepStarted || rec == nil || rec.Kind == CallStep
}

// copyScope marks the events of a scope that are copied, and counts its calls.
func (p *Past) copyScope(path string, take map[string]bool, calls map[string]int32) {
	for i, rec := range p.Scopes[path] {
		inside := rec.Kind == CallGo || rec.Kind == CallMap
		if rec.Outcome.Seq == 0 && !inside {
			return
		}
		take[rec.Key], calls[path] = true, int32(i+1)
		switch rec.Kind {
		case CallGo:
			p.copyScope(rec.Key, take, calls)
		case CallMap:
			p.copyItems(rec.Key, take, calls)
		}
	}
}

// copyItems marks the items of a Map.
func (p *Past) copyItems(key string, take map[string]bool, calls map[string]int32) {
	for n := range p.Items[key] {
		take[ItemKey(key, n)] = true
	}
	for n := range p.MostScopes(key) {
		if path := ItemKey(key, n); len(p.Scopes[path]) > 0 {
			p.copyScope(path, take, calls)
		}
	}
}

// MostScopes returns one more than the highest item of a Map in which a call was
// recorded.
func (p *Past) MostScopes(key string) int {
	most := 0
	for path := range p.Scopes {
		if name, n, ok := SplitItem(path); ok && name == key {
			most = max(most, n+1)
		}
	}
	return most
}

// MostItems returns one more than the highest recorded item of a Map.
func (p *Past) MostItems(key string) int {
	most := p.begun[key]
	for n := range p.Items[key] {
		most = max(most, n+1)
	}
	return most
}

// EndedKeys returns the keys of the steps, items, waits, timers and children that have an
// outcome, in the order in which it was recorded. It leaves out compensations.
func (p *Past) EndedKeys() []string {
	var list []*store.Event
	for path, calls := range p.Scopes {
		for _, rec := range calls {
			switch rec.Kind {
			case CallStep, CallWait, CallTimer, CallChild:
				if rec.Outcome.Seq != 0 && path != UndoScope {
					list = append(list, &rec.Outcome)
				}
			}
		}
	}
	for _, items := range p.Items {
		list = slices.AppendSeq(list, maps.Values(items))
	}
	slices.SortFunc(list, func(a, b *store.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	keys := make([]string, len(list))
	for i, ev := range list {
		keys[i] = ev.Key
	}
	return keys
}

// StepsOf counts the steps among these calls that are done.
func (p *Past) StepsOf(keys []string) (n int32) {
	for _, k := range keys {
		if rec := p.Call(k); rec != nil && IsStepOutcome(&rec.Outcome) {
			n++
		}
	}
	return n
}

// DoneKeys returns the keys of the steps that have an outcome, in the order in which
// it was recorded.
func (p *Past) DoneKeys() []string {
	var list []store.Event
	for _, calls := range p.Scopes {
		for _, rec := range calls {
			if IsStepOutcome(&rec.Outcome) {
				list = append(list, rec.Outcome)
			}
		}
	}
	slices.SortFunc(list, func(a, b store.Event) int { return int(a.Seq - b.Seq) })
	keys := make([]string, len(list))
	for i := range list {
		keys[i] = list[i].Key
	}
	return keys
}

// isOver reports whether a call or an item around this scope has ended.
func (p *Past) isOver(path string) bool {
	for ; path != ""; path = ScopeOfKey(path) {
		key := path
		if name, n, ok := SplitItem(path); ok {
			if p.Items[name][n] != nil {
				return true
			}
			key = name
		}
		if rec := p.Call(key); rec != nil && rec.Outcome.Seq != 0 {
			return true
		}
	}
	return false
}
