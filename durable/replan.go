package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A revision is what somebody wants of a run's history: to cut it, to take
// failures back, or both. It is worked out before anything is changed.
type revision struct {
	force  bool  // match what comes by name
	lifts  bool  // a cancel
	lifted int64 // cancels that were taken back before, and stay so
	plan   Plan
	cut    *branchCut // nil: no branch
	kept   []store.Event
	added  []string // calls of the code that the history does not have before its end, if it is matched by name
	// reset are the calls that the event names as not ended: those of Plan.Reset,
	// and what a narrow cut takes back outside of its scope.
	reset      []string
	undone     int32            // steps among them that were done
	anew       map[string]int32 // calls that were undone and are made again; see anewKey
	attributes map[string]string
	send       []store.Message // that end what is left behind
	replaced   string          // the call whose outcome is replaced
}

// CrossingError says that a body which must run at most once has begun, or ended,
// in what would be left behind or reset: it would run again.
type CrossingError struct {
	RunID string
	Keys  []string // of the calls of Once
}

func (e *CrossingError) Error() string {
	return fmt.Sprintf("durable: run %s: %s must run at most once and has begun: going back before it would run it again. Choose a later checkpoint, or use Force", e.RunID, strings.Join(e.Keys, ", "))
}

// UndoneError says that calls would count as done whose compensations have run: what
// follows would build on effects that are gone.
type UndoneError struct {
	RunID string
	// Calls are the keys of the steps, children, branches and Maps that were undone, and
	// By those of the compensations, in the same order.
	Calls, By []string
	// Before is the last checkpoint before all of them (CheckpointOf, Fork's At): behind
	// it, or an earlier one, they are made again. 0: behind none, because one is a child
	// whose id the workflow has chosen.
	Before int64
	text   string
}

func (e *UndoneError) Error() string {
	return fmt.Sprintf("durable: run %s: %s, or use Force", e.RunID, e.text)
}

func (v *view) undoneError(still []history.Undone) *UndoneError {
	e := &UndoneError{RunID: v.row.ID, Before: v.wholeBefore(still).Seq, text: v.undoneText(still)}
	for _, u := range still {
		if u.Child != "" {
			e.Before = 0
		}
		e.Calls, e.By = append(e.Calls, u.Key), append(e.By, u.By)
	}
	return e
}

// undoneText says of calls that were undone and would count as done what makes them again.
func (v *view) undoneText(still []history.Undone) string {
	var names []string
	child := ""
	for i := range still {
		names = append(names, still[i].String())
		child = cmp.Or(child, still[i].Child)
	}
	if child != "" {
		return fmt.Sprintf("what %s did was undone, and would count as done: run %s, whose id the workflow has chosen, has ended and is not done again. Start a new run, with another id for that child", strings.Join(names, ", "), child)
	}
	at := v.wholeBefore(still)
	where := fmt.Sprintf("checkpoint %d", at.Seq)
	if at.Key != "" {
		where += fmt.Sprintf(" (%s)", at.Key)
	} else {
		where += " (the beginning)"
	}
	return fmt.Sprintf("what %s did was undone, and would count as done. To make it again go on from %s, or an earlier one", strings.Join(names, ", "), where)
}

// revise works out what it means to cut v behind event at (nil: no cut) and to
// take failures back.
func (v *view) revise(ctx context.Context, at *store.Event, what resetting, force bool) (*revision, error) {
	return v.reviseAt(ctx, at, what, force, "")
}

// resetting says which failures are taken back.
type resetting int

const (
	resetNone   resetting = iota
	resetEnding           // those that the run has ended with
	resetAll              // and those of steps that are being tried
)

// reviseAt is revise for a call whose outcome is about to be replaced: it does not
// count as one that would run again.
func (v *view) reviseAt(ctx context.Context, at *store.Event, what resetting, force bool, replaced string) (*revision, error) {
	q := cutting{at: at, force: force, replaced: replaced}
	var failed []string
	if what != resetNone {
		var err error
		if q.anew, failed, err = v.failedChildren(ctx); err != nil {
			return nil, err
		}
	}
	rv, kept, err := v.rework(q, what)
	if err != nil {
		return nil, err
	}
	rv.plan.First = failed
	for _, id := range failed {
		rv.warn("child %s has failed, and this run with it: resume that one first", id)
	}
	if err := v.warnOfChildren(ctx, rv, kept); err != nil {
		return nil, err
	}
	return rv, v.fill(ctx, rv, kept)
}

// failedChildren tells, of the children whose failure stands last in their scope, the
// calls of those that were resumed since, whose outcome is another one or yet to come,
// and the ids of those that are failed still.
func (v *view) failedChildren(ctx context.Context) (resumed map[string]bool, failed []string, err error) {
	byID := map[string]string{}
	for path, calls := range v.past.Scopes {
		for _, rec := range calls {
			if path == history.UndoScope || rec.Kind != history.CallChild || rec.Outcome.Type != store.ChildFinished || !v.past.IsLast(rec.Key, rec.Outcome.Seq) {
				continue
			}
			if d, err := history.DataOf(&rec.Outcome); err == nil && d.Status == store.Failed {
				byID[rec.Child] = rec.Key
			}
		}
	}
	resumed = map[string]bool{}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(byID)), 100) {
		for row, err := range v.eng.runsOf(ctx, store.Filter{IDs: ids}) {
			if err != nil {
				return nil, nil, fmt.Errorf("durable: run %s: reading its children: %w", v.row.ID, storeError(err))
			}
			switch row.Status {
			case store.Failed:
				failed = append(failed, row.ID)
			case store.Cancelled:
			default:
				resumed[byID[row.ID]] = true
			}
		}
	}
	return resumed, failed, nil
}

// A cutting says how a history is to be cut.
type cutting struct {
	at       *store.Event    // behind it; nil: no cut
	force    bool            // though a body of Once runs again
	replaced string          // the call whose outcome is replaced
	anew     map[string]bool // calls of children that have failed and were resumed since
	// damage, if set, is why: then the cut takes the whole run, and half are the calls
	// that end with it. What stands behind the cut is read as far as it can be.
	damage *history.Audit
}

// rework is the one place that says what a cut means: which calls it takes back, what
// the row must say, which children end with it, and whether a body that must not run
// twice would. kept is the history as it is then.
func (v *view) rework(q cutting, what resetting) (rv *revision, kept *history.Past, err error) {
	rv = &revision{plan: Plan{RunID: v.row.ID, Workflow: v.row.Workflow, Status: v.row.Status, Branch: v.row.Branch}, replaced: q.replaced}
	rv.lifted = v.past.Lifted
	kept = v.past
	c := history.Parted{Kept: v.events}
	if q.at != nil {
		var scope string
		if q.damage == nil {
			scope, rv.reset = v.past.CutScope(q.at.Key)
		}
		c = history.CutAfter(v.events, q.at.Seq, scope)
		half, err := q.half(c.Left)
		if err != nil {
			return nil, nil, &DamagedError{RunID: v.row.ID, Err: err}
		}
		rv.reset = append(rv.reset, half...)
		if kept, err = pastOf(v.row.ID, c.Kept); err != nil {
			return nil, nil, err
		}
		kept.Forget(rv.reset, q.at.Seq)
		rv.cut = &branchCut{after: q.at.Seq, scope: scope}
		// Said behind the cut, and meant for what is before it: that was recorded by
		// the code that did not fit, which it still does not.
		rv.force = v.past.Forced || q.damage != nil && q.damage.Forced
		rv.attributes = v.attributesAfter(kept)
	}
	if last := c.Kept[len(c.Kept)-1]; rv.cut != nil {
		rv.plan.From, rv.plan.Scope, rv.plan.NewBranch, rv.plan.Branch = rv.cut.after, rv.cut.scope, true, nextBranch(v.branches)
	} else {
		rv.plan.From = last.Seq
	}
	undone := len(kept.Scopes[history.UndoScope]) > 0
	if what == resetAll || what == resetEnding && !undone {
		if undone {
			return nil, nil, &NotResumableError{RunID: v.row.ID, Status: v.row.Status, Reason: "what it had done was undone, so its failures cannot be reset: resume it from a checkpoint, or fork it"}
		}
		rv.plan.Reset = kept.FailedKeys(what == resetEnding, q.anew)
		rv.undone = kept.StepsOf(rv.plan.Reset)
		rv.reset = append(rv.reset, rv.plan.Reset...)
	}
	once := slices.DeleteFunc(v.crossed(c.Left, rv.reset, q.damage), func(k string) bool { return k == q.replaced })
	if len(once) > 0 {
		if !q.force {
			return nil, nil, &CrossingError{RunID: v.row.ID, Keys: once}
		}
		rv.warn("%s must run at most once and runs again", strings.Join(once, ", "))
	}
	kept.Forget(rv.reset, rv.plan.From)
	if rv.cut != nil {
		undone := v.past.Undone()
		if q.damage != nil {
			undone = q.damage.UndoneBehind(c.Left)
		}
		still, again := history.SplitUndone(undone, kept.Counts, func(key string) bool { return key == q.replaced })
		found, again := history.FoundAgain(again)
		still = append(still, found...)
		if len(still) > 0 {
			if !q.force {
				return nil, nil, v.undoneError(still)
			}
			rv.warn("%s", v.undoneText(still))
		}
		rv.anew = v.past.AgainAnew(again, rv.plan.Branch)
		for i := range again {
			if rv.anew[again[i].Key] == rv.plan.Branch {
				rv.warn("%s was undone and is made again, with another idempotency key", &again[i])
			} else {
				rv.warn("%s was perhaps undone, and is made again with the idempotency key it had", &again[i])
			}
		}
	}
	rv.kept = c.Kept
	if rv.cut != nil {
		rv.cut.steps = int32(len(kept.DoneKeys()))
	}
	v.leaveBehind(rv, c.Left, q.damage != nil)
	return rv, kept, nil
}

// half returns what a narrow cut that is left behind had taken back outside of its scope.
func (q *cutting) half(left []store.Event) ([]string, error) {
	if q.damage != nil {
		return q.damage.Half(q.at.Seq), nil // what they say may be what is damaged
	}
	return history.HalfKept(left)
}

func (rv *revision) warn(format string, args ...any) {
	rv.plan.Warnings = append(rv.plan.Warnings, fmt.Sprintf(format, args...))
}

// attributesAfter returns what the row must say once the history is cut; nil if
// nothing changes.
func (v *view) attributesAfter(kept *history.Past) map[string]string {
	set := v.born.Attributes
	if kept.Attributes != nil {
		set = *kept.Attributes
	}
	switch {
	case maps.Equal(set, v.row.Attributes):
		return nil
	case set == nil:
		return map[string]string{} // nil would leave them as they are
	}
	return set
}

// crossed returns the calls of Once that have begun in what is left behind, or
// are reset. Behind damage, the beginning of a body that cannot be believed counts as
// that of one which must not run twice.
func (v *view) crossed(left []store.Event, reset []string, damage *history.Audit) []string {
	once := map[string]bool{}
	if damage != nil {
		maps.Copy(once, damage.Once)
	}
	for _, calls := range v.past.Scopes {
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
		if left[i].Type == store.StepStarted || history.IsStepOutcome(&left[i]) || damage != nil && damage.Unsound[left[i].Seq] {
			look(left[i].Key)
		}
	}
	for _, k := range reset {
		look(k)
	}
	return keys
}

// leaveBehind lists what is under way in left, and prepares the messages that end
// the children in it. What stands behind damage is in no record of a call.
func (v *view) leaveBehind(rv *revision, left []store.Event, damaged bool) {
	var children []string
	for i := range left {
		ev := &left[i]
		if ev.Type != store.TimerSet && ev.Type != store.WaitRequested && ev.Type != store.ChildStarted {
			continue
		}
		rec := v.past.Call(ev.Key)
		if rec == nil && damaged {
			rec = v.recordOf(ev)
		}
		if rec == nil || rec.Outcome.Seq != 0 {
			continue
		}
		l := LeftBehind{Kind: string(rec.Kind), Key: ev.Key, Child: rec.Child}
		if ev.Type == store.ChildStarted {
			l.Kept = !history.EndsWithCut(rec.Derived, rec.Abandon)
			if l.Kept && !rec.Abandon {
				rv.warn("child %s was given its id by the workflow: it goes on, and the new branch finds it if it starts it again", rec.Child)
			}
			if !l.Kept {
				children = append(children, rec.Child)
			}
		}
		rv.plan.Left = append(rv.plan.Left, l)
	}
	rv.send = v.eng.endCut(children, takenBackReason(v.row.ID))
}

// takenBackReason is why a child is cancelled that a cut of its parent ends.
func takenBackReason(parent string) string {
	return fmt.Sprintf("run %s was taken back to before it was started", parent)
}

// recordOf is what the event that begins a wait says of its call, when nothing else is known of
// it. An event that cannot be believed names no child: no other run may end for it.
func (v *view) recordOf(ev *store.Event) *history.Call {
	kind, _ := history.RoleOf(ev.Type)
	rec := &history.Call{Key: ev.Key, Kind: kind}
	if d, err := history.DataOf(ev); err == nil {
		rec.Child, rec.Abandon = d.Child, d.Abandon
		rec.Derived = history.DerivedChild(v.row.ID, ev, &d)
	}
	return rec
}

// warnOfChildren tells of children that are kept and cannot come to their end,
// because they were cancelled with the run.
func (v *view) warnOfChildren(ctx context.Context, rv *revision, kept *history.Past) error {
	if v.row.Status != store.Failed && v.row.Status != store.Cancelled {
		return nil
	}
	var ids []string
	for _, calls := range kept.Scopes {
		for _, rec := range calls {
			if rec.Child != "" && rec.Outcome.Seq == 0 && !rec.Abandon && rec.Key != rv.replaced {
				ids = append(ids, rec.Child)
			}
		}
	}
	slices.Sort(ids)
	for len(ids) > 0 {
		n := min(len(ids), 100)
		for row, err := range v.eng.runsOf(ctx, store.Filter{IDs: ids[:n]}) {
			if err != nil {
				return fmt.Errorf("durable: run %s: reading its children: %w", v.row.ID, storeError(err))
			}
			if row.Status == store.Cancelled || row.CancelAsked {
				rv.warn("child %s was cancelled when the run ended, and that is what its parent will be told", row.ID)
			}
		}
		ids = ids[n:]
	}
	return nil
}

// fill writes the rest of the plan.
func (v *view) fill(ctx context.Context, rv *revision, kept *history.Past) error {
	pl := &rv.plan
	pl.Skipped = kept.DoneKeys()
	skipped := make(map[string]bool, len(pl.Skipped))
	for _, key := range pl.Skipped {
		skipped[key] = true
	}
	for _, key := range v.past.DoneKeys() {
		if !skipped[key] && history.ScopeOfKey(key) != history.UndoScope {
			pl.Again = append(pl.Again, key)
		}
	}
	v.childrenAgain(rv, kept)
	declared := v.declared()
	pl.Next = pointOf(kept, declared)
	known := len(v.past.DoneKeys())
	if len(declared) == 0 {
		n, err := v.eng.stepsOfLastCompleted(ctx, v.row)
		if err != nil {
			return err
		}
		known = max(known, n)
	}
	pl.count(kept, declared, len(pl.Skipped), known)
	if undone := kept.Undone(); len(undone) > 0 {
		rv.warn("%s", v.undoneText(undone))
	}
	if pl.Next.Failed {
		rv.warn("%s has failed for good and returns that error again: reset its failures to try it anew", pl.Next.Key)
	}
	if kept.Cancel != nil && !rv.lifts && v.row.Status != store.Cancelled {
		rv.warn("a cancel of the run is recorded: it is carried out once the run goes on")
	}
	return nil
}

// childrenAgain adds to the plan the children that have ended and whose start is left
// behind. One with a derived id is another run on the new branch, and does its work
// again; one with a chosen id is found with what it came to.
func (v *view) childrenAgain(rv *revision, kept *history.Past) {
	for path, calls := range v.past.Scopes {
		if path == history.UndoScope {
			continue
		}
		for _, rec := range calls {
			if rec.Kind != history.CallChild || rec.Child == "" || rec.Outcome.Seq == 0 || rec.Key == rv.replaced {
				continue
			}
			if now := kept.Call(rec.Key); now != nil && now.Child == rec.Child {
				continue
			}
			if !rec.Derived {
				rv.warn("child %s has ended, and was given its id by the workflow: if the new branch starts it again, it finds it with what it came to, and nothing in it runs again", rec.Child)
				continue
			}
			rv.plan.Again = append(rv.plan.Again, rec.Key)
			rv.warn("child %s has ended: another one is started in its place, which does its work again under idempotency keys of its own", rec.Child)
		}
	}
}

// stepsOfLastCompleted returns how many steps the newest completed run of a
// workflow and version has made; 0 if there is none.
func (e *Engine) stepsOfLastCompleted(ctx context.Context, row *store.Run) (int, error) {
	f := store.Filter{Workflows: []string{row.Workflow}, Versions: []string{row.Version}, Statuses: []store.Status{store.Completed}, WithLast: true, Limit: 1}
	page, err := e.store.List(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("durable: run %s: looking for a completed run of workflow %s: %w", row.ID, row.Workflow, storeError(err))
	}
	if len(page.Runs) == 0 || page.Runs[0].Last == nil {
		return 0, nil
	}
	return int(page.Runs[0].Last.Steps), nil
}

// wholeBefore returns the last point to go back to at which none of the calls had begun.
func (v *view) wholeBefore(calls []history.Undone) (at store.Event) {
	first := v.events[len(v.events)-1].Seq + 1
	for i := range calls {
		if rec := v.past.Call(calls[i].Key); rec != nil {
			first = min(first, rec.Seq)
		}
	}
	for i := range v.events {
		if ev := &v.events[i]; ev.Seq < first && (ev.Seq == v.past.Created.Seq || ev.Type.Stable()) {
			at = *ev
		}
	}
	return at
}

// endCut are the messages that cancel the children which a cut of their parent ends.
func (e *Engine) endCut(children []string, reason string) []store.Message {
	var ms []store.Message
	data, _ := json.Marshal(history.MessageData{Reason: reason}) // a string
	for _, id := range children {
		ms = append(ms, store.Message{To: id, Kind: store.KindCancel, ID: firstCancel, At: e.now(), Data: data, IfLive: true})
	}
	return ms
}
