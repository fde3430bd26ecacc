package client

import (
	"encoding/json"
	"time"
)

// Run is the row of a run as the API shows it.
type Run struct {
	ID             string `json:"id"`
	Workflow       string `json:"workflow"`
	Version        string `json:"version,omitempty"`         // to which it is pinned
	InitialVersion string `json:"initial_version,omitempty"` // with which it was started
	Status         string `json:"status"`                    // pending, running, resuming, waiting, interrupted, completed, failed, cancelled
	Code           string `json:"code,omitempty"`            // why it is interrupted or failed, for programs
	Reason         string `json:"reason,omitempty"`          // the same for people
	Recoverable    bool   `json:"recoverable"`               // failed for a reason that may pass: pages offer Resume
	Paused         bool   `json:"paused"`
	CancelAsked    bool   `json:"cancel_asked,omitempty"`
	Owner          string `json:"owner,omitempty"` // executor id

	// Where the run is: Key and Attempt of its last event, with the event's number,
	// type and time.
	Key      string    `json:"key,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	LastSeq  int64     `json:"last_seq"`
	LastType string    `json:"last_type,omitempty"`
	LastAt   time.Time `json:"last_at,omitzero"`
	Steps    int       `json:"steps"` // done so far in this generation

	Branch     int    `json:"branch"`
	Generation int    `json:"generation"`
	Resumes    int    `json:"resumes"`
	Strikes    int    `json:"strikes,omitempty"`
	Priority   int    `json:"priority,omitempty"`
	Queue      string `json:"queue,omitempty"`
	Partition  string `json:"partition,omitempty"`  // of the queue
	Parent     string `json:"parent,omitempty"`     // run id
	ParentKey  string `json:"parent_key,omitempty"` // of the call that started it
	ForkedFrom string `json:"forked_from,omitempty"`

	CreatedAt  time.Time         `json:"created_at"`
	StartedAt  time.Time         `json:"started_at,omitzero"`
	UpdatedAt  time.Time         `json:"updated_at"`
	EndedAt    time.Time         `json:"ended_at,omitzero"`
	WakeAt     time.Time         `json:"wake_at,omitzero"`
	DeadlineAt time.Time         `json:"deadline_at,omitzero"`
	Attributes map[string]string `json:"attributes,omitempty"`

	// Executed says whether a live process executes the run, or will claim it. If not,
	// Nobody says why and what to do. Set by GetRun only.
	Executed *bool  `json:"executed,omitempty"`
	Nobody   string `json:"nobody,omitempty"`
	// Verdict says in one or two sentences what ended the run, holds it up, or happens
	// in it now, as the pages and the terminal do. Set by GetRun only; empty if the
	// history cannot be read.
	Verdict string `json:"verdict,omitempty"`
	// Damage is what is wrong with the end of the history; nil: nothing that a look at
	// the checksums and numbers of its events shows. Set by GetRun only.
	Damage *Damage `json:"damage,omitempty"`
	// Line is where the run stands in line of its queue; nil: it is in none. Set by
	// GetRun only.
	Line *Line `json:"line,omitempty"`
	// Declared are the names of its steps, if they are known, and Approvals what it
	// asks people. Set by GetRun only.
	Declared    []string   `json:"declared,omitempty"`
	Approvals   []Approval `json:"approvals,omitempty"`
	Exclusive   []string   `json:"exclusive,omitempty"`   // keys it was started with
	Differences []string   `json:"differences,omitempty"` // between its environment and that of the server's process, one line each
}

// Damage is the first event of a history that cannot be believed, nor can those after it.
type Damage struct {
	Seq  int64  `json:"seq"`  // of the event
	Text string `json:"text"` // what is wrong with it
}

// Terminal reports whether the run has ended. A failed run may still be resumed.
func (r *Run) Terminal() bool {
	return r.Status == "completed" || r.Status == "failed" || r.Status == "cancelled"
}

// Runs is a page of runs.
type Runs struct {
	Runs []Run `json:"runs"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
	// Counts are the numbers of runs by status, of all that match the filter when its
	// statuses are ignored. Set if they were requested.
	Counts map[string]int64 `json:"counts,omitempty"`
}

// Event is an entry of a run's history.
type Event struct {
	Seq  int64  `json:"seq"`
	Type string `json:"type"`
	// Also are other names of this event, such as WORKFLOW_STARTED for a run that was
	// resumed, or APPROVAL_REQUIRED and checkpoint_waiting for a wait with a prompt.
	Also    []string  `json:"also,omitempty"`
	Branch  int       `json:"branch"`
	Key     string    `json:"key,omitempty"` // of the durable call; empty for the run itself
	Attempt int       `json:"attempt,omitempty"`
	Ordinal int       `json:"ordinal,omitempty"`
	At      time.Time `json:"at"`
	TookMS  float64   `json:"took_ms,omitempty"`
	Steps   int       `json:"steps"` // done so far in this generation
	// Text describes the event in one line, for people.
	Text string `json:"text"`
	// Data is the event's data besides the payload: error, reason, prompt, until,
	// next_at (microseconds since 1970), by, cutoff, ...
	Data    map[string]any `json:"data,omitempty"`
	Payload *Payload       `json:"payload,omitempty"`
	// LeftBehind says that the event is on a branch that is not part of the current
	// history.
	LeftBehind bool `json:"left_behind,omitempty"`
	// Announced marks, in a stream, a wait that was pending when the stream began: the
	// event itself is an earlier one.
	Announced bool `json:"announced,omitempty"`
	// Expands are the entries that the event represents: the steps that were replayed
	// from the snapshot when the run was resumed.
	Expands []Skipped `json:"expands,omitempty"`
}

// Skipped is a step that did not run again when a run was resumed.
type Skipped struct {
	Type   string `json:"type"` // step_skipped
	Key    string `json:"key"`
	Reason string `json:"reason"` // replayed from snapshot
}

// Payload is user data of an event.
type Payload struct {
	Type        string `json:"type,omitempty"` // of the value
	Version     int    `json:"version,omitempty"`
	Codec       string `json:"codec,omitempty"`
	Compression string `json:"compression,omitempty"`
	KeyID       string `json:"key_id,omitempty"` // with which it is encrypted
	Size        int    `json:"size"`             // bytes
	// Redacted says that the value is not shown, by the server's choice. The fields
	// below are then empty.
	Redacted bool `json:"redacted,omitempty"`
	// Value is the payload if it is JSON. Text is shown if it is not, or is its
	// beginning if Truncated; the whole can be downloaded.
	Value     json.RawMessage `json:"value,omitempty"`
	Text      string          `json:"text,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	// Error says why the payload cannot be read.
	Error string `json:"error,omitempty"`
}

// Events is a page of a run's history.
type Events struct {
	Events []Event `json:"events"`
	// Next is the After of the next page; 0 on the last one.
	Next int64 `json:"next,omitempty"`
}

// Approval is a question to people that is not answered yet.
type Approval struct {
	// ID identifies this wait among all.
	ID       string    `json:"id"`
	RunID    string    `json:"run_id"`
	Workflow string    `json:"workflow"`
	Key      string    `json:"key"`
	Name     string    `json:"name"`
	Prompt   string    `json:"prompt"`
	AskedAt  time.Time `json:"asked_at"`
	Until    time.Time `json:"until,omitzero"` // when it ends on its own
	Seq      int64     `json:"seq"`            // of the event that asked
	// Sample shows the form of an answer: its zero value.
	Sample json.RawMessage `json:"sample,omitempty"`
}

// Approvals are the questions that runs ask people, the oldest first.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
	// More is how many questions are left out because the size of the answer is
	// bounded. They follow as others are answered.
	More int `json:"more,omitempty"`
}

// Stuck says why a run cannot go on, and what to do.
type Stuck struct {
	RunID    string `json:"run_id"`
	Workflow string `json:"workflow"`
	Version  string `json:"version,omitempty"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Next     string `json:"next"`
	// Since is when the run last moved.
	Since time.Time `json:"since,omitzero"`
}

// Plan says what a resume, a jump or an edit did, or in a dry run would do.
type Plan struct {
	RunID    string   `json:"run_id"`
	Workflow string   `json:"workflow"`
	Status   string   `json:"status"` // in which the run was found
	Summary  string   `json:"summary"`
	Details  []string `json:"details,omitempty"`

	From      int64  `json:"from"` // last event that is kept
	Scope     string `json:"scope,omitempty"`
	Branch    int    `json:"branch"`
	NewBranch bool   `json:"new_branch"`

	Skipped  []string `json:"skipped"`          // taken from the history
	Again    []string `json:"again"`            // run again
	Edited   []string `json:"edited,omitempty"` // get another outcome
	Reset    []string `json:"reset,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Left     []string `json:"left,omitempty"` // in progress now, and left behind

	Unchecked string `json:"unchecked,omitempty"` // why it is not known whether the code fits the history; empty: it does
	Ends      string `json:"ends,omitempty"`      // the error with which it ends at once, because nothing is left to run

	Next     Point `json:"next"`
	Step     int   `json:"step"` // number of the next step, from 1
	Steps    int   `json:"steps"`
	Declared bool  `json:"declared"`

	// Served says that a live process has the code. If not, Nobody says what to do.
	Served bool   `json:"served"`
	Nobody string `json:"nobody,omitempty"`
}

// Point is where the execution of a run continues.
type Point struct {
	Key     string `json:"key,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	After   string `json:"after,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Text    string `json:"text"`
}

// Resumed is the answer to an act that has a plan: what was done, and the run
// afterwards.
type Resumed struct {
	Run  Run  `json:"run"`
	Plan Plan `json:"plan"`
	// DryRun: nothing was changed.
	DryRun bool `json:"dry_run,omitempty"`
}

// Branch is a branch of a run's history.
type Branch struct {
	N          int       `json:"n"`
	Parent     int       `json:"parent"`
	Root       bool      `json:"root"`
	Generation int       `json:"generation"`
	Cutoff     int64     `json:"cutoff"`
	Scope      string    `json:"scope,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	Current    bool      `json:"current"`
	InLineage  bool      `json:"in_lineage"`
	Events     int       `json:"events"`
	Left       int       `json:"left"`
}

// Health is the state of the server's engine.
type Health struct {
	Ready     bool             `json:"ready"`
	Reason    string           `json:"reason,omitempty"` // why it is not ready
	Executor  string           `json:"executor"`
	Release   string           `json:"release"` // of Holdfast in that server
	BeatAgeMS int64            `json:"beat_age_ms"`
	LeaseMS   int64            `json:"lease_ms"`
	Recovered bool             `json:"recovered"`
	Closing   bool             `json:"closing"`
	Executing int              `json:"executing"`
	Unloaded  int              `json:"unloaded"`
	Backlog   int64            `json:"backlog"`
	Stuck     map[string]int64 `json:"stuck"`
	Executors []Executor       `json:"executors"`
	Streams   int              `json:"streams"`
	// CommitP99MS is the 99th percentile of the duration of the last Commits commits,
	// in milliseconds with a fraction.
	CommitP99MS float64 `json:"commit_p99_ms"`
	Commits     int     `json:"commits"`
	TimersLate  int     `json:"timers_late"` // runs that should have gone on more than a second ago
}

// Executor is a process that executes runs.
type Executor struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"started_at"`
	BeatAt    time.Time `json:"beat_at"`
	Live      bool      `json:"live"`
	Workflows []string  `json:"workflows,omitempty"`
	Queues    []string  `json:"queues,omitempty"` // from which it takes runs; none: from all
}

// Counts are numbers of runs.
type Counts struct {
	Total     int64            `json:"total"`
	Status    map[string]int64 `json:"status"`
	Workflow  map[string]int64 `json:"workflow"`
	Approvals int64            `json:"approvals"` // runs that wait for a person
}

// Workflow is a workflow whose code a live process has.
type Workflow struct {
	Name      string   `json:"name"`
	Versions  []string `json:"versions"`
	Executors int      `json:"executors"`
}

// History is what an archive has.
type History struct {
	Runs   []ArchivedRun `json:"runs"`
	Source string        `json:"source"`
	// Next is the after of the next page; empty if there is none.
	Next string `json:"next,omitempty"`
}

// ArchivedRun is a run as an archive lists it.
type ArchivedRun struct {
	RunID      string          `json:"run_id"`
	Workflow   string          `json:"workflow_id"`
	Version    string          `json:"version,omitempty"`
	Status     string          `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	CreatedAt  time.Time       `json:"created_at,omitzero"`
	StartedAt  time.Time       `json:"started_at,omitzero"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	DurationMS int64           `json:"duration_ms"`
	Error      string          `json:"error,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"` // absent unless it completed
	// Prompt is what a person was asked when it was archived while it waited.
	Prompt string `json:"checkpoint_prompt,omitempty"`
	// Live says that the store has the run, too.
	Live bool `json:"live,omitempty"`
}

// Done is the answer to an act without further results.
type Done struct {
	RunID   string `json:"run_id"`
	Message string `json:"message"`
	Run     *Run   `json:"run,omitempty"`
}

// StartRequest starts a run. Its zero value starts one with a generated id and the zero
// value of the workflow's input.
type StartRequest struct {
	// ID makes the start idempotent: sent again with the same input, it finds the run.
	// Empty: one is generated, and each request starts a run.
	ID         string            `json:"id,omitempty"`
	Input      json.RawMessage   `json:"input,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Exclusive  []string          `json:"exclusive,omitempty"`

	// Enqueue only records the run: any process that has the code takes it as it has
	// room. Otherwise the server's own process executes it, if it has the code. The
	// fields below imply it, but for DeadlineMS.
	Enqueue bool `json:"enqueue,omitempty"`
	// Queue puts the run on a queue, Partition in a part of that, such as a tenant.
	Queue     string `json:"queue,omitempty"`
	Partition string `json:"partition,omitempty"`
	// Priority is from -1000 to 1000. In a queue each step counts as an hour of waiting.
	Priority int `json:"priority,omitempty"`
	// Dedup is a key that at most one run of the queue has until it ends. Another start
	// with it is refused: an *Error whose Code is "duplicate" and whose Holder is that run.
	Dedup string `json:"dedup,omitempty"`
	// DelayMS is how many milliseconds from now the run may begin, StartAt from when on;
	// not both. Both are by the store's clock.
	DelayMS int64     `json:"delay_ms,omitempty"`
	StartAt time.Time `json:"start_at,omitzero"`
	// Debounce makes one run of starts that come close together. ID must be empty.
	Debounce *Debounce `json:"debounce,omitempty"`
	// DeadlineMS is how many milliseconds after its start the run ends, failed; 0: never.
	DeadlineMS int64 `json:"deadline_ms,omitempty"`
}

// Debounce makes one run of the starts with its key: it begins once there was none for
// WaitMS, and at the latest MostMS after the first, with the input of the last.
type Debounce struct {
	Key    string `json:"key"`
	WaitMS int64  `json:"wait_ms"`
	MostMS int64  `json:"most_ms"`
}

// Outcome says how far a run is, and how it has ended.
type Outcome struct {
	// Done says that there is nothing to wait for: the run has ended, or it has stopped
	// without an outcome and no process is about to continue it. Run.Status tells the two
	// apart, and Run.Nobody says what to do.
	Done bool `json:"done"`
	Run  Run  `json:"run"`
	// Output is what a completed run has returned; nil for others. It has no value if the
	// server shows no user data, or not to this caller (Redacted).
	Output *Payload `json:"output,omitempty"`
}

// ResumeOptions change how a run is resumed. The zero value continues it from the
// attempt it had reached.
type ResumeOptions struct {
	FromCheckpoint int64 `json:"from_checkpoint,omitempty"` // number of an event
	// FromKey is FromCheckpoint by the key of the call whose outcome it is.
	FromKey       string `json:"from_key,omitempty"`
	ResetFailures bool   `json:"reset_failures,omitempty"`
	Force         bool   `json:"force,omitempty"`
	DryRun        bool   `json:"dry_run,omitempty"`
}

// JumpRequest takes a run back.
type JumpRequest struct {
	To     int64  `json:"to,omitempty"`  // number of an event
	Key    string `json:"key,omitempty"` // instead of To
	Reason string `json:"reason,omitempty"`
	Force  bool   `json:"force,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// EditRequest replaces a recorded result.
type EditRequest struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Reason string          `json:"reason,omitempty"`
	Force  bool            `json:"force,omitempty"`
	DryRun bool            `json:"dry_run,omitempty"`
}

// ForkRequest makes a new run from what another one has recorded.
type ForkRequest struct {
	ID         string            `json:"id,omitempty"`  // empty: one is generated
	At         int64             `json:"at,omitempty"`  // number of the last event that is copied; 0: all
	Key        string            `json:"key,omitempty"` // instead of At
	Attributes map[string]string `json:"attributes,omitempty"`
	// Edits are values that replace recorded outcomes in the new run, by the key of
	// the call. Force allows values of another type.
	Edits  map[string]json.RawMessage `json:"edits,omitempty"`
	Reason string                     `json:"reason,omitempty"` // of the edits
	Force  bool                       `json:"force,omitempty"`
	DryRun bool                       `json:"dry_run,omitempty"`
}

// SignalRequest sends a value to a run.
type SignalRequest struct {
	Value json.RawMessage `json:"value,omitempty"`
	// ID makes the signal idempotent: a run receives only one with the same id.
	ID string `json:"id,omitempty"`
}

// Answer answers an approval.
type Answer struct {
	// Wait is the id or the key of the approval; empty if there is only one.
	Wait   string `json:"wait,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Value is the answer in full. If it is empty, the answer is a yes or a no in the
	// form that the workflow waits for.
	Value json.RawMessage `json:"value,omitempty"`
	// Approved says yes or no, for a route that does not.
	Approved *bool `json:"approved,omitempty"`
}

// ReasonRequest says why something is done.
type ReasonRequest struct {
	Reason string `json:"reason,omitempty"`
}

// Problem is the body of every answer that is not a success.
type Problem struct {
	Error ProblemError `json:"error"`
	// Message repeats Error.Message, for programs that look for it here.
	Message string `json:"message"`
}

// ProblemError says what happened.
type ProblemError struct {
	// Code is for programs: it does not change. docs/http-api.md lists them.
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
	// Next is what to do about it; empty if nothing is known to help.
	Next string `json:"next,omitempty"`
	// Holder is the run that is in the way: the one that has the deduplication key of a
	// start, if the caller may read it.
	Holder string `json:"holder,omitempty"`
}
