package durable

import (
	"context"
	"fmt"
	"time"
)

// Retention says which runs that have ended are deleted by and by, each as a
// whole, with its events. The zero value keeps everything; so does a workflow
// for which neither KeepFor nor KeepCount is set. Runs that have not ended are
// always kept, however old they are.
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
	// Every is how often the engine looks for runs to delete, the first time once it
	// is open; zero: DefaultRetentionEvery; negative: never, Engine.Clean does it.
	Every time.Duration
}

// DefaultRetentionEvery is how often runs are looked for that may be deleted.
const DefaultRetentionEvery = time.Hour

// check returns why r cannot be used.
func (r *Retention) check() error {
	if r.KeepFor < 0 || r.KeepCount < 0 {
		return fmt.Errorf("durable: Options.Retention: KeepFor and KeepCount must not be negative: %w", ErrInvalid)
	}
	for name, per := range r.PerWorkflow {
		if per.KeepFor < 0 || per.KeepCount < 0 {
			return fmt.Errorf("durable: Options.Retention: workflow %q: KeepFor and KeepCount must not be negative: %w", name, ErrInvalid)
		}
	}
	return nil
}

// limits reports whether r deletes anything of a workflow it applies to.
func (r *Retention) limits() bool { return r.KeepFor > 0 || r.KeepCount > 0 }

// active reports whether r deletes anything at all.
func (r *Retention) active() bool {
	if r.limits() {
		return true
	}
	for _, per := range r.PerWorkflow {
		if per.limits() {
			return true
		}
	}
	return false
}

// archived reports whether r asks anywhere what is archived.
func (r *Retention) archived() bool {
	for _, per := range r.PerWorkflow {
		if per.OnlyArchived {
			return true
		}
	}
	return r.OnlyArchived
}

// of returns what applies to a workflow.
func (r *Retention) of(workflow string) Retention {
	if per, ok := r.PerWorkflow[workflow]; ok {
		return per
	}
	return *r
}

// retentionLoop deletes runs as Options.Retention says, until the engine closes. It
// looks at once: a program that lives shorter than Every would never delete anything.
func (e *Engine) retentionLoop(ctx context.Context) {
	t := time.NewTicker(e.options.Retention.Every)
	defer t.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		if _, err := e.Clean(ctx, CleanOptions{}); err != nil && ctx.Err() == nil {
			e.log.Warn("durable: retention could not delete ended runs; it tries again", "retry_in_ms", millis(e.options.Retention.Every), "error", err)
		}
	}
}
