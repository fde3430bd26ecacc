package client

import (
	"context"
	"time"
)

// Queue is a queue and its runs.
type Queue struct {
	Name string `json:"name"`
	// Max and MaxPerPartition are how many runs may hold a place at once, over all
	// processes; 0: any number.
	Max             int `json:"max,omitempty"`
	MaxPerPartition int `json:"max_per_partition,omitempty"`
	// Rate is how many runs may begin in any PerMS milliseconds; 0: any number.
	Rate  int   `json:"rate,omitempty"`
	PerMS int64 `json:"per_ms,omitempty"`
	// Paused says that no run gets a place until somebody resumes the queue, and Reason why.
	Paused    bool      `json:"paused"`
	Reason    string    `json:"reason,omitempty"`
	UpdatedAt time.Time `json:"updated_at,omitzero"` // of the definition; zero: there is none

	Running int64 `json:"running"` // runs that hold a place, also while they wait for something
	InLine  int64 `json:"in_line"` // runs that are due and need a place
	Delayed int64 `json:"delayed"` // runs that get in line later
	Failed  int64 `json:"failed"`  // dead letters
	// Oldest is since when the oldest run in line has been due, AgeMS how long ago that is
	// by the server's clock.
	Oldest time.Time `json:"oldest,omitzero"`
	AgeMS  int64     `json:"age_ms,omitempty"`
	// Begun is how many runs have begun in the window of the rate, NextAt when it lets
	// the next one begin; zero: now.
	Begun  int64     `json:"begun,omitempty"`
	NextAt time.Time `json:"next_at,omitzero"`
	// Waits says why the runs in line wait, each counted once.
	Waits []QueueWait `json:"waits,omitempty"`
	// Partitions are those with the most runs in line, at most 100.
	Partitions []QueuePartition `json:"partitions,omitempty"`
}

// What keeps runs in line for a place in their queue: the Reason of a QueueWait and of a Line.
// Their Text says it to people.
const (
	WaitPaused         = "paused"          // somebody has paused the queue
	WaitUnserved       = "unserved"        // no live process has the code of their workflow
	WaitQueueLimit     = "queue_limit"     // as many hold a place as the queue allows
	WaitPartitionLimit = "partition_limit" // as many hold a place as it allows of their partition
	WaitRate           = "rate"            // the rate lets none begin before Until
	WaitNext           = "next"            // nothing: a process is about to take them, or none has room
)

// QueueWait is a number of runs that are in line for the same reason.
type QueueWait struct {
	Reason    string    `json:"reason"` // WaitPaused, …
	Partition string    `json:"partition,omitempty"`
	Runs      int64     `json:"runs"`
	Until     time.Time `json:"until,omitzero"` // of WaitRate
	Text      string    `json:"text"`           // for people
}

// QueuePartition is a partition of a queue.
type QueuePartition struct {
	Name    string `json:"name"`
	Running int64  `json:"running"`
	InLine  int64  `json:"in_line"`
}

// Line says where a run stands in line for a place in its queue, and what holds it up.
type Line struct {
	Queue     string    `json:"queue"`
	Partition string    `json:"partition,omitempty"`
	Position  int64     `json:"position"` // in its partition; 1: it is next
	Reason    string    `json:"reason"`   // as of QueueWait
	Until     time.Time `json:"until,omitzero"`
	Text      string    `json:"text"` // for people
}

// QueueDone is the answer to an act on a queue.
type QueueDone struct {
	Queue   Queue  `json:"queue"`
	Message string `json:"message"`
}

// RetryRequest asks for a retry of a failed run.
type RetryRequest struct {
	DryRun bool `json:"dry_run,omitempty"` // only say what it would do
}

// queuePath returns the path of a queue, or of something below it.
func queuePath(name string, below ...string) string {
	return "/api/queues/" + EscapeID(name) + path(below...)
}

// Queues lists the queues that were defined or have runs, by name.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	out, err := get[struct{ Queues []Queue }](ctx, c, path("api", "queues"), nil)
	return out.Queues, err
}

// Queue returns a queue. ErrNotFound if there is none. Its dead letters are the runs that
// ListRuns finds with its name and the status failed.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	return get[Queue](ctx, c, queuePath(name), nil)
}

// PauseQueue keeps runs of a queue from getting a place until ResumeQueue. Those that hold
// one go on.
func (c *Client) PauseQueue(ctx context.Context, name, reason string) (QueueDone, error) {
	return post[QueueDone](ctx, c, queuePath(name, "pause"), ReasonRequest{Reason: reason})
}

// ResumeQueue lets the runs of a paused queue get places again.
func (c *Client) ResumeQueue(ctx context.Context, name string) (QueueDone, error) {
	return post[QueueDone](ctx, c, queuePath(name, "resume"), nil)
}

// Retry lets a failed run of a queue get in line again, or, as a dry run, says what that
// would do. ErrConflict if it has not failed or is on no queue.
func (c *Client) Retry(ctx context.Context, id string, dry bool) (Resumed, error) {
	return post[Resumed](ctx, c, runPath(id, "retry"), RetryRequest{DryRun: dry})
}

// RetryAll lets the failed runs that a filter selects get in line again, as Retry does; a
// filter by queue selects its dead letters. See ResumeAll.
func (c *Client) RetryAll(ctx context.Context, r BulkRequest) (Bulk, error) {
	return post[Bulk](ctx, c, path("api", "bulk", "retry"), r)
}
