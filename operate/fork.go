package operate

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// ForkOptions say what Fork makes.
type ForkOptions struct {
	// ID of the new run; durable.AutoID has one generated.
	ID string
	// At is the number (Seq) of the last event of the source's current history to copy; 0:
	// all of it, or, with Edits, what Edit would keep.
	At int64
	// Edits are values that replace recorded outcomes in the fork, by the key of the call,
	// as with Edit: the result of a step or of an item of a Map, the answer to a wait, the
	// outcome of a child; a json.RawMessage stands for a value of the recorded type. The
	// source keeps its own. With At, what is recorded between an edited call and At is
	// copied as it is. Without At, what was recorded after the edited calls (after the last
	// edited call in each scope) is left out, and the fork does it itself.
	Edits map[string]any
	// Reason is recorded with the edits, for people; By says who made them.
	Reason, By string
	// Force accepts values of another type than the recorded ones, and copies calls as done
	// even if their compensations have run.
	Force bool
	// Attributes to set on the new run over those of the source; an empty value
	// removes one.
	Attributes map[string]string
}

// Fork makes a new run of what another one has recorded, and returns its id. The
// source is not changed, whatever its status; the new run is durable when Fork
// returns, and goes on at once wherever its workflow is served.
//
// Fork copies the history of the current generation up to At: outcomes of steps with their
// failed attempts, of items, branches, waits, timers and children. It leaves out what was
// in progress there, and the new run does that itself: it begins such a step with attempt
// 1, restarts sleeps, asks again, starts its own child. A child whose id the workflow has
// chosen belongs to the source: if the fork asks for that id again, it is refused with a
// *durable.ConflictError; PlanFork and the log warn of that. If the source went on while a
// child had not ended, what it recorded after the start of that child is left out too.
// Signals that were not consumed are not copied.
//
// IdempotencyKey differs from that of the source; NewID and Rand return the same values as
// in the source as long as copied calls follow, and then other values. The fork has the
// attributes, headers, declared steps and version of the source, as much time as it had
// from its start to its deadline, and takes the keys of Exclusive: a source that still
// holds them must end first. The fork is not a child.
//
// With Edits the fork is created with the edited results in the same durable act, so it is
// never visible without them; its first event says who made them and why. PlanFork shows in
// advance what is copied and what runs again.
//
// Fork is idempotent by ID: if a fork of the same run at the same point, with the same
// edits, exists under this ID, Fork does nothing.
//
// Errors: durable.ErrNotFound; *CheckpointError for an At that is not in the history;
// *UndoneError, without Force, when calls are copied whose compensations have run;
// *EditError for a call of Edits that has no outcome in what is copied or none that
// can be edited, and, without Force, for a value of another type than is recorded;
// *durable.EncodeError; durable.ErrConflict when the id is that of another run, or of a fork with
// other edits; durable.ErrOccupied; durable.ErrInvalid for attributes that no run can have,
// also together with those of the source; *durable.NotResumableError for a source whose import
// has not finished; the store's ErrTooLarge for a history that does not fit into one change; the
// error of a history or payload that cannot be read. After any of them nothing has changed.
func (op *Operator) Fork(ctx context.Context, id string, o ForkOptions) (string, error) {
	v, f, err := op.planFork(ctx, id, &o)
	if err != nil {
		return "", err
	}
	if f.undone != "" {
		op.desk.LogRun(slog.LevelWarn, v.Row, "durable: a run is forked whose effects were undone", slog.String("reason", f.undone))
	}
	for _, text := range v.startsAgain(f) {
		op.desk.LogRun(slog.LevelWarn, v.Row, "durable: a forked run may fail", slog.String("reason", text))
	}
	if v.Born.Deadline != 0 {
		if err := op.desk.AwaitClock(ctx); err != nil {
			return "", fmt.Errorf("durable: forking run %s: %w", id, err)
		}
	}
	for tries := 0; ; tries++ {
		name := o.ID
		if name == durable.AutoID {
			name = op.desk.NewRunID(v.Row.Workflow, tries)
		}
		var done func()
		change, err := v.forked(name, f, &o, func(row *store.Run) (keep func(*history.Beginning)) {
			keep, done = op.desk.ForkSpan(ctx, row, v.Row)
			return keep
		})
		if err != nil {
			return "", err
		}
		err = op.desk.Commit(ctx, change)
		switch {
		case err == nil:
			done()
			op.desk.LogRun(slog.LevelInfo, change.Create, "durable: run forked", slog.String("from", id), slog.Int("events", len(change.Events)), slog.Int("edited", len(f.edits)), slog.String("by", o.By))
			op.desk.GoOn(ctx, name)
			return name, nil
		case errors.Is(err, store.ErrExists) && o.ID == durable.AutoID && tries < 8:
			continue // the suffix is taken: try a longer one
		case errors.Is(err, store.ErrExists):
			return op.sameFork(ctx, name, v.Row, o.At, f.hashes())
		case errors.Is(err, store.ErrOccupied):
			return "", commit.Occupied("was not forked; fork it once that run has ended", err)
		}
		return "", fmt.Errorf("durable: forking run %s: %w", id, storeError(err))
	}
}

// mayFork returns why the id of a fork is not free. The id of this very fork counts as
// free: Fork finds that run.
func (op *Operator) mayFork(ctx context.Context, id string, source *store.Run, at int64, edits map[string]string) error {
	_, err := op.sameFork(ctx, id, source, at, edits)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// sameFork returns the id of an existing run, if it is this very fork.
func (op *Operator) sameFork(ctx context.Context, id string, source *store.Run, at int64, edits map[string]string) (string, error) {
	other, unreadable, err := op.view(ctx, id)
	if err != nil {
		return "", err
	}
	conflict := &durable.ConflictError{RunID: id, Have: other.Row.Workflow, Want: source.Workflow, SameFlow: other.Row.Workflow == source.Workflow}
	if other.Row.ForkedFrom != source.ID || unreadable != nil {
		return "", conflict
	}
	// A later generation no longer says where the run comes from.
	if f := other.Born.Fork; f != nil && (f.At != at || !maps.Equal(f.Edits, edits)) {
		return "", conflict
	}
	return id, nil
}

// forked makes the change that creates the fork of v as the run name. begin, unless nil,
// begins the span of the new run, and returns what is stored of it.
func (v *view) forked(name string, f *forking, o *ForkOptions, begin func(row *store.Run) (keep func(*history.Beginning))) (store.Change, error) {
	op, now, p := v.op, v.op.desk.Now(), f.past
	input, err := op.sealer.Unseal(payload.PlaceOf(v.Row.ID, p.Input()), p.Input().Payload)
	if err != nil {
		return store.Change{}, &durable.UndecodableError{RunID: v.Row.ID, Key: "the input", Err: err}
	}
	row := store.Run{
		ID: name, Workflow: v.Row.Workflow, Version: v.Row.Version, InitialVersion: v.Row.Version, ForkedFrom: v.Row.ID,
		Status: store.Interrupted, Epoch: int64(now), InputHash: payload.InputHash(input), Priority: v.Row.Priority,
		CreatedAt: now, UpdatedAt: now, StartedAt: now,
	}
	born := v.Born
	born.Attributes = merged(v.Born.Attributes, o.Attributes)
	row.Attributes = born.Attributes
	if p.Attributes != nil {
		row.Attributes = merged(*p.Attributes, o.Attributes)
	}
	for _, all := range []map[string]string{born.Attributes, row.Attributes} {
		if err := op.desk.CheckAttributes(all); err != nil {
			return store.Change{}, fmt.Errorf("durable: forking run %s: %w", v.Row.ID, err)
		}
	}
	if v.Born.Deadline != 0 {
		born.Deadline = now.Add(v.Born.Deadline.Sub(v.Row.CreatedAt))
		row.DeadlineAt = born.Deadline
	}
	born.Name, born.Host, born.PID, born.Build = "", "", 0, ""
	born.Executor, born.Generation, born.Inbox, born.Pending, born.Sum = "", 0, 0, nil, 0
	born.Fork = &history.Fork{From: v.Row.ID, At: o.At, Seeds: v.Born.SeedsOf(f.kept), Edits: f.hashes()}
	if len(f.edits) > 0 {
		born.Fork.Reason, born.Fork.By = guard.Text(o.Reason, guard.MaxText), guard.Text(o.By, guard.MaxText)
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails, says its documentation
	born.Seed = hex.EncodeToString(seed[:])
	if begin != nil {
		begin(&row)(&born)
		if born.Around != "" {
			born.Linked = v.Row.Trace
		}
	}
	born.Run = history.IdentityOf(&row)
	created := store.Event{Type: store.WorkflowCreated, At: p.Created.At, Data: history.Encode(&born), Payload: input}
	list := []store.Event{created}
	for i := range f.kept {
		if edit := f.editOf(f.kept[i].Key, f.kept[i].Seq); edit != nil {
			list = append(list, edit.event)
			continue
		}
		ev, err := v.copied(&f.kept[i], o.Attributes)
		if err != nil {
			return store.Change{}, err
		}
		list = append(list, ev)
	}
	op.desk.Number(name, list)
	return store.Change{RunID: name, Expect: store.Expect{Absent: true}, Create: &row, Events: list, Hold: born.Exclusive}, nil
}

// copied returns an event in the form it has in a fork, with its payload opened.
func (v *view) copied(ev *store.Event, attributes map[string]string) (store.Event, error) {
	c := *ev
	var err error
	if c.Data, err = forkedData(ev, attributes); err != nil {
		return c, &durable.DamagedError{RunID: v.Row.ID, Seq: ev.Seq, Err: err}
	}
	if c.Payload, err = v.op.sealer.Unseal(payload.PlaceOf(v.Row.ID, ev), ev.Payload); err != nil {
		return c, &durable.UndecodableError{RunID: v.Row.ID, Key: history.NameOf(ev), Err: err}
	}
	return c, nil
}

// forkedData returns the data of an event in a fork, which has its own inbox, and whose
// attributes are set beside those of the source.
func forkedData(ev *store.Event, attributes map[string]string) ([]byte, error) {
	said, err := history.Decode(ev)
	if err != nil {
		return nil, err
	}
	switch d := said.(type) {
	case *history.WaitEnd:
		if d.Message != 0 {
			d.Message = 0
			return history.Encode(d), nil
		}
	case *history.ChildEnd:
		if d.Message != 0 {
			d.Message = 0
			return history.Encode(d), nil
		}
	case *history.AttributeSet:
		d.Attributes = merged(d.Attributes, attributes)
		return history.Encode(d), nil
	}
	return ev.Data, nil
}

// merged returns a under b; where b is empty, a is without.
func merged(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	m := make(map[string]string, len(a)+len(b))
	for k, s := range a {
		m[k] = s
	}
	for k, s := range b {
		if m[k] = s; s == "" {
			delete(m, k)
		}
	}
	return m
}

// planFork reads the source of a fork and computes what o means for it.
func (op *Operator) planFork(ctx context.Context, id string, o *ForkOptions) (*view, *forking, error) {
	if op.desk.Closing() {
		return nil, nil, durable.ErrClosed
	}
	if o.ID != durable.AutoID {
		if err := store.CheckRunID(o.ID); err != nil {
			return nil, nil, err
		}
	}
	if err := op.desk.CheckAttributes(o.Attributes); err != nil {
		return nil, nil, fmt.Errorf("durable: forking run %s: %w", id, err)
	}
	v, unreadable, err := op.view(ctx, id)
	if err == nil {
		err = cmp.Or(v.imported(), unreadable)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("forking: %w", err)
	}
	f, err := v.forking(o)
	return v, f, err
}

// PlanFork says what Fork would make, and changes nothing. Plan.From is the last copied
// event of the source. Skipped lists the steps, items, waits, timers and children that are
// copied with their outcomes, Again those that have an outcome in the source but that the
// fork does itself, and Edited the calls whose outcome differs in the fork. Next is where
// the fork begins.
//
// Errors: those of Fork, except those that only the attempt can find: that the id is in
// use, and durable.ErrOccupied.
func (op *Operator) PlanFork(ctx context.Context, id string, o ForkOptions) (Plan, error) {
	v, f, err := op.planFork(ctx, id, &o)
	if err != nil {
		return Plan{}, err
	}
	name := o.ID
	if name == durable.AutoID {
		name = op.desk.NewRunID(v.Row.Workflow, 0)
	} else if err := op.mayFork(ctx, name, v.Row, o.At, f.hashes()); err != nil {
		return Plan{}, err
	}
	change, err := v.forked(name, f, &o, nil)
	if err != nil {
		return Plan{}, err
	}
	copied, err := history.PastOf(name, change.Events)
	if err != nil {
		return Plan{}, damaged(err)
	}
	rv := &revision{plan: Plan{RunID: id, Workflow: v.Row.Workflow, Status: v.Row.Status, From: v.Past.Created.Seq}}
	if n := len(f.kept); n > 0 {
		rv.plan.From = f.kept[n-1].Seq
	}
	for i := range f.edits {
		rv.plan.Edited = append(rv.plan.Edited, f.edits[i].old.Key)
	}
	if f.undone != "" {
		rv.warn("%s", f.undone)
	}
	rv.plan.Warnings = append(rv.plan.Warnings, v.startsAgain(f)...)
	if err := v.fill(ctx, rv, copied); err != nil {
		return Plan{}, err
	}
	rv.plan.Skipped = copied.EndedKeys()
	has := make(map[string]bool, len(rv.plan.Skipped))
	for _, key := range rv.plan.Skipped {
		has[key] = true
	}
	rv.plan.Again = slices.DeleteFunc(v.Past.EndedKeys(), func(key string) bool { return has[key] })
	return rv.plan, nil
}
