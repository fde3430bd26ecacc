package target

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

// A Session is a run as --json prints it. Fields are only ever added.
type Session struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Version  string `json:"version,omitempty"`
	Status   string `json:"status"`
	// Step is the number of the step the run has reached, from 1; 0 before the first.
	// Steps is how many its workflow declares; 0 if that is not known.
	Step  int `json:"step"`
	Steps int `json:"steps,omitempty"`
	// Done is how many steps have an outcome; show leaves out those that have failed, which Failed
	// counts.
	Done     int    `json:"steps_done"`
	Failed   int    `json:"steps_failed,omitempty"`
	Key      string `json:"key,omitempty"`     // of the call the run has reached
	Attempt  int    `json:"attempt,omitempty"` // the one in progress, or the next one
	Attempts int    `json:"max_attempts,omitempty"`

	StartedAt      string `json:"started_at"`
	LastCheckpoint string `json:"last_checkpoint,omitempty"`
	EndedAt        string `json:"ended_at,omitempty"`

	Resumable   bool   `json:"resumable"`
	Corrupt     bool   `json:"corrupt,omitempty"` // its last events are damaged
	Paused      bool   `json:"paused,omitempty"`
	CancelAsked bool   `json:"cancel_asked,omitempty"` // and not carried out yet
	Code        string `json:"code,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Recoverable bool   `json:"recoverable,omitempty"`
	Owner       string `json:"owner,omitempty"`
	Queue       string `json:"queue,omitempty"`
	Partition   string `json:"partition,omitempty"` // of the queue
	Parent      string `json:"parent,omitempty"`
	ForkedFrom  string `json:"forked_from,omitempty"`
	Resumes     int    `json:"resumes,omitempty"`
	Branch      int    `json:"branch,omitempty"`
	Iteration   int    `json:"iteration"` // generation of the run, from 1

	// Line is where the run stands in line of its queue; nil: in none. Only show reads it.
	Line *client.Line `json:"line,omitempty"`
}

// A Run is what a command knows about a run: its Session, and further data that was
// read.
type Run struct {
	Session

	Started, Checkpoint store.Time
	Live                bool  // its owner is alive
	Damage              error // what is wrong with the events that were read
	any                 bool  // something is recorded beyond its start
	RowOnly             bool  // not even its creation is recorded
	Empty               bool  // nothing is recorded beyond its start: all of its events were read
	Restart             bool  // it would be resumable otherwise
	Prompt              bool  // it waits for a person
	Declared            []string
	LastSeq             int64 // of the whole log
	Headers             map[string]string
	Env                 *durable.Environment
	Info                *durable.Info
}

// Place shows where a run stands: "2/4 charge 3/5".
func (s *Run) Place() (place, key, attempt string) {
	place = fmt.Sprint(s.Step)
	if s.Steps > 0 {
		place = fmt.Sprintf("%d/%d", s.Step, s.Steps)
	}
	if s.Attempt > 0 && s.Attempts > 1 {
		attempt = fmt.Sprintf("%d/%d", s.Attempt, s.Attempts)
	}
	return place, s.Key, attempt
}

// Terminal reports whether the run has ended.
func (s *Run) Terminal() bool { return store.Status(s.Status).Terminal() }

// newRun returns what the row of a run says. live has the executors that are alive.
func newRun(row *store.Run, live map[string]store.Executor) *Run {
	s := &Run{Session: Session{
		ID: row.ID, Workflow: row.Workflow, Version: row.Version, Status: string(row.Status), Paused: row.Paused, CancelAsked: row.CancelAsked && !row.Status.Terminal(),
		Code: row.Code, Reason: row.Reason, Recoverable: row.Recoverable && row.Status == store.Failed, Owner: row.Owner,
		Queue: row.Queue, Partition: row.Partition, Parent: row.Parent, ForkedFrom: row.ForkedFrom, Resumes: int(row.Resumes), Branch: int(row.Branch), Iteration: int(row.Generation) + 1,
		EndedAt: show.RFC3339(row.EndedAt),
	}, Started: row.StartedAt}
	if s.Started == 0 {
		s.Started = row.CreatedAt
	}
	s.StartedAt = show.RFC3339(s.Started)
	_, s.Live = live[row.Owner]
	s.Prompt = row.Status == store.Waiting && row.Code == durable.CodeApproval
	if row.Last != nil {
		s.Done, s.LastSeq = int(row.Last.Steps), row.Last.Seq
	}
	s.Resumable = resumable(row, s.Live)
	return s
}

// resumable reports whether Resume takes a run: one that failed, was interrupted, or
// was executed by a process that is gone. Whether a failure may be temporary matters
// only for the button on a page.
func resumable(row *store.Run, live bool) bool {
	if row.Paused || row.Code == durable.CodeImporting {
		return false
	}
	switch row.Status {
	case store.Interrupted:
		return true
	case store.Failed:
		return true
	case store.Running, store.Resuming:
		return !live
	}
	return false
}

// tailed is how many of the last events are read to see where a run stands.
const tailed = 24

// locate finds where a run stands by the last events of its lineage, oldest
// first, and by the steps that its workflow declares. It is a pure function, and
// costs the same for a run of ten steps and of ten thousand.
func (s *Run) locate(tail []store.Event, declared []string) {
	s.Steps, s.Declared = len(declared), declared
	s.Step = s.Done
	for i := range tail {
		if !Bookkeeping(tail[i].Type) {
			s.any = true
			s.Checkpoint = tail[i].At
		}
	}
	s.LastCheckpoint = show.RFC3339(s.Checkpoint)
	if s.Status == string(store.Completed) {
		s.Step = max(s.Done, s.Steps)
		return
	}
	for i := len(tail) - 1; i >= 0; i-- {
		ev := &tail[i]
		if ev.Key == "" {
			continue
		}
		s.at(ev, declared)
		return
	}
	if s.any && len(declared) > 0 && !s.Terminal() {
		s.Step, s.Key = 1, declared[0]
	}
}

// OtherInput says what helps a run that is parked because the code cannot read its input; empty:
// it is not. The same code cannot read it when the run is resumed.
func (s *Run) OtherInput(c *show.Commands) string {
	if !history.UnreadInput(s.Code, s.Reason) {
		return ""
	}
	return "Start another run with an input that fits, and end this one: " + c.Self("cancel", s.ID) +
		"\nIf the code should read it, mend that (" + host.Page("guides/changing-data.md") + "): the next program that calls durable.Recover continues the run."
}

// judge clears Resumable for a run that has nothing to resume from: only --force
// restarts it. tail is what locate was given.
func (s *Run) judge(tail []store.Event) {
	s.Empty = !s.any && len(tail) > 0 && tail[0].Seq == 1
	s.Restart = s.Empty && s.Resumable
	s.Resumable = s.Resumable && !s.Empty
}

// at sets where the run stands by an event about a call.
func (s *Run) at(ev *store.Event, declared []string) {
	place := slices.Index(declared, ev.Key) + 1
	if place == 0 {
		place = s.Done + 1
	}
	switch ev.Type {
	case store.AttemptFailed:
		s.Step, s.Key, s.Attempt, s.Attempts = place, ev.Key, int(ev.Attempt)+1, maxOf(ev)
	case store.StepCompleted, store.SignalReceived, store.TimerFired, store.ChildFinished, store.WaitTimedOut, store.WaitClosed:
		if i := slices.Index(declared, ev.Key); i >= 0 && i+1 < len(declared) && !s.Terminal() {
			s.Step, s.Key = i+2, declared[i+1]
			return
		}
		s.Step, s.Key = max(s.Done, slices.Index(declared, ev.Key)+1), ev.Key
	case store.StepFailed: // Done counts it
		s.Step, s.Key, s.Attempt = max(slices.Index(declared, ev.Key)+1, s.Done), ev.Key, int(ev.Attempt)
	default:
		s.Step, s.Key, s.Attempt = place, ev.Key, int(ev.Attempt)
	}
}

// maxOf returns how many attempts the step of a failed attempt has; 0: no limit, or not
// known.
func maxOf(ev *store.Event) int {
	var d struct {
		Max int `json:"max"`
	}
	_ = json.Unmarshal(ev.Data, &d)
	return d.Max
}

// Bookkeeping reports whether events of a type hold nothing that a resume could
// continue from: a history of such events alone is no more than its input.
func Bookkeeping(t store.Type) bool {
	switch t {
	case store.WorkflowCreated, store.InputReplaced, store.WorkflowStarted, store.RunResumed, store.RunClaimed, store.WorkflowFailed, store.WorkflowCancelled,
		store.WorkflowRecovered, store.FailuresReset, store.WorkflowPaused, store.WorkflowUnpaused, store.CancelReceived:
		return true
	}
	return false
}

// declared remembers which steps the workflows of a listing declare.
type declared map[string][]string

// of returns the steps that the workflow of a run declares, from the run's first event;
// all runs of one workflow and version declare the same.
func (d declared) of(ctx context.Context, st store.Store, row *store.Run) []string {
	key := row.Workflow + "\x00" + row.Version
	if names, known := d[key]; known {
		return names
	}
	var first struct {
		Declared []string `json:"declared"`
	}
	h, err := st.Load(ctx, row.ID, store.Cursor{All: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil
	}
	for ev, err := range h.Events {
		if err == nil {
			_ = json.Unmarshal(ev.Data, &first)
		}
		break
	}
	d[key] = first.Declared
	return first.Declared
}

// Differences says how the environment of this process differs from the one that
// started the run.
func (s *Run) Differences() []string {
	if s.Info == nil {
		return nil
	}
	return s.Info.Differences
}

// StatusText is the status as a listing shows it, with a word if the run cannot be
// read, is being cancelled, or is paused.
func (s *Run) StatusText() string {
	switch {
	case s.Corrupt, s.Code == "damaged":
		return s.Status + " (corrupt)"
	case s.CancelAsked:
		return s.Status + " (cancelling)"
	case s.Paused:
		return s.Status + " (paused)"
	}
	return s.Status
}
