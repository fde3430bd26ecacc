package operate

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// ResumePoint returns where the execution of a run goes on: at a call that is in
// progress, with the next attempt, or after the last outcome. ok is false for a run that
// has completed or was cancelled and has nothing left to execute.
//
// Errors: durable.ErrNotFound; that of a history that cannot be read.
func (op *Operator) ResumePoint(ctx context.Context, id string) (at ResumePoint, ok bool, err error) {
	v, unreadable, err := op.view(ctx, id)
	if err == nil {
		err = unreadable
	}
	if err != nil {
		return at, false, err
	}
	if s := v.Row.Status; s == store.Completed || s == store.Cancelled {
		return at, false, nil
	}
	return pointOf(v.Past, v.declared()), true, nil
}

// ListResumable yields the runs that Resume would take, newest first within each
// kind: first those that were interrupted, then those whose executor is gone, then
// those that have failed. It leaves out paused runs and those whose deadline has passed.
// It ends after an error.
//
// Error: durable.ErrUnavailable, which ends the sequence.
func (op *Operator) ListResumable(ctx context.Context) iter.Seq2[store.Run, error] {
	kinds := []store.Filter{
		{Statuses: []store.Status{store.Interrupted}, WithLast: true},
		{Statuses: []store.Status{store.Running, store.Resuming}, Orphaned: true, WithLast: true},
		{Statuses: []store.Status{store.Failed}},
	}
	return func(yield func(store.Run, error) bool) {
		for _, f := range kinds {
			for row, err := range op.desk.Runs(ctx, f) {
				if err != nil {
					yield(store.Run{}, fmt.Errorf("durable: listing resumable runs: %w", storeError(err)))
					return
				}
				if row.Paused || row.Code == durable.CodeImporting || op.desk.PastDeadline(row) != "" {
					continue
				}
				if !yield(*row, nil) {
					return
				}
			}
		}
	}
}

// ResumeAll resumes the matching runs one after the other, each as Resume does, and yields
// the plan of each, with an error if it was not resumed; Plan.RunID names the run. Without
// Statuses in f it takes interrupted and failed runs. A run that f no longer selects when its turn
// comes is left: its error is a *durable.NotResumableError. A paused one stays paused: its error is a
// *durable.NotResumableError with Paused, and Engine.Unpause lets it go on. ResumeAll ends
// after an error of the listing, which names no run, and when ctx ends. Breaking out of the
// range leaves the other runs as they are.
//
//	f := store.Filter{Workflows: []string{"checkout"}, Codes: []string{durable.CodeDefinitionChanged}}
//	for plan, err := range op.ResumeAll(ctx, f, operate.ResumeOptions{}) { ... }
//
// FromCheckpoint is an event of one run, and must be 0: durable.ErrInvalid.
func (op *Operator) ResumeAll(ctx context.Context, f store.Filter, o ResumeOptions) iter.Seq2[Plan, error] {
	return func(yield func(Plan, error) bool) {
		if o.FromCheckpoint != 0 {
			yield(Plan{}, fmt.Errorf("durable: ResumeAll: FromCheckpoint is an event of one run: %w", durable.ErrInvalid))
			return
		}
		if len(f.Statuses) == 0 {
			f.Statuses = []store.Status{store.Interrupted, store.Failed}
		}
		for row, err := range op.desk.Runs(ctx, f) {
			if err != nil {
				yield(Plan{}, fmt.Errorf("durable: listing runs to resume: %w", storeError(err)))
				return
			}
			plan, err := resume(ctx, op, row.ID, o, &f)
			plan.RunID = row.ID
			if !yield(plan, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// selects reports whether f selects a run with this row. That its executor is not alive was
// checked.
func selects(f *store.Filter, row *store.Run) bool {
	var head int64
	if row.Last != nil {
		head = row.Last.Seq
	}
	return f.Matches(row, head, true)
}

// LastInterrupted returns the run that was interrupted last: stopped gracefully,
// parked, or left by an executor that is gone, but not failed. durable.ErrNotFound if
// there is none.
func (op *Operator) LastInterrupted(ctx context.Context) (store.Run, error) {
	var last store.Run
	var at store.Time
	for row, err := range op.ListResumable(ctx) {
		if err != nil {
			return store.Run{}, err
		}
		// A checkpoint does not touch the row's UpdatedAt.
		seen := row.UpdatedAt
		if row.Last != nil {
			seen = max(seen, row.Last.At)
		}
		if row.Status != store.Failed && (last.ID == "" || seen > at) {
			last, at = row, seen
		}
	}
	if last.ID == "" {
		return last, fmt.Errorf("durable: no run is interrupted, there is nothing to resume: %w", durable.ErrNotFound)
	}
	return last, nil
}

// Skipped returns the keys of the steps that were done by the time of a run_resumed or
// run_claimed event, and were replayed from the snapshot instead of being run again, in
// the order in which they were done. For any other event it returns none.
//
// Errors: durable.ErrNotFound; that of a history that cannot be read.
func (op *Operator) Skipped(ctx context.Context, id string, ev store.Event) ([]string, error) {
	if ev.Type != store.RunResumed && ev.Type != store.RunClaimed {
		return nil, nil
	}
	h, err := op.store.Load(ctx, id, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	root := history.RootOf(h.Branches, ev.Branch)
	on := ev.Branch
	h, err = op.store.Load(ctx, id, store.Cursor{After: root.Cutoff, Branch: &on, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	p, err := history.Read(id, func(yield func(store.Event, error) bool) {
		for e, err := range h.Events {
			if err == nil && e.Seq > ev.Seq || !yield(e, err) {
				return
			}
		}
	}, 16)
	if err != nil {
		return nil, damaged(err)
	}
	return p.DoneKeys(), nil
}

// CheckpointOf returns the number by which Resume, Jump and Fork know the outcome
// of a durable call, or of an item of a Map, of the run's current history.
//
// Errors: durable.ErrNotFound when there is no such run; *CheckpointError when the call
// has no outcome, or one after which a history cannot be cut.
func (op *Operator) CheckpointOf(ctx context.Context, id, key string) (int64, error) {
	v, unreadable, err := op.view(ctx, id)
	if err == nil {
		err = unreadable
	}
	if err != nil {
		return 0, err
	}
	var at *store.Event
	if name, n, ok := history.SplitItem(key); ok {
		at = v.Past.Items[name][n]
	} else if rec := v.Past.Call(key); rec != nil && rec.Outcome.Seq != 0 {
		at = &rec.Outcome
	}
	if at == nil {
		return 0, &CheckpointError{RunID: id, Key: key, Reason: "it has no outcome"}
	}
	if _, err := v.stable(at.Seq); err != nil {
		return 0, err
	}
	return at.Seq, nil
}
