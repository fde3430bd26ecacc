package operate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A revision is a requested change of a run's history, and its description for a person.
type revision struct {
	history.Revision
	plan  Plan
	send  []store.Message // messages that end what is left behind
	lifts bool            // it takes a cancel back
	added []string        // calls of the code that the history does not have before its end, if it is matched by name
}

// CrossingError says that a body that must run at most once has begun, or ended, in what
// would be left behind or reset: it would run again.
type CrossingError struct {
	RunID string
	Keys  []string // of the calls of Once
}

func (e *CrossingError) Error() string {
	return fmt.Sprintf("durable: run %s: %s must run at most once and has begun: going back before it would run it again. Choose a later checkpoint, or use Force", e.RunID, strings.Join(e.Keys, ", "))
}

// UndoneError says that calls would count as done although their compensations have run:
// what follows would build on effects that are gone.
type UndoneError struct {
	RunID string
	// Calls lists the keys of the steps, children, branches and Maps that were undone,
	// and By those of the compensations, in the same order.
	Calls, By []string
	// Before is the last checkpoint before all of them (CheckpointOf, Fork's At): after
	// it, or an earlier one, they are made again. 0: there is no such checkpoint,
	// because one of the calls is a child whose id the workflow chose.
	Before int64
	text   string
}

func (e *UndoneError) Error() string {
	return fmt.Sprintf("durable: run %s: %s, or use Force", e.RunID, e.text)
}

func (v *view) undoneError(still []history.Undone) *UndoneError {
	e := &UndoneError{RunID: v.Row.ID, Before: v.WholeBefore(still).Seq, text: v.UndoneText(still)}
	for _, u := range still {
		if u.Child != "" {
			e.Before = 0
		}
		e.Calls, e.By = append(e.Calls, u.Key), append(e.By, u.By)
	}
	return e
}

// revise computes the effect of cutting v after event at (nil: no cut) and of taking
// failures back.
func (v *view) revise(ctx context.Context, at *store.Event, what history.Resetting, force bool) (*revision, error) {
	return v.reviseAs(ctx, history.Cutting{At: at, Reset: what, Force: force})
}

// reviseAs is revise with all options of a cut.
func (v *view) reviseAs(ctx context.Context, q history.Cutting) (*revision, error) {
	var failed []string
	if q.Reset != history.ResetNone {
		var err error
		if q.Anew, failed, err = v.failedChildren(ctx); err != nil {
			return nil, err
		}
	}
	rv, kept, err := v.rework(q)
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

// rework is history.View.Revise, with the errors that callers know. kept is the
// resulting history.
func (v *view) rework(q history.Cutting) (rv *revision, kept *history.Past, err error) {
	changed, kept, err := v.View.Revise(q)
	var crossing *history.CrossingError
	var still *history.StillDoneError
	switch {
	case errors.As(err, &crossing):
		return nil, nil, &CrossingError{RunID: v.Row.ID, Keys: crossing.Keys}
	case errors.As(err, &still):
		return nil, nil, v.undoneError(still.Calls)
	case errors.Is(err, history.ErrWasUndone):
		return nil, nil, &durable.NotResumableError{RunID: v.Row.ID, Status: v.Row.Status, Reason: err.Error()}
	case err != nil:
		return nil, nil, damaged(err)
	}
	return &revision{Revision: *changed, plan: planOf(v.Row, changed), send: history.EndLeft(changed.Children, v.Row.ID, v.op.desk.Now())}, kept, nil
}

func (rv *revision) warn(format string, args ...any) {
	rv.plan.Warnings = append(rv.plan.Warnings, fmt.Sprintf(format, args...))
}

// planOf starts a plan with what is known about the run and its revision.
func planOf(row *store.Run, rv *history.Revision) Plan {
	p := Plan{
		RunID: row.ID, Workflow: row.Workflow, Status: row.Status,
		From: rv.From, Scope: rv.Scope, Branch: rv.Branch, NewBranch: rv.NewBranch, Reset: rv.Failures, Warnings: rv.Warnings,
	}
	for _, l := range rv.Left {
		p.Left = append(p.Left, LeftBehind(l))
	}
	return p
}

// failedChildren looks at the children whose failure is last in their scope. It returns
// the calls of those that were resumed since, whose outcome is different or yet to come,
// and the ids of those that are still failed.
func (v *view) failedChildren(ctx context.Context) (resumed map[string]bool, failed []string, err error) {
	byID := map[string]string{}
	for path, calls := range v.Past.Scopes {
		for _, rec := range calls {
			if path == history.UndoScope || rec.Kind != history.CallChild || rec.Outcome.Type != store.ChildFinished || !v.Past.IsLast(rec.Key, rec.Outcome.Seq) {
				continue
			}
			if d, err := history.Of[history.ChildEnd](&rec.Outcome); err == nil && d.Status == store.Failed {
				byID[rec.Child] = rec.Key
			}
		}
	}
	resumed = map[string]bool{}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(byID)), 100) {
		for row, err := range v.op.desk.Runs(ctx, store.Filter{IDs: ids}) {
			if err != nil {
				return nil, nil, fmt.Errorf("durable: run %s: reading its children: %w", v.Row.ID, storeError(err))
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

// warnOfChildren warns of kept children that cannot finish, because they were cancelled
// with the run.
func (v *view) warnOfChildren(ctx context.Context, rv *revision, kept *history.Past) error {
	if v.Row.Status != store.Failed && v.Row.Status != store.Cancelled {
		return nil
	}
	var ids []string
	for _, calls := range kept.Scopes {
		for _, rec := range calls {
			if rec.Child != "" && rec.Outcome.Seq == 0 && !rec.Abandon && rec.Key != rv.Replaced {
				ids = append(ids, rec.Child)
			}
		}
	}
	slices.Sort(ids)
	for len(ids) > 0 {
		n := min(len(ids), 100)
		for row, err := range v.op.desk.Runs(ctx, store.Filter{IDs: ids[:n]}) {
			if err != nil {
				return fmt.Errorf("durable: run %s: reading its children: %w", v.Row.ID, storeError(err))
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
	for _, key := range v.Past.DoneKeys() {
		if !skipped[key] && history.ScopeOfKey(key) != history.UndoScope {
			pl.Again = append(pl.Again, key)
		}
	}
	v.childrenAgain(rv, kept)
	declared := v.declared()
	pl.Next = pointOf(kept, declared)
	known := len(v.Past.DoneKeys())
	if len(declared) == 0 {
		n, err := v.op.desk.StepsOfLastCompleted(ctx, v.Row)
		if err != nil {
			return err
		}
		known = max(known, n)
	}
	pl.count(kept, declared, len(pl.Skipped), known)
	if undone := kept.Undone(); len(undone) > 0 {
		rv.warn("%s", v.UndoneText(undone))
	}
	if pl.Next.Failed {
		rv.warn("%s has failed for good and returns that error again: reset its failures to try it anew", pl.Next.Key)
	}
	if kept.Cancel != nil && !rv.lifts && v.Row.Status != store.Cancelled {
		rv.warn("a cancel of the run is recorded: it is carried out once the run goes on")
	}
	return nil
}

// childrenAgain adds to the plan the ended children whose start is left behind. A child
// with a derived id becomes another run on the new branch and does its work again; a
// child with a chosen id is found with its outcome.
func (v *view) childrenAgain(rv *revision, kept *history.Past) {
	for path, calls := range v.Past.Scopes {
		if path == history.UndoScope {
			continue
		}
		for _, rec := range calls {
			if rec.Kind != history.CallChild || rec.Child == "" || rec.Outcome.Seq == 0 || rec.Key == rv.Replaced {
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
