package durable

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

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
// What runs anew is recorded behind everything else of its scope, so that places
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
// behind other data. A call of another kind under a recorded name, a Map item
// whose value is another one, another child and another WithInput still stop the
// run. Do not take the option away while runs exist that it has let through.
func MatchByName() DefineOption { return func(d *definition) { d.byName = true } }

// rest is what is left of a scope's history when it is matched by name.
type rest struct {
	ordinals map[string]int32 // by key, of what the code has not called yet
	added    int32            // calls the history does not have
}

// match finds the record of call c, whose key is known, and gives the call its
// ordinal for good. An error has parked the run.
func (s *scope) match(c *call, kind history.CallKind) error {
	if s.run.matching.byName && len(s.hist) > 0 {
		return s.matchByName(c, kind)
	}
	if int(c.ordinal) > len(s.hist) {
		if p := s.unasked(); p != nil {
			return s.notAsked(c, p)
		}
		return nil
	}
	c.rec = s.hist[c.ordinal-1]
	if c.rec.Key == c.key && c.rec.Kind == kind {
		return nil
	}
	return s.differs(c, kind)
}

func (s *scope) matchByName(c *call, kind history.CallKind) error {
	if s.rest == nil {
		s.rest = &rest{ordinals: make(map[string]int32, len(s.hist))}
		for i, rec := range s.hist {
			s.rest.ordinals[rec.Key] = int32(i + 1)
		}
	}
	n, ok := s.rest.ordinals[c.key]
	if !ok {
		s.rest.added++
		c.ordinal = int32(len(s.hist)) + s.rest.added
		return nil
	}
	c.ordinal, c.rec = n, s.hist[n-1]
	if c.rec.Kind != kind {
		return s.differs(c, kind)
	}
	delete(s.rest.ordinals, c.key)
	return nil
}

// atFrontier reports whether the scope has called everything the history has of
// it: what comes next happens for the first time.
func (s *scope) atFrontier() bool {
	switch {
	case s.rest != nil:
		return len(s.rest.ordinals) == 0
	case s.run.matching.byName && len(s.hist) > 0:
		return false // nothing was called yet
	}
	return int(s.next) >= len(s.hist)
}

// finish checks, when the scope's function has returned, that nothing recorded
// was left uncalled.
func (s *scope) finish() error {
	if s.run.matching.byName {
		s.reportUncalled()
		return nil
	}
	if int(s.next) < len(s.hist) {
		return s.leftOut()
	}
	if p := s.unasked(); p != nil {
		return s.notAsked(nil, p)
	}
	return nil
}

// reportUncalled keeps in mind what the history of the scope has and the code did
// not call, for the event that ends the run, and warns.
func (s *scope) reportUncalled() {
	var left []string
	switch {
	case s.rest != nil:
		left = slices.Sorted(maps.Keys(s.rest.ordinals))
	case len(s.hist) > 0:
		for _, rec := range s.hist {
			left = append(left, rec.Key)
		}
	}
	if p := s.unasked(); p != nil {
		left = append(left, history.JoinKey(s.path, history.PatchPrefix+p.Name, 1))
	}
	s.run.matching.noteUncalled(s.path, left)
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
	return (&history.Data{Uncalled: m.leftOut()}).Encode()
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

// differs parks the run: another call, or one of another kind, stands where c was
// made.
func (s *scope) differs(c *call, kind history.CallKind) error {
	e := s.difference(int(c.ordinal), c.key)
	if c.rec.Key == c.key {
		e.Edit, e.Detail = EditKind, fmt.Sprintf("%s was recorded as a %s and is a %s now.", c.key, c.rec.Kind, kind)
	} else {
		e.Edit = editOf(e.Recorded, e.Ordinal, e.Call, c.rec.Kind == kind, s.declared())
	}
	return s.park(e)
}

// leftOut parks the run: the function has returned and calls are left over.
func (s *scope) leftOut() error {
	e := s.difference(int(s.next)+1, "")
	e.Edit = EditRemoved
	return s.park(e)
}

// notAsked parks the run: it has gone the new way of a change, and the code does
// not know the change. c is the call before which that was noticed, nil at the
// end of the function.
func (s *scope) notAsked(c *call, p *history.Patch) error {
	ordinal, key := int(s.next)+1, ""
	if c != nil {
		ordinal, key = int(c.ordinal), c.key
	}
	e := s.difference(ordinal, key)
	e.Edit = EditPatchRemoved
	e.Detail = fmt.Sprintf("The run has gone the new way of durable.Patched(ctx, %q), and this code does not ask for it. Ask for it again, or run code that is the new way alone and has durable.DeprecatePatch(ctx, %q) in its place.", p.Change, p.Change)
	return s.park(e)
}

// declared returns the names given to Steps, for the scope they tell of.
func (s *scope) declared() []string {
	if s.path != "" {
		return nil
	}
	return s.run.def.steps
}
