package client

import (
	"context"
	"time"
)

// Schedule is a schedule, what has become of its last fires and when it fires next.
type Schedule struct {
	Name      string `json:"name"`
	Workflow  string `json:"workflow,omitempty"`
	Timetable string `json:"timetable,omitempty"` // for people
	Overlap   string `json:"overlap,omitempty"`   // skip, allow, queue, cancel
	Missed    string `json:"missed,omitempty"`    // once, skip, all, or "up to 5"

	Paused   bool      `json:"paused"`
	PausedAt time.Time `json:"paused_at,omitzero"`
	Reason   string    `json:"reason,omitempty"` // why it is paused

	Next []time.Time    `json:"next,omitempty"` // the next five fire times; of a paused schedule, if it were not
	Last []ScheduleFire `json:"last,omitempty"` // the last ten fires, the latest first
	Held []time.Time    `json:"held,omitempty"` // fire times that wait for the run before

	// How many fires have started a run, were skipped, missed, or could not start theirs.
	Started int64 `json:"started"`
	Skipped int64 `json:"skipped"`
	Misses  int64 `json:"missed_fires"`
	Refused int64 `json:"refused"`

	// Problem is why the server's program cannot read the schedule; empty: it can.
	Problem   string    `json:"problem,omitempty"`
	UpdatedAt time.Time `json:"updated_at"`
}

// ScheduleFire is what became of a fire of a schedule.
type ScheduleFire struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // started, skipped, missed, refused
	RunID   string    `json:"run_id,omitempty"`
	Status  string    `json:"status,omitempty"` // of the run; empty: it was deleted
	Reason  string    `json:"reason,omitempty"`
	Count   int64     `json:"count,omitempty"` // fires that were missed together
}

// ScheduleDone is the answer to an act on a schedule.
type ScheduleDone struct {
	Schedule *Schedule `json:"schedule,omitempty"` // nil: it was deleted
	RunID    string    `json:"run_id,omitempty"`   // that was triggered
	Message  string    `json:"message"`
}

// TriggerRequest asks for a run of a schedule now.
type TriggerRequest struct {
	// Key makes the request idempotent: the same key is the same run. Empty: each
	// request starts one.
	Key string `json:"key,omitempty"`
}

// BackfillRequest asks for the runs of a span that has passed.
type BackfillRequest struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"` // up to here, without it
	DryRun bool      `json:"dry_run,omitempty"`
}

// Backfill is the answer to a BackfillRequest.
type Backfill struct {
	Fires    int               `json:"fires"`    // of the span
	Started  int               `json:"started"`  // or, in a dry run, would be
	Existing int               `json:"existing"` // they stay as they are
	Refused  map[string]string `json:"refused,omitempty"`
	// First and Last are the ids of the first and the last run that it started, RunIDs those of
	// all, in the order of their times.
	First  string   `json:"first,omitempty"`
	Last   string   `json:"last,omitempty"`
	RunIDs []string `json:"run_ids,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
}

// schedulePath returns the path of a schedule, or of something below it.
func schedulePath(name string, below ...string) string {
	return "/api/schedules/" + EscapeID(name) + path(below...)
}

// Schedules lists the schedules, by name.
func (c *Client) Schedules(ctx context.Context) ([]Schedule, error) {
	out, err := get[struct{ Schedules []Schedule }](ctx, c, path("api", "schedules"), nil)
	return out.Schedules, err
}

// Schedule returns a schedule. ErrNotFound if there is none.
func (c *Client) Schedule(ctx context.Context, name string) (Schedule, error) {
	return get[Schedule](ctx, c, schedulePath(name), nil)
}

// PauseSchedule keeps a schedule from firing until ResumeSchedule.
func (c *Client) PauseSchedule(ctx context.Context, name, reason string) (ScheduleDone, error) {
	return post[ScheduleDone](ctx, c, schedulePath(name, "pause"), ReasonRequest{Reason: reason})
}

// ResumeSchedule ends a pause. Times that have passed meanwhile do not fire.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (ScheduleDone, error) {
	return post[ScheduleDone](ctx, c, schedulePath(name, "resume"), nil)
}

// TriggerSchedule starts a run of a schedule now. With a key it is idempotent.
func (c *Client) TriggerSchedule(ctx context.Context, name, key string) (ScheduleDone, error) {
	return post[ScheduleDone](ctx, c, schedulePath(name, "trigger"), TriggerRequest{Key: key})
}

// BackfillSchedule starts the runs of a span that has passed, or, as a dry run, says which.
// Runs that exist stay as they are, so it can be sent again.
func (c *Client) BackfillSchedule(ctx context.Context, name string, r BackfillRequest) (Backfill, error) {
	return post[Backfill](ctx, c, schedulePath(name, "backfill"), r)
}

// DeleteSchedule removes a schedule. Its runs stay. A program that declares it stores it
// again when it opens.
func (c *Client) DeleteSchedule(ctx context.Context, name string) (ScheduleDone, error) {
	return post[ScheduleDone](ctx, c, schedulePath(name, "delete"), nil)
}
