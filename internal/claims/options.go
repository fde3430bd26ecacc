package claims

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Runs are the executions of runs in this process.
type Runs interface {
	// Claiming is called before a claim, and done once the runs that it took have begun: what
	// is heard of one of them in between is not lost.
	Claiming() (done func())
	// Together is called before runs that were claimed together are begun, and done when all
	// have begun: their histories are then read together. loads is how many were neither read
	// before nor handed over by the claim.
	Together() (done func(loads int))
	// Begin begins to execute a run that was claimed, as this segment of its trace, nil if
	// it is not traced. v, if not nil, is its history as it was read just before the claim;
	// created, if not nil, is all its history but the event of the claim.
	Begin(row store.Run, s *telemetry.Segment, v *history.View, created *store.Event) Execution
	// Executing reports whether the run is executed here, and Here whether it is executed or
	// kept unloaded.
	Executing(id string) bool
	Here(id string) bool
	// Keeps reports whether the run, which this executor owns, is executed or kept unloaded
	// here under the epoch that it has. An execution of an earlier epoch has lost the
	// run, and is ended.
	Keeps(row *store.Run) bool
	// TakeUp executes a run that this executor owns.
	TakeUp(row *store.Run)
	// Changed is told that the run with this id has changed in the store.
	Changed(id string)
	// Closing reports whether the engine is closing. The channel of Ending is closed when
	// the engine ends its background work.
	Closing() bool
	Ending() <-chan struct{}
	// Background calls fn on a goroutine that the engine waits for when it closes; the context
	// ends when the engine does. It returns false, and calls nothing, if the engine is
	// closing already.
	Background(fn func(context.Context)) bool
}

// An Execution is a run that was claimed here, as it was begun.
type Execution struct {
	Row      *store.Run      // as claimed
	Ctx      context.Context // of the run, as claimed
	Loaded   <-chan struct{} // closed once its history has been read
	Recorded <-chan struct{} // closed once it has recorded something, or has ended
	Ended    <-chan struct{} // closed once it has ended
	// Parked says why its history could not be read; ok is false if that is not why it
	// ended. It may be called once it has ended.
	Parked func() (code, reason string, ok bool)
}

// A Program is the code that this process has.
type Program interface {
	// Has reports whether the code of a version of a workflow is here; an empty version
	// means any. HasWorkflow reports the same for a workflow at any version.
	Has(workflow, version string) bool
	HasWorkflow(workflow string) bool
	// Steps returns the steps that the code declares.
	Steps(workflow, version string) []string
	// OnBoot returns what recovery does with runs of this code.
	OnBoot(workflow, version string) Policy
	// VersionFor returns the version of the code that executes a claimed run; ok is false
	// if that code is not here.
	VersionFor(row *store.Run) (version string, ok bool)
	// Pins returns the version to which a claim pins the run; empty: none.
	Pins(row *store.Run) string
	// NotServed says why the run cannot be executed here.
	NotServed(row *store.Run) string
}

// A Policy says what recovery does with a run whose process died while it executed it.
type Policy int

// The policies.
const (
	Resume Policy = iota + 1 // continue it
	Fail                     // mark it failed, recoverable
	Leave                    // leave it as it is
)

// Options configure Claims.
type Options struct {
	Executor string // its id
	Serves   []store.Served
	Store    store.Store
	Heart    *heart.Heart
	Log      *runlog.Log
	Tracing  *telemetry.Tracing
	Runs     Runs
	Program  Program

	Lease time.Duration
	// MaxRuns limits how many claimed runs are executed at a time.
	MaxRuns int
	// RoomHere limits how many runs of each of these queues may hold a place in this process.
	RoomHere map[string]int
	// Queues are those from which runs are taken; none: every one.
	Queues []string
	// Declares: this program declares queues or schedules, which Recover stores.
	Declares bool
	// QuarantineAfter is how many strikes in a row quarantine a run.
	QuarantineAfter int
	// BootReason is the failure reason under the policy Fail.
	BootReason string
	// NoReconcileOnBoot keeps recovery from comparing rows with events.
	NoReconcileOnBoot bool
	// RerunLastStep makes a repair run the last declared step again.
	RerunLastStep bool

	// Now returns the store's time.
	Now func() store.Time
	// Sign makes the event of a claim say which executor claims.
	Sign func(*history.Claim)
	// Resumed counts a run that recovery continues.
	Resumed func(ctx context.Context, workflow string)
	// List yields the rows that match, page by page; it ends after an error.
	List func(context.Context, store.Filter) iter.Seq2[*store.Run, error]
	// Load reads a run with the events of its current generation and without its inbox.
	Load func(ctx context.Context, id string) (*store.History, error)
	// View reads a run and judges its history. Both errors are as users know them.
	View func(ctx context.Context, id string) (v *history.View, unreadable, err error)
	// Unreadable returns an error of package history about a run as users know it.
	Unreadable func(id string, err error) error
	// Act carries out an act, and returns the branch that the run is on.
	Act func(ctx context.Context, row *store.Run, branches []store.Branch, a commit.Act) (int32, error)
	// Reopen makes a parked run claimable if the code of this program fits its history, and
	// reports whether it does. It writes nothing if not.
	Reopen func(ctx context.Context, row *store.Run) (fits bool, err error)
	// EachUnheard calls found for those of the runs that will not hear of the child that
	// their last event has started. It ends with the first error of rows, or its own.
	EachUnheard func(ctx context.Context, rows iter.Seq2[*store.Run, error], found func(stuck.Run)) error
}

// ErrNotRegistered is the error that package durable has under the same name: the code of a
// run is not here.
var ErrNotRegistered = errors.New("durable: workflow not registered")

// executors returns the registered executors; its error is what recovery returns.
func (o *Options) executors(ctx context.Context) ([]store.Executor, error) {
	list, err := o.Store.Executors(ctx)
	if err != nil {
		return nil, fmt.Errorf("durable: recovery could not list executors: %w", commit.StoreError(err))
	}
	return list, nil
}

// others returns the ids of the executors that are alive, except this one.
func (o *Options) others(ctx context.Context) (map[string]bool, error) {
	list, err := o.executors(ctx)
	if err != nil {
		return nil, err
	}
	live := map[string]bool{}
	for _, x := range list {
		if x.Live && x.ID != o.Executor {
			live[x.ID] = true
		}
	}
	return live, nil
}

// hasLiveOwner reports whether a live executor has the run.
func (o *Options) hasLiveOwner(ctx context.Context, row *store.Run) (bool, error) {
	if row.Owner == "" {
		return false, nil
	}
	executors, err := o.Store.Executors(ctx)
	if err != nil {
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, commit.StoreError(err))
	}
	return slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && x.ID == row.Owner }), nil
}

// put is m[k] = v for a map that may be nil.
func put[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[k] = v
	return m
}
