package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// EditOptions change how Edit works.
type EditOptions struct {
	// Reason is recorded with the edit, for people; By says who made it.
	Reason, By string
	// Force accepts a value of another type than the recorded one, and lets a body of Once after
	// the edited step run again.
	Force bool
	// DryRun returns the plan and changes nothing.
	DryRun bool
}

// EditError says why a recorded result cannot be replaced.
type EditError struct {
	RunID  string
	Key    string
	Reason string
	// Forceable: EditOptions.Force replaces it anyway.
	Forceable bool
	// Unknown: nothing is recorded under this key. The error matches durable.ErrNotFound.
	Unknown bool
}

func (e *EditError) Error() string {
	s := fmt.Sprintf("durable: run %s: the result of %s cannot be edited: %s", e.RunID, e.Key, e.Reason)
	if e.Forceable {
		s += ". EditOptions.Force replaces it all the same"
	}
	return s
}

// Is matches durable.ErrNotFound if nothing is recorded under the key.
func (e *EditError) Is(target error) bool { return e.Unknown && target == durable.ErrNotFound }

// Edit replaces a recorded outcome by value: the result or final failure of a step or of an item
// of a Map (nil for one without a result), the answer to a wait or its timeout, or the outcome of
// a child. The child, and the sender of the answer, are not notified, and the message stays
// consumed. In one durable act the history is cut just before that outcome, and a new branch
// begins with who edited what and why, and the new outcome. What was recorded after it no longer
// counts, as with a jump, and runs again; the old result stays readable on the old branch. A
// json.RawMessage stands for a value of the recorded type, with the same kind of JSON. The run is
// then parked, with durable.CodeEdited, until Resume; a paused one stays paused, and goes on with
// Unpause.
//
// Edit is for a run that is not being executed: one that is paused, interrupted or parked, has
// failed, or whose owner is gone.
//
// Errors: durable.ErrNotFound; *durable.NotResumableError for a run that is pending, completed,
// cancelled, or past its deadline; *BusyError for one that a live executor has;
// *EditError when the call has no outcome or none that can be edited, and, without
// Force, when value is of another type than the recorded one; *durable.EncodeError; *CrossingError
// and *UndoneError without Force; durable.ErrOccupied. After any of them nothing has changed.
func (op *Operator) Edit(ctx context.Context, id, key string, value any, o EditOptions) (Plan, error) {
	if op.desk.Closing() {
		return Plan{}, durable.ErrClosed
	}
	v, unreadable, err := op.view(ctx, id)
	if err == nil {
		err = cmp.Or(v.imported(), unreadable)
	}
	if err != nil {
		return Plan{}, err
	}
	no := &durable.NotResumableError{RunID: id, Status: v.Row.Status, Reason: op.desk.PastDeadline(v.Row)}
	if s := v.Row.Status; no.Reason != "" || s == store.Pending || s == store.Completed || s == store.Cancelled {
		return Plan{}, no
	}
	live, err := op.desk.HasLiveOwner(ctx, v.Row)
	if err != nil {
		return Plan{}, err
	}
	if live {
		return Plan{}, &BusyError{RunID: id, Owner: v.Row.Owner}
	}
	old, err := editedOutcome(v.Past, id, key)
	if err != nil {
		return Plan{}, err
	}
	env, err := op.editedPayload(id, old, value, o.Force)
	if err != nil {
		return Plan{}, err
	}
	rv, err := v.reviseBefore(ctx, old, o.Force)
	if err != nil || o.DryRun {
		if err != nil {
			return Plan{}, err
		}
		return rv.plan, nil
	}
	return rv.plan, op.edit(ctx, v, rv, old, env, o)
}

// editedOutcome returns the recorded outcome that an edit replaces.
func editedOutcome(p *history.Past, id, key string) (*store.Event, error) {
	no := &EditError{RunID: id, Key: key, Reason: "there is no such item with an outcome", Unknown: true}
	if name, n, ok := history.SplitItem(key); ok {
		if ev := p.Items[name][n]; ev != nil {
			return ev, nil
		}
		return nil, no
	}
	rec := p.Call(key)
	if no.Reason, no.Unknown = editable(rec), rec == nil; no.Reason != "" {
		return nil, no
	}
	return &rec.Outcome, nil
}

// editedPayload returns the payload of the outcome that replaces old.
func (op *Operator) editedPayload(id string, old *store.Event, value any, force bool) ([]byte, error) {
	env, err := op.sealer.EncodeEdited(id, old, value, force)
	if err != nil {
		return nil, &durable.EncodeError{RunID: id, Key: old.Key, Type: fmt.Sprintf("%T", value), Err: err}
	}
	if err := op.sameType(id, old, value, env); err != nil && !force {
		return nil, err
	}
	return env, nil
}

// sameType returns an error unless a value, and its payload, is of the same type as the old
// outcome. A failure has no type.
func (op *Operator) sameType(id string, old *store.Event, value any, env []byte) error {
	if !hasType(old) {
		return nil
	}
	was, is := "", ""
	if len(old.Payload) > 0 {
		open, err := op.sealer.Open(payload.PlaceOf(id, old), old.Payload)
		if err != nil {
			return &EditError{RunID: id, Key: old.Key, Reason: fmt.Sprintf("what is recorded cannot be read, so its type is not known (%v)", err), Forceable: true}
		}
		was = open.Type
	}
	if len(env) > 0 {
		open, err := envelope.Open(env)
		if err != nil {
			return err
		}
		is = open.Type
	}
	if was == is {
		return nil
	}
	recorded, given := "it is recorded as "+was, "the value is of type "+is
	if len(old.Payload) == 0 {
		recorded = "it is recorded without a value"
	}
	if raw, ok := value.(json.RawMessage); ok {
		given = "the value is " + payload.KindOfJSON(raw)
	} else if len(env) == 0 {
		given = "no value is given"
	}
	return &EditError{RunID: id, Key: old.Key, Reason: recorded + ", and " + given, Forceable: true}
}

// reviseBefore computes what a cut of v just before an outcome means.
func (v *view) reviseBefore(ctx context.Context, old *store.Event, force bool) (*revision, error) {
	i, _ := slices.BinarySearchFunc(v.Events, old.Seq, func(e store.Event, seq int64) int { return int(e.Seq - seq) })
	if i == 0 {
		return nil, &durable.DamagedError{RunID: v.Row.ID, Seq: old.Seq, Err: errors.New("an outcome stands at the beginning of the history")}
	}
	at := store.Event{Seq: v.Events[i-1].Seq, Key: editCutKey(old.Key)}
	rv, err := v.reviseAs(ctx, history.Cutting{At: &at, Force: force, Replaced: old.Key})
	if err != nil {
		return nil, err
	}
	rv.plan.Again = slices.DeleteFunc(rv.plan.Again, func(k string) bool { return k == old.Key })
	rv.plan.Edited = []string{old.Key}
	return rv, nil
}

// editCutKey returns the key after which an edit of the call key cuts: for an item, only the item
// goes back, not what is around its Map.
func editCutKey(key string) string {
	if _, _, item := history.SplitItem(key); item {
		return key + "/"
	}
	return key
}

// edit carries an edit out.
func (op *Operator) edit(ctx context.Context, v *view, rv *revision, old *store.Event, env []byte, o EditOptions) error {
	row := v.Row
	hold, err := op.desk.KeysToTake(ctx, row)
	if err != nil {
		return err
	}
	d := &history.Act{Executor: op.desk.ID(), Reason: guard.Text(o.Reason, guard.MaxText), By: guard.Text(o.By, guard.MaxText)}
	a := rv.act(row, d)
	a.Hold, a.Cut.Reason = hold, "edited "+old.Key
	a.Event.Type, a.Event.Key = store.Edited, old.Key
	if !row.Paused {
		code, reason := durable.CodeEdited, history.EditedReason(old.Key)
		a.Row.Code, a.Row.Reason = &code, &reason
	}
	ev, err := replacement(old)
	if err != nil {
		return &durable.DamagedError{RunID: row.ID, Seq: old.Seq, Err: err}
	}
	ev.Payload = env
	a.Then = []store.Event{ev}
	_, err = op.desk.Act(ctx, row, v.Branches, a)
	var owned *store.OwnedError
	held := heldByOther(row, "was not edited; try again once that run has ended", err)
	switch {
	case err == nil:
		op.desk.LogRun(slog.LevelInfo, row, "durable: a recorded result was edited", slog.String("step", old.Key), slog.Int("branch", int(rv.plan.Branch)), slog.String("by", o.By), slog.String("reason", o.Reason))
		return nil
	case errors.As(err, &owned):
		return &BusyError{RunID: row.ID, Owner: owned.Owner}
	case commit.Overtaken(err):
		return &BusyError{RunID: row.ID, Err: errors.New("somebody else acted on it in the same moment")}
	case held != nil:
		return held
	}
	return fmt.Errorf("durable: editing run %s: %w", row.ID, storeError(err))
}

// editable returns why the outcome of a call cannot be replaced; empty: it can. Answers already
// sent because of it cannot be recalled: the sender of a request has its answer. A sleep, a branch
// or a Map has no value of its own.
func editable(rec *history.Call) string {
	switch {
	case rec == nil:
		return "nothing is recorded under that name"
	case rec.Outcome.Seq == 0:
		return "it has no outcome"
	case history.ScopeOfKey(rec.Key) == history.UndoScope:
		return "it is a compensation"
	case rec.Kind == history.CallChild && rec.Outcome.Type != store.ChildFinished:
		return "the child was never started"
	case rec.Kind != history.CallStep && rec.Kind != history.CallWait && rec.Kind != history.CallChild:
		return fmt.Sprintf("it is a %s; only steps, items of a Map, waits and children can be edited", rec.Kind)
	}
	return ""
}

// hasType reports whether an outcome has a value, so that its type is known: a failure, a timeout
// and a refusal have none. Of one that cannot be read this is not known; its replacement reports it.
func hasType(old *store.Event) bool {
	said, err := history.Decode(old)
	if err != nil {
		return false
	}
	switch d := said.(type) {
	case *history.StepEnd, *history.ItemEnd:
		return old.Type == store.StepCompleted || old.Type == store.ItemCompleted
	case *history.WaitEnd:
		return old.Type == store.SignalReceived && d.Error == nil
	case *history.ChildEnd:
		return d.Status == store.Completed
	}
	return false
}

// replacement returns the outcome that replaces old, without its payload. The message that old
// consumed stays consumed: it must not reach the next call that waits. What the event says of the scope
// that it is in, or has ended, stays so.
func replacement(old *store.Event) (store.Event, error) {
	ev := store.Event{Type: store.StepCompleted, Key: old.Key, Attempt: old.Attempt, Ordinal: old.Ordinal}
	said, err := history.Decode(old)
	switch was := said.(type) {
	case *history.StepEnd:
		ev.Data = history.Encode(&history.StepEnd{Input: was.Input, Items: was.Items, Preface: was.Preface})
	case *history.ItemEnd:
		ev.Type, ev.Data = store.ItemCompleted, history.Encode(&history.ItemEnd{Input: was.Input, Items: was.Items, Again: was.Again})
	case *history.WaitEnd:
		ev.Type, ev.Data = store.SignalReceived, history.Encode(&history.WaitEnd{Message: was.Message, Preface: was.Preface})
	case *history.ChildEnd:
		ev.Type, ev.Data = store.ChildFinished, history.Encode(&history.ChildEnd{Status: store.Completed, Name: was.Name, Message: was.Message})
	}
	return ev, err
}
