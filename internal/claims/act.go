package claims

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// CodeRestarted is the code of a run that failed because its process died.
const CodeRestarted = "server_restarted"

// park reports a run whose process is gone and whose code is not here. If no live
// executor has the code, the row must no longer say that the run is executed: it is
// parked until an executor serves it, which then decides by the run's policy
// (resumeInterrupted). A program without workflows parks nothing.
func (o *Options) park(ctx context.Context, row *store.Run, rep *Report) error {
	reason := o.Program.NotServed(row)
	rep.stuck(stuck.Of(row, store.CodeNotRegistered, reason))
	executors, err := o.executors(ctx)
	if err != nil {
		return err
	}
	if stuck.LiveOf(executors, o.Executor).Serves(row) {
		return nil
	}
	if row.Paused || row.CancelAsked || row.Last == nil {
		return nil // an executor that has its code carries out what was asked for
	}
	if len(o.Serves) == 0 {
		return nil // a program for operators, who are to judge the run as it is
	}
	interrupted, code := store.Interrupted, store.CodeNotRegistered
	_, err = o.Act(ctx, row, nil, commit.Act{
		From:  []store.Status{row.Status},
		Event: store.Event{Type: store.WorkflowInterrupted, Data: history.Encode(&history.Stop{Code: code, Reason: reason, Executor: o.Executor})},
		Row:   &store.RowPatch{Status: &interrupted, Code: &code, Reason: &reason},
	})
	if err != nil && !commit.Overtaken(err) {
		o.Log.AboutRun(slog.LevelWarn, row, "durable: a run that nobody can execute could not be marked so; it is tried again", slog.Any("error", err))
	}
	return nil
}

// fail marks a run failed, recoverable, unless another process was faster.
func (o *Options) fail(ctx context.Context, row *store.Run, code, reason string, rep *Report) bool {
	yes, failed, ended := true, store.Failed, o.Now()
	_, err := o.Act(ctx, row, nil, commit.Act{
		From:    []store.Status{row.Status},
		Event:   store.Event{Type: store.WorkflowFailed, Data: history.Encode(&history.End{Code: code, Reason: reason, Recoverable: &yes, Executor: o.Executor})},
		Row:     &store.RowPatch{Status: &failed, Code: &code, Reason: &reason, Recoverable: &yes, EndedAt: &ended, WakeAt: new(store.Time)},
		Release: true,
	})
	switch {
	case err == nil:
		o.Tracing.EndOrphanSpan(ctx, row, code)
		return true
	case commit.Overtaken(err):
		return false // another process recovered it at the same moment
	}
	rep.tryAgain(row, code, fmt.Sprintf("marking it failed did not succeed: %v", err), "call Recover again")
	return false
}

// unpause ends the pause of a cancelled run whose owner died before it could end the run.
func (o *Options) unpause(ctx context.Context, row *store.Run, rep *Report) bool {
	no, interrupted := false, store.Interrupted
	_, err := o.Act(ctx, row, nil, commit.Act{
		From:  []store.Status{store.Running, store.Resuming},
		Event: store.Event{Type: store.WorkflowUnpaused, Data: history.Encode(&history.Stop{Reason: "cancelled", Message: row.Inbox, Executor: o.Executor})},
		Row:   &store.RowPatch{Paused: &no, Status: &interrupted},
	})
	if err == nil || commit.Overtaken(err) {
		return err == nil
	}
	rep.tryAgain(row, stuck.CodePaused, fmt.Sprintf("it was paused and cancelled, and taking it up did not succeed: %v", err), "call Recover again")
	return false
}
