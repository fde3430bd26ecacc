package operate

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A forking is what a fork takes over from its source. It is computed before anything
// is written, and in the same way for a plan.
type forking struct {
	past  *history.Past // the part of the history that the fork may have
	kept  []store.Event // the events that it has, as in the source
	edits []forkEdit    // by key
	// undone names the calls that it takes for done although they were undone; empty:
	// none.
	undone string
}

// A forkEdit is an outcome of the source that differs in the fork.
type forkEdit struct {
	old   *store.Event
	event store.Event // that replaces it, with its payload opened
	hash  string      // of the new value
}

// forking computes what a fork of v has.
func (v *view) forking(o *ForkOptions) (*forking, error) {
	events, reset, upTo := v.Events, []string(nil), o.At
	switch {
	case o.At != 0:
		if v.Event(o.At) == nil {
			return nil, &CheckpointError{RunID: v.Row.ID, Seq: o.At, Reason: fmt.Sprintf("it is no event of the current history (branch %d, generation %d)", v.Row.Branch, v.Row.Generation)}
		}
		c := history.CutAfter(events, o.At, "")
		half, err := history.HalfKept(c.Left)
		if err != nil {
			return nil, &durable.DamagedError{RunID: v.Row.ID, Err: err}
		}
		events, reset = c.Kept, half
	case len(o.Edits) > 0:
		var err error
		if events, reset, err = v.cutBehindEdits(slices.Sorted(maps.Keys(o.Edits))); err != nil {
			return nil, err
		}
		upTo = v.Events[len(v.Events)-1].Seq
	}
	p, err := history.PastOf(v.Row.ID, events)
	if err != nil {
		return nil, damaged(err)
	}
	p.Forget(reset, upTo)
	f := &forking{past: p, kept: p.Copyable(events)}
	if err := v.edited(f, o); err != nil {
		return nil, err
	}
	// No fork copies the compensations.
	copied := func(key string) bool {
		return slices.ContainsFunc(f.kept, func(ev store.Event) bool { return ev.Key == key })
	}
	still, _ := history.SplitUndone(v.Past.Undone(), copied, func(key string) bool { _, edited := o.Edits[key]; return edited })
	if len(still) > 0 {
		if !o.Force {
			return nil, v.undoneError(still)
		}
		f.undone = v.UndoneText(still)
	}
	return f, nil
}

// cutBehindEdits leaves out of the history what was recorded after the outcomes of
// these calls: in each scope that Edit would cut, after the last of them in that
// scope. reset lists the calls that count as not ended.
//
//	4  a               edited
//	5  b
//	6  items[0]
//	7  items[1]/resize edited
//	8  items[1]/upload left out: it was made of 7
//	9  items[1]        left out, too
//	10 items[2]
//	11 items           reset: item 1 is done again
//
// b and the other items do not depend on 7. What depends on 4 is kept up to there,
// because a call can be copied only together with those before it.
func (v *view) cutBehindEdits(keys []string) (kept []store.Event, reset []string, err error) {
	last := map[string]int64{} // by the scope to cut
	outcomes := map[string]int64{}
	for _, key := range keys {
		old, err := editedOutcome(v.Past, v.Row.ID, key)
		if err != nil {
			return nil, nil, err
		}
		outcomes[key] = old.Seq
		scope, back := v.Past.CutScope(editCutKey(key))
		last[scope] = 0
		reset = append(reset, back...)
	}
	for scope := range last {
		for key, seq := range outcomes {
			if store.InScope(key, scope) {
				last[scope] = max(last[scope], seq)
			}
		}
	}
	var left []store.Event
	for i := range v.Events {
		ev := &v.Events[i]
		behind := false
		for scope, seq := range last {
			cut := store.Branch{Cutoff: seq, CutScope: scope}
			behind = behind || !cut.Keeps(ev)
		}
		if behind {
			left = append(left, *ev)
		} else {
			kept = append(kept, *ev)
		}
	}
	half, err := history.HalfKept(left)
	if err != nil {
		return nil, nil, &durable.DamagedError{RunID: v.Row.ID, Err: err}
	}
	return kept, append(reset, half...), nil
}

// edited makes the outcomes that replace recorded ones in the fork.
func (v *view) edited(f *forking, o *ForkOptions) error {
	for _, key := range slices.Sorted(maps.Keys(o.Edits)) {
		old, err := editedOutcome(f.past, v.Row.ID, key)
		if err != nil {
			if later, no := editedOutcome(v.Past, v.Row.ID, key); no == nil {
				return &EditError{RunID: v.Row.ID, Key: key, Reason: fmt.Sprintf("its outcome is event %d, and the fork has what was recorded up to event %d", later.Seq, o.At)}
			}
			return err
		}
		if !slices.ContainsFunc(f.kept, func(ev store.Event) bool { return ev.Seq == old.Seq }) {
			return &EditError{RunID: v.Row.ID, Key: key, Reason: "the fork does not copy its outcome, because something before it, or around it, is done anew"}
		}
		env, err := v.op.editedPayload(v.Row.ID, old, o.Edits[key], o.Force)
		if err != nil {
			return err
		}
		ev := *old
		var now store.Event
		if ev.Data, err = forkedData(old, nil); err == nil {
			now, err = replacement(&ev)
		}
		if err != nil {
			return &durable.DamagedError{RunID: v.Row.ID, Seq: old.Seq, Err: err}
		}
		ev.Type, ev.Data, ev.Payload = now.Type, now.Data, env
		sum := payload.InputHash(env)
		f.edits = append(f.edits, forkEdit{old: old, event: ev, hash: hex.EncodeToString(sum[:])})
	}
	return nil
}

// editOf returns the edit of the outcome that event seq records for a call, nil if
// there is none.
func (f *forking) editOf(key string, seq int64) *forkEdit {
	for i := range f.edits {
		if e := &f.edits[i]; e.old.Key == key && e.old.Seq == seq {
			return e
		}
	}
	return nil
}

// hashes returns the hashes that distinguish the edits of a fork from those of
// another; nil: there are none.
func (f *forking) hashes() map[string]string {
	var m map[string]string
	for i := range f.edits {
		if m == nil {
			m = map[string]string{}
		}
		m[f.edits[i].old.Key] = f.edits[i].hash
	}
	return m
}

// startsAgain warns of children of the source whose ids the workflow has chosen and
// whose outcomes the fork does not have.
func (v *view) startsAgain(f *forking) []string {
	has := map[string]bool{}
	for i := range f.kept {
		if f.kept[i].Type == store.ChildFinished {
			has[f.kept[i].Key] = true
		}
	}
	var warnings []string
	for _, calls := range v.Past.Scopes {
		for _, rec := range calls {
			if rec.Child != "" && !rec.Derived && !has[rec.Key] {
				warnings = append(warnings, fmt.Sprintf("%s started child %s, an id that the workflow has chosen: that run is the source's, and the fork is refused it if it asks for the same id. Fork behind its end, or let the code choose another id", rec.Key, rec.Child))
			}
		}
	}
	slices.Sort(warnings)
	return warnings
}
