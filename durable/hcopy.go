package durable

import (
	"cmp"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// copyable returns the events of calls that have ended, in order, as far as they
// leave no gap: behind a call that is left out, nothing of its scope is copied.
func (p *past) copyable(events []store.Event) []store.Event {
	take := map[string]bool{} // keys of calls and items whose events are copied
	p.copyScope("", take)
	var kept []store.Event
	for i := range events {
		ev := &events[i]
		_, r := roleOf(ev.Type)
		switch {
		case ev.Seq == p.created.Seq || r == roleRun:
			continue
		case ev.Type == store.AttributesSet && ev.Key == "":
		case !take[ev.Key] || p.takenBack(ev):
			continue
		}
		kept = append(kept, *ev)
	}
	return kept
}

// takenBack reports whether ev counts no more, because its call was reset since.
func (p *past) takenBack(ev *store.Event) bool {
	if ev.Seq > p.resetAt[ev.Key] {
		return false
	}
	// A branch and a Map stay begun.
	rec := p.call(ev.Key)
	return ev.Type != store.StepStarted || rec == nil || rec.kind == callStep
}

// copyScope marks what of a scope is copied.
func (p *past) copyScope(path string, take map[string]bool) {
	for _, rec := range p.scopes[path] {
		inside := rec.kind == callGo || rec.kind == callMap
		if rec.outcome.Seq == 0 && !inside {
			return
		}
		take[rec.key] = true
		switch rec.kind {
		case callGo:
			p.copyScope(rec.key, take)
		case callMap:
			p.copyItems(rec.key, take)
		}
	}
}

// copyItems marks the items of a Map.
func (p *past) copyItems(key string, take map[string]bool) {
	for n := range p.items[key] {
		take[itemKey(key, n)] = true
	}
	for n := range p.mostScopes(key) {
		if path := itemKey(key, n); len(p.scopes[path]) > 0 {
			p.copyScope(path, take)
		}
	}
}

// mostScopes returns one more than the highest item of a Map in which a call was
// recorded.
func (p *past) mostScopes(key string) int {
	most := 0
	for path := range p.scopes {
		if name, n, ok := splitItem(path); ok && name == key {
			most = max(most, n+1)
		}
	}
	return most
}

// mostItems returns one more than the highest recorded item of a Map.
func (p *past) mostItems(key string) int {
	most := p.begun[key]
	for n := range p.items[key] {
		most = max(most, n+1)
	}
	return most
}

// ended returns the keys of the steps, items, waits, timers and children that have an
// outcome, in the order in which it was recorded. Compensations are none of them.
func (p *past) ended() []string {
	var list []*store.Event
	for path, calls := range p.scopes {
		for _, rec := range calls {
			switch rec.kind {
			case callStep, callWait, callTimer, callChild:
				if rec.outcome.Seq != 0 && path != undoScope {
					list = append(list, &rec.outcome)
				}
			}
		}
	}
	for _, items := range p.items {
		list = slices.AppendSeq(list, maps.Values(items))
	}
	slices.SortFunc(list, func(a, b *store.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	keys := make([]string, len(list))
	for i, ev := range list {
		keys[i] = ev.Key
	}
	return keys
}

// stepsOf counts the steps among these calls that are done.
func (p *past) stepsOf(keys []string) (n int32) {
	for _, k := range keys {
		if rec := p.call(k); rec != nil && isStepOutcome(&rec.outcome) {
			n++
		}
	}
	return n
}

// done returns the keys of the steps that have an outcome, in the order in which
// it was recorded.
func (p *past) done() []string {
	var list []store.Event
	for _, calls := range p.scopes {
		for _, rec := range calls {
			if isStepOutcome(&rec.outcome) {
				list = append(list, rec.outcome)
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

// isOver reports whether something that has ended stands around this scope.
func (p *past) isOver(path string) bool {
	for ; path != ""; path = scopeOfKey(path) {
		key := path
		if name, n, ok := splitItem(path); ok {
			if p.items[name][n] != nil {
				return true
			}
			key = name
		}
		if rec := p.call(key); rec != nil && rec.outcome.Seq != 0 {
			return true
		}
	}
	return false
}
