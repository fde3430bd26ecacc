package client

import (
	"context"
	"encoding/json"
	"net/url"
)

// Start starts a run of a workflow that a live process serves, or puts it in line of a
// queue; Done.RunID is its id. It is durable when Start returns, and idempotent by id: after
// an error that says nothing of the outcome, such as ErrUnreachable, send it again.
// ErrConflict if the run exists with another workflow or input, or if another run has the
// deduplication key; ErrNotFound if no live process serves the workflow.
func (c *Client) Start(ctx context.Context, workflow string, r StartRequest) (Done, error) {
	return post[Done](ctx, c, path("api", "workflows", workflow, "runs"), r)
}

// Resume continues a run that failed or was interrupted, from the attempt it had
// reached. ErrNotFound; ErrConflict with the server's message when it cannot be
// resumed.
func (c *Client) Resume(ctx context.Context, id string, o ResumeOptions) (Resumed, error) {
	return post[Resumed](ctx, c, runPath(id, "resume"), o)
}

// Plan says what Resume would do, and does nothing.
func (c *Client) Plan(ctx context.Context, id string, o ResumeOptions) (Plan, error) {
	q := url.Values{}
	if o.FromCheckpoint > 0 {
		q.Set("from_checkpoint", itoa(o.FromCheckpoint))
	}
	if o.FromKey != "" {
		q.Set("from_key", o.FromKey)
	}
	if o.ResetFailures {
		q.Set("reset_failures", "1")
	}
	if o.Force {
		q.Set("force", "1")
	}
	out, err := get[Resumed](ctx, c, runPath(id, "plan"), q)
	return out.Plan, err
}

// ResumeRun resumes a run of a workflow, even one that waits at a checkpoint and that
// no process executes. ErrNotFound if there is no such run of this workflow;
// ErrConflict if it has no checkpoint or cannot be resumed.
func (c *Client) ResumeRun(ctx context.Context, workflowID, runID string) (Done, error) {
	return post[Done](ctx, c, path("workflows", workflowID, "resume")+"/"+EscapeID(runID), nil)
}

// Cancel asks a run to end.
func (c *Client) Cancel(ctx context.Context, id, reason string) (Done, error) {
	return post[Done](ctx, c, runPath(id, "cancel"), ReasonRequest{Reason: reason})
}

// Pause stops a run until Unpause.
func (c *Client) Pause(ctx context.Context, id, reason string) (Done, error) {
	return post[Done](ctx, c, runPath(id, "pause"), ReasonRequest{Reason: reason})
}

// Unpause lets a paused run go on.
func (c *Client) Unpause(ctx context.Context, id string) (Done, error) {
	return post[Done](ctx, c, runPath(id, "unpause"), nil)
}

// Signal sends a value to a run. A signalID that is not empty makes it idempotent.
func (c *Client) Signal(ctx context.Context, id, name string, value json.RawMessage, signalID string) (Done, error) {
	return post[Done](ctx, c, runPath(id, "signal", name), SignalRequest{Value: value, ID: signalID})
}

// Approve says yes to what a run asks. wait is the id or key of the approval; empty if
// there is only one. ErrConflict if it was answered already.
func (c *Client) Approve(ctx context.Context, id, wait, reason string) (Done, error) {
	return post[Done](ctx, c, runPath(id, "approve"), Answer{Wait: wait, Reason: reason})
}

// Reject says no to what a run asks; see Approve.
func (c *Client) Reject(ctx context.Context, id, wait, reason string) (Done, error) {
	return post[Done](ctx, c, runPath(id, "reject"), Answer{Wait: wait, Reason: reason})
}

// Answer answers an approval, with a value in full or with yes or no.
func (c *Client) Answer(ctx context.Context, id string, a Answer) (Done, error) {
	return post[Done](ctx, c, runPath(id, "answer"), a)
}

// Fork makes a new run from what another one has recorded, with the outcomes in
// r.Edits replacing recorded ones. ErrConflict if an outcome cannot be edited, or if
// the id is another run's. r.DryRun is ignored: see PlanFork.
func (c *Client) Fork(ctx context.Context, id string, r ForkRequest) (Done, error) {
	r.DryRun = false
	return post[Done](ctx, c, runPath(id, "fork"), r)
}

// PlanFork says what Fork would make, and makes nothing.
func (c *Client) PlanFork(ctx context.Context, id string, r ForkRequest) (Plan, error) {
	r.DryRun = true
	out, err := post[Resumed](ctx, c, runPath(id, "fork"), r)
	return out.Plan, err
}

// Jump takes a run back to an earlier point.
func (c *Client) Jump(ctx context.Context, id string, r JumpRequest) (Resumed, error) {
	return post[Resumed](ctx, c, runPath(id, "jump"), r)
}

// Edit replaces a recorded result. Resume continues the run with it.
func (c *Client) Edit(ctx context.Context, id string, r EditRequest) (Resumed, error) {
	return post[Resumed](ctx, c, runPath(id, "edit"), r)
}
