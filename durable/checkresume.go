package durable

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// CheckResume says why a person should not resume a run, nil if nothing speaks
// against it. It is stricter than Resume, which a program may call for what it
// knows better, and looks in this order: the run is there; its row and its events
// agree, or Resume can repair that; its status allows it, or will once repaired;
// it has a checkpoint, and what is recorded can be read here. Whether its
// exclusive keys are free only Resume finds out. It changes nothing.
//
// Errors: those of Resume; *CheckpointError for a run that failed before anything
// was recorded, which would not be resumed but begun again (o.Force allows it);
// *DamagedError and *UndecodableError for a failed run whose history this program
// cannot read, which would lose its failure for nothing.
func (e *Engine) CheckResume(ctx context.Context, id string, o ResumeOptions) error {
	v, unreadable, err := e.view(ctx, id)
	if err != nil {
		return fmt.Errorf("resuming: %w", err)
	}
	torn := ""
	if unreadable == nil {
		if _, torn, err = e.recoverFirst(ctx, v, true); err != nil {
			return err
		}
	}
	if err := e.resumable(ctx, v.row, o.Force); err != nil && !frees(torn, v.row) {
		return err
	}
	if v.row.Status == store.Cancelled && unreadable == nil {
		_, err := v.uncancel(ctx, o.FromCheckpoint)
		return err
	}
	if v.row.Status != store.Failed {
		return nil // it stopped in its course, and goes on in it
	}
	if unreadable != nil {
		return unreadable
	}
	if !o.Force && o.FromCheckpoint == 0 && v.nothingRecorded() {
		return &CheckpointError{RunID: id, Reason: "it failed before anything was recorded. Force starts it again from its input"}
	}
	for i := range v.events {
		if _, err := e.Payload(id, v.events[i]); err != nil {
			return err
		}
	}
	return nil
}

// nothingRecorded reports whether a run has come no further than to its start.
func (v *view) nothingRecorded() bool {
	for i := range v.events {
		switch v.events[i].Type {
		case store.WorkflowCreated, store.WorkflowStarted, store.WorkflowFailed, store.WorkflowInterrupted, store.WorkflowRecovered,
			store.RunResumed, store.RunClaimed, store.WorkflowPaused, store.WorkflowUnpaused, store.AttributesSet:
		default:
			return false
		}
	}
	return true
}
