package cli

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// A target is what a command acts on: the runs of a store, or those that a
// running program serves over HTTP. Errors are those of package durable, or a
// *failure.
type target interface {
	// sessions lists runs, newest first, and says how many match in all.
	sessions(ctx context.Context, q query) (list []Session, total int64, err error)
	// session reads one run.
	session(ctx context.Context, id string) (*Session, error)
	// lastInterrupted returns the run that was interrupted last.
	lastInterrupted(ctx context.Context) (*Session, error)
	// approvals are the waits for a person that a run has pending.
	approvals(ctx context.Context, id string) ([]durable.Approval, error)
	branches(ctx context.Context, id string) ([]durable.BranchInfo, error)
	stuck(ctx context.Context) ([]stuckRun, error)

	resume(ctx context.Context, id string, o durable.ResumeOptions) (durable.Plan, error)
	cancel(ctx context.Context, id, reason string) error
	pause(ctx context.Context, id, reason string) error
	unpause(ctx context.Context, id string) error
	signal(ctx context.Context, id, name string, value json.RawMessage, signalID string) error
	// fork makes a run of what another one has recorded, and returns its id; planFork
	// says what it would make.
	fork(ctx context.Context, id string, o durable.ForkOptions) (string, error)
	planFork(ctx context.Context, id string, o durable.ForkOptions) (durable.Plan, error)

	// start starts a run, and returns its id.
	start(ctx context.Context, workflow string, s newRun) (string, error)
	// answer answers an approval and returns the value that was sent.
	answer(ctx context.Context, to durable.Approval, a answerOf) (json.RawMessage, error)
	// tell returns the story of a run, and a builder that goes on with it.
	tell(ctx context.Context, id string) (*outline.Builder, *Session, error)

	// output returns what a completed run has returned, as JSON where it is.
	output(ctx context.Context, id string) (json.RawMessage, error)
	// changed returns the difference that has parked a run; nil: that was not why.
	changed(ctx context.Context, s *Session) *durable.DefinitionChangedError

	// Watch and History yield the events of a run; see durable.Engine.
	Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error]
	History(ctx context.Context, id string) iter.Seq2[store.Event, error]
	// value returns what an event carries, as JSON; nil: nothing that can be shown.
	value(id string, ev store.Event) json.RawMessage
	// standing says where a run stands.
	standing(ctx context.Context, id string) (durable.Standing, error)
}

// A query selects runs.
type query struct {
	resumable bool
	statuses  []store.Status
	workflows []string
	limit     int // 0: all
}

// A stuckRun cannot go on by itself.
type stuckRun struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Next     string `json:"next"`
}
