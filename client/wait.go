package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// How a run ended that Wait has waited for; compare with errors.Is. *RunError and
// *InterruptedError have the details.
var (
	ErrRunFailed    = errors.New("client: the run has failed")
	ErrRunCancelled = errors.New("client: the run was cancelled")
	ErrInterrupted  = errors.New("client: the run was interrupted")
)

// RunError says how a run without a result ended.
type RunError struct {
	RunID       string
	Workflow    string
	Status      string // failed or cancelled
	Code        string // why, for programs; empty: the workflow's function returned an error
	Reason      string // why, for people
	Recoverable bool   // failed for a reason that may pass
}

func (e *RunError) Error() string {
	return fmt.Sprintf("run %s (%s) %s: %s", e.RunID, e.Workflow, e.Status, e.Reason)
}

// Is matches ErrRunFailed and ErrRunCancelled by the status.
func (e *RunError) Is(target error) bool {
	return target == ErrRunFailed && e.Status == "failed" || target == ErrRunCancelled && e.Status == "cancelled"
}

// InterruptedError says that a run has stopped without an outcome and that no process is
// about to continue it.
type InterruptedError struct {
	RunID    string
	Workflow string
	Code     string // empty: a graceful stop
	Reason   string
	Next     string // what lets it go on
}

func (e *InterruptedError) Error() string {
	s := fmt.Sprintf("run %s (%s) was interrupted", e.RunID, e.Workflow)
	if e.Reason != "" {
		s += ": " + strings.TrimRight(e.Reason, ".")
	}
	if e.Next != "" {
		s += ". " + e.Next
	}
	return s
}

// Is matches ErrInterrupted.
func (e *InterruptedError) Is(target error) bool { return target == ErrInterrupted }

// Wait waits until a run has completed, and returns its outcome; Outcome.Decode reads what
// it has returned. Errors:
//
//   - *RunError when it failed or was cancelled
//   - *InterruptedError when it stopped without an outcome and no process is about to
//     continue it
//   - ErrNotFound when there is no such run, ErrForbidden when it may not be read
//   - the cause of ctx's end; the run goes on
//
// It asks the server again and again, which answers when the run ends: a run that ends is
// known at once. A server that cannot be reached, has too much to do or is not well is tried
// again until ctx ends, and so is an answer that breaks off.
func (c *Client) Wait(ctx context.Context, id string) (Outcome, error) {
	retry := firstRetry
	for {
		out, err := get[Outcome](ctx, c, runPath(id, "wait"), nil)
		if err == nil && out.Done {
			err = c.whole(ctx, &out)
		}
		switch {
		case ctx.Err() != nil:
			return Outcome{}, fmt.Errorf("waiting for run %s: %w", id, context.Cause(ctx))
		case err == nil && out.Done:
			return out, ended(&out.Run)
		case err == nil:
			retry = firstRetry
			continue // it was a heartbeat
		case !passing(err) && !errors.Is(err, ErrBusy):
			return out, err
		}
		if retry = pause(ctx, retry); ctx.Err() != nil {
			return Outcome{}, fmt.Errorf("waiting for run %s: %w (the last answer was: %w)", id, context.Cause(ctx), err)
		}
	}
}

// ended returns the error for a run that is not waited for any longer; nil: it has
// completed.
func ended(r *Run) error {
	switch r.Status {
	case "completed":
		return nil
	case "interrupted":
		return &InterruptedError{RunID: r.ID, Workflow: r.Workflow, Code: r.Code, Reason: r.Reason, Next: r.Nobody}
	}
	return &RunError{RunID: r.ID, Workflow: r.Workflow, Status: r.Status, Code: r.Code, Reason: r.Reason, Recoverable: r.Recoverable}
}

// whole reads the rest of an output that is longer than an answer shows. One that is longer
// than maxAnswer stays truncated.
func (c *Client) whole(ctx context.Context, out *Outcome) error {
	p, r := out.Output, &out.Run
	if p == nil || !p.Truncated || p.Size > maxAnswer {
		return nil
	}
	body, err := c.Payload(ctx, r.ID, r.LastSeq)
	if err != nil {
		return fmt.Errorf("reading the output of run %s, which is long: %w", r.ID, err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the output of run %s, which is long: %w", r.ID, c.broken(ctx, err))
	}
	p.Truncated, p.Text = false, string(data)
	if json.Valid(data) {
		p.Value, p.Text = data, ""
	}
	return nil
}

// Decode reads the JSON that a completed run has returned into v, a pointer. The error
// matches ErrForbidden if the server does not show it, and ErrInvalid if it is no JSON, or
// JSON of another form than v.
func (o *Outcome) Decode(v any) error {
	p := o.Output
	switch {
	case p == nil:
		return &Error{Status: http.StatusBadRequest, Code: "invalid", Message: fmt.Sprintf("run %s has no output: it is %s", o.Run.ID, o.Run.Status)}
	case p.Redacted:
		return &Error{
			Status: http.StatusForbidden, Code: "redacted", Message: fmt.Sprintf("run %s has completed, and the server does not show its output", o.Run.ID),
			Next: "set dashboard.Options.ShowPayloads, and allow the caller the action payload",
		}
	case p.Error != "":
		return &Error{Status: http.StatusBadRequest, Code: "undecodable", Message: fmt.Sprintf("the server cannot read the output of run %s: %s", o.Run.ID, p.Error)}
	case p.Truncated:
		return &Error{Status: http.StatusBadRequest, Code: "too_large", Message: fmt.Sprintf("the output of run %s has %d bytes, more than Wait reads: download it with Payload", o.Run.ID, p.Size)}
	case p.Value == nil:
		return &Error{Status: http.StatusBadRequest, Code: "undecodable", Message: fmt.Sprintf("the output of run %s is no JSON (codec %s): see Output.Text, or download it with Payload", o.Run.ID, p.Codec)}
	}
	if err := json.Unmarshal(p.Value, v); err != nil {
		return &Error{Status: http.StatusBadRequest, Code: "invalid", Message: fmt.Sprintf("the output of run %s cannot be read into %T: %v", o.Run.ID, v, err)}
	}
	return nil
}
