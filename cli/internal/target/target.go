// Package target is what a terminal command acts on: the store or the server that
// flags, the environment or a profile name.
//
//	target.go   the interface Target, and what its methods take and return
//	choose.go   which store or server a command acts on
//	profile.go  the profiles of durable.yaml
//	local.go    a Target on a store, through an engine
//	remote.go   a Target on a server, through package client
//	queues.go   both, on queues; schedules.go on schedules
//	many.go     acts of both on many runs
//	session.go  where a run stands: a pure function of its row and its last events
//	readall.go  reads that for a list of runs
//	serving.go  which program has the code of a run
package target

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A Target is what a command acts on: the runs of a store, or those that a
// running program serves over HTTP. Errors are those of package durable, or a
// *show.Failure.
type Target interface {
	// Runs lists runs, newest first, and says how many match in all.
	Runs(ctx context.Context, q Query) (list []Run, total int64, err error)
	// Run reads one run.
	Run(ctx context.Context, id string) (*Run, error)
	// LastInterrupted returns the run that was interrupted last.
	LastInterrupted(ctx context.Context) (*Run, error)
	// Approvals returns the questions that a run has open.
	Approvals(ctx context.Context, id string) ([]durable.Approval, error)
	// Branches returns the branches of a run's history.
	Branches(ctx context.Context, id string) ([]operate.BranchInfo, error)
	// Stuck lists the runs that cannot go on without help.
	// At most limit of each kind; 0: all. A server has a limit of its own.
	Stuck(ctx context.Context, limit int) ([]Stuck, error)

	// Resume and the acts below it do what the methods of durable.Engine do.
	Resume(ctx context.Context, id string, o operate.ResumeOptions) (operate.Plan, error)
	// ResumeAll resumes the runs that w selects, or says what that would do, and tells each of them.
	ResumeAll(ctx context.Context, w Which, o operate.ResumeOptions, each func(id string, refused error)) error
	Cancel(ctx context.Context, id, reason string) error
	Pause(ctx context.Context, id, reason string) error
	Unpause(ctx context.Context, id string) error
	Signal(ctx context.Context, id, name string, value json.RawMessage, signalID string) error
	// Fork makes a run from what another one has recorded, and returns its id;
	// PlanFork says what it would make.
	Fork(ctx context.Context, id string, o operate.ForkOptions) (string, error)
	PlanFork(ctx context.Context, id string, o operate.ForkOptions) (operate.Plan, error)

	// Queues returns the queues of these names, or all; durable.ErrNotFound for a name
	// of which there is none.
	Queues(ctx context.Context, names ...string) ([]client.Queue, error)
	PauseQueue(ctx context.Context, name, reason string) error
	ResumeQueue(ctx context.Context, name string) error
	// Retry lets a failed run of a queue get in line again, or says what that would do.
	// RetryAll does the same for all failed runs of a queue, and tells each of them.
	Retry(ctx context.Context, id string, dry bool) (operate.Plan, error)
	RetryAll(ctx context.Context, queue string, dry bool, each func(id string, refused error)) error

	// Schedules returns the schedules of these names, or all; durable.ErrNotFound for one
	// name of which there is none. The acts do what those of operate.Operator do.
	Schedules(ctx context.Context, names ...string) ([]client.Schedule, error)
	PauseSchedule(ctx context.Context, name, reason string) error
	ResumeSchedule(ctx context.Context, name string) error
	TriggerSchedule(ctx context.Context, name, key string) (runID string, err error)
	DeleteSchedule(ctx context.Context, name string) error
	BackfillSchedule(ctx context.Context, name string, from, to time.Time, dry bool) (client.Backfill, error)

	// Start starts a run, and returns its id.
	Start(ctx context.Context, workflow string, s NewRun) (string, error)
	// Answer answers an approval and returns the value that was sent.
	Answer(ctx context.Context, to durable.Approval, a Answer) (json.RawMessage, error)
	// Outline reads a whole run: a builder that has its outline and takes further
	// events, and where the run stands.
	Outline(ctx context.Context, id string) (*outline.Builder, *Run, error)

	// Output returns the output of a completed run, as JSON; nil: it has none.
	Output(ctx context.Context, id string) (json.RawMessage, error)
	// Difference returns the change of code that parked a run; nil: that was not why.
	Difference(ctx context.Context, s *Run) *durable.DefinitionChangedError

	// Watch and History yield the events of a run; see durable.Engine.
	Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error]
	History(ctx context.Context, id string) iter.Seq2[store.Event, error]
	// Value returns what an event carries, as JSON; nil: nothing that can be shown.
	Value(id string, ev store.Event) json.RawMessage
	// Standing says where a run stands.
	Standing(ctx context.Context, id string) (operate.Standing, error)

	// CheckpointOf returns the number of the checkpoint with the outcome of a step,
	// and FirstCheckpoint that of the first one after which a history can be cut; 1,
	// its beginning, if there is none.
	CheckpointOf(ctx context.Context, id, step string) (int64, error)
	FirstCheckpoint(ctx context.Context, id string) int64

	// Code returns the command that executes a run where its code is: in this program,
	// or in the one that started it. It is empty when no such program is recorded.
	Code(ctx context.Context, r *Run) string
	// Who says which process an executor is; empty: not known.
	Who(ctx context.Context, owner string) string
}

// A Query selects runs.
type Query struct {
	Resumable bool
	Statuses  []store.Status
	Workflows []string
	Queues    []string
	Oldest    bool // first; else the newest
	Limit     int  // 0: all
}

// A Stuck run cannot go on without help.
type Stuck struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Next     string `json:"next"`
	Since    string `json:"since,omitempty"` // when it last moved

	Moved store.Time `json:"-"` // Since
}

// A NewRun is a run to be started. Its fields are those of client.StartRequest.
type NewRun struct {
	ID         string // "" to have one generated
	Input      json.RawMessage
	Exclusive  []string // keys that no other run may hold meanwhile
	Attributes map[string]string

	Queue, Partition string
	Priority         int
	Dedup            string
	Delay, Deadline  time.Duration // 0: none
}

// Waits reports whether the start only puts the run in line.
func (n *NewRun) Waits() bool { return n.Queue != "" || n.Delay > 0 }

// options returns what n says as a caller of Start would.
func (n *NewRun) options() []durable.StartOption {
	o := []durable.StartOption{durable.Exclusive(n.Exclusive...), durable.Priority(n.Priority), durable.Delay(n.Delay)}
	for _, one := range []struct {
		value  string
		option func(string) durable.StartOption
	}{{n.Queue, durable.OnQueue}, {n.Partition, durable.Partition}, {n.Dedup, durable.Dedup}} {
		if one.value != "" {
			o = append(o, one.option(one.value))
		}
	}
	if len(n.Attributes) > 0 {
		o = append(o, durable.Attributes(n.Attributes))
	}
	if n.Deadline != 0 {
		o = append(o, durable.Deadline(n.Deadline))
	}
	return o
}

// An Answer is an answer to an approval.
type Answer struct {
	Yes        bool
	Reason, By string
	Value      json.RawMessage // the whole answer; nil: built from the other fields
}

// verdict returns the value that the workflow gets.
func (a *Answer) verdict(to *durable.Approval) (json.RawMessage, error) {
	if a.Value != nil {
		return a.Value, nil
	}
	v, err := to.Verdict(a.Yes, a.By, a.Reason)
	if err != nil {
		return nil, &show.Failure{Code: "needs_value", Exit: show.ExitUsage, Message: fmt.Sprintf("%s does not wait for yes or no.", to.Key), Next: "Give the whole answer: --value " + show.Quote(show.OrElse(string(to.Sample), "JSON")), Err: err}
	}
	return v, nil
}
