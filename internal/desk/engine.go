package desk

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/cleaner"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/schedules"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// Of returns the desk of a *durable.Engine. Package durable sets it.
var Of func(engine any) Engine

// Begin returns a durable.StartOption that has begin make the run exist; nil: the run
// begins from nothing. Package durable sets it.
var Begin func(begin func(ctx context.Context, s Start) error) any

// Declared returns what a durable.Definition says of itself: its name, its version and
// the names of its steps. Package durable sets it.
var Declared func(definition any) (workflow, version string, steps []string)

// A Start is a call of Workflow.Start whose run is to begin with a history.
type Start struct {
	Engine   any // *durable.Engine
	RunID    string
	Workflow string
	Type     reflect.Type // of the input
	Input    []byte       // as a payload, in clear
}

// An Engine is what an engine does for operators of its runs. It returns errors of the
// store as the store has given them.
type Engine interface {
	ID() string
	Store() store.Store
	Limits() store.Limits
	Sealer() *payload.Sealer
	Now() store.Time
	Closing() bool
	// OutsideFunction refuses a call with the context of a workflow function, where each replay
	// would make it again.
	OutsideFunction(ctx context.Context, call string) error
	Closed() <-chan struct{}
	// LogRun writes a line about a run to the log of the engine.
	LogRun(level slog.Level, row *store.Run, msg string, attrs ...slog.Attr)

	// View reads a run. When its history cannot be read, unreadable says why, and the row
	// is valid nevertheless. Both errors are as users of durable know them.
	View(ctx context.Context, id string) (v *history.View, unreadable, err error)
	// Runs yields all runs that match.
	Runs(ctx context.Context, f store.Filter) iter.Seq2[*store.Run, error]
	// Events yields the events of a run after a number, and then those to come, until
	// the run has ended.
	Events(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error]
	// Watch signals news about a run.
	Watch(id string) (changed <-chan struct{}, stop func())

	// Act carries out an act, and returns the branch that the run is on. row needs its
	// Last; if there is a cut, branches must be all that the run has.
	Act(ctx context.Context, row *store.Run, branches []store.Branch, a commit.Act) (int32, error)
	// Commit commits a change that belongs to no execution, and asks the store until it
	// has decided.
	Commit(ctx context.Context, change store.Change) error
	SealMessage(m *store.Message)
	// Number gives the events of a new run their numbers, totals and sums, and seals
	// their payloads.
	Number(id string, events []store.Event)
	// Ended is called once a run was brought here that may have ended.
	Ended(id string, status store.Status)
	NewRunID(workflow string, collisions int) string
	// AwaitClock waits until Now is right again after a suspend of this machine.
	AwaitClock(ctx context.Context) error
	// NextEpoch returns an epoch for a run that is imported; no two imports have the same.
	NextEpoch() int64
	CheckAttributes(map[string]string) error

	// ForkSpan begins the span of the start of a fork. keep notes it in the event with
	// which the fork begins; done is called once the fork is there.
	ForkSpan(ctx context.Context, fork, source *store.Run) (keep func(*history.Beginning), done func())

	// Steps returns the names that the code that is here gives the steps of a run; ok is
	// false if its code is not here.
	Steps(row *store.Run) (names []string, ok bool)
	// HasCode reports whether this engine would execute the run, at whatever version.
	HasCode(row *store.Run) bool
	Serves(workflow string) bool
	NotServed(row *store.Run) string
	// StepsOfLastCompleted returns how many steps the newest completed run of the same
	// workflow and version has made.
	StepsOfLastCompleted(ctx context.Context, row *store.Run) (int, error)
	// Rehearse replays a run with the code that is here, with these events.
	Rehearse(ctx context.Context, row *store.Run, events []store.Event, reset []string, repinned string, force bool) (Rehearsed, error)

	HasLiveOwner(ctx context.Context, row *store.Run) (bool, error)
	PastDeadline(row *store.Run) string
	// KeysToTake returns the exclusive keys that a run must take again when it goes on.
	KeysToTake(ctx context.Context, row *store.Run) ([]string, error)
	// Torn compares the row of a run with its events; nil: they agree.
	Torn(ctx context.Context, v *history.View) (*history.Finding, error)
	// RepairFirst carries out what Torn has found. repaired: the run must be read again.
	RepairFirst(ctx context.Context, row *store.Run) (repaired bool, err error)
	// Unheard returns the child if a run that waits for it will not hear of its end; nil:
	// it will hear, or has heard.
	Unheard(ctx context.Context, row *store.Run, child string) (*Unheard, error)

	// EachUnheard calls found for those of the runs that will not hear of the child that
	// their last event has started. It looks up many children at a time.
	EachUnheard(ctx context.Context, runs iter.Seq2[*store.Run, error], found func(*store.Run, *Unheard)) error

	// Recovered reports whether Recover was called here.
	Recovered() bool
	// Deferred are the ids of the runs that go on here when there is room.
	Deferred() map[string]bool
	// Unreadable are the runs of this executor whose rows cannot be read.
	Unreadable() []stuck.Run

	// Asked returns what a run asks of people. The error is as users of durable know it.
	Asked(ctx context.Context, row *store.Run) ([]history.Asked, error)
	// Signal sends a signal, whatever the run waits for, and returns its id.
	Signal(ctx context.Context, runID, name string, value any) (id string, err error)
	// StartJSON starts a run by the name of its workflow, or only enqueues it. options is a
	// []durable.StartOption.
	StartJSON(ctx context.Context, workflow, id string, input json.RawMessage, enqueue bool, options any) (string, error)

	// Input returns the type of the input of a workflow; nil if its code is not here.
	Input(workflow string) reflect.Type

	// Schedules are the acts on schedules; nil: the store keeps none.
	Schedules() *schedules.Acts

	// Clean deletes runs that have ended. retention is a *durable.Retention; nil: that of
	// the engine.
	Clean(ctx context.Context, o cleaner.Options, retention any) (cleaner.Result, error)
	Pause(ctx context.Context, id string, d history.MessageData) error
	// Claim claims a run to execute it here. v, if not nil, is its history as it was read
	// just before.
	Claim(ctx context.Context, id string, d *history.Claim, v *history.View) (claimed bool, err error)
	// GoOn has a run that has just become claimable executed here at once, if its code is
	// here.
	GoOn(ctx context.Context, id string)
	// Nudge makes the engine look for runs to claim.
	Nudge()
}

// Rehearsed is the result of a rehearsal.
type Rehearsed struct {
	Unknown string   // why it is not known whether the code fits
	Added   []string // calls of the code that are not recorded, matched by name
	Ended   bool     // the function returned, with Err
	Err     error
}

// Unheard is a child of whose end a run that waits for it will not hear.
type Unheard struct {
	Child  *store.Run // nil: it is not in the store
	Text   string
	Advice string                          // what lets the parent go on
	Tell   func(ctx context.Context) error // tells the parent of a child that has ended
}
