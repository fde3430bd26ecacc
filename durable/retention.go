package durable

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/cleaner"
)

// Retention says which ended runs are deleted over time, each as a whole, with its
// events. The zero value keeps everything; runs of a workflow for which neither KeepFor
// nor KeepCount is set are kept, too. Runs that have not ended are always kept, however
// old they are.
type Retention struct {
	// KeepFor is how long a run is kept after its end; zero: age does not matter.
	KeepFor time.Duration
	// KeepCount is how many ended runs of a workflow are kept, those that were
	// started last; zero: their number does not matter. With both, a run is
	// deleted when either says so.
	KeepCount int
	// KeepFailed: failed runs are kept, and not counted.
	KeepFailed bool
	// OnlyArchived: a run is kept until all of its log is archived. With
	// Options.Archive that is so in any case.
	OnlyArchived bool
	// PerWorkflow replaces the fields above for the workflows of these names; of
	// its values, PerWorkflow and Every are not used. A zero one keeps all runs
	// of its workflow.
	PerWorkflow map[string]Retention
	// Requests is how long the answer to a request that a program has made by SQL is kept in
	// its row (docs/guides/from-sql.md); zero: DefaultKeepRequests; negative: for ever. It is
	// not used in PerWorkflow.
	Requests time.Duration
	// Every is how often the engine looks for runs to delete, the first time once it
	// is open; zero: DefaultRetentionEvery; negative: never, so that only
	// operate.Operator.Clean deletes runs.
	Every time.Duration
}

// DefaultRetentionEvery is how often the engine looks for runs to delete, unless
// Retention.Every says otherwise.
const DefaultRetentionEvery = time.Hour

// DefaultKeepRequests is how long the answer to a request by SQL is kept, unless
// Retention.Requests says otherwise.
const DefaultKeepRequests = 7 * 24 * time.Hour

// rules returns r in the form that the cleaner uses.
func (r *Retention) rules() *cleaner.Retention {
	own := &cleaner.Retention{KeepFor: r.KeepFor, KeepCount: r.KeepCount, KeepFailed: r.KeepFailed, OnlyArchived: r.OnlyArchived}
	for name, per := range r.PerWorkflow {
		per.PerWorkflow = nil // not used
		own.Set(name, per.rules())
	}
	return own
}

// newCleaner returns the Cleaner that deletes ended runs from the engine's store.
func newCleaner(e *Engine) *cleaner.Cleaner {
	return &cleaner.Cleaner{
		Store: e.store, Log: e.log.Logger, Now: e.now, RunsOf: e.runsOf, StoreError: storeError,
		Retention: e.options.Retention.rules(), Archives: e.options.Archive != nil,
	}
}
