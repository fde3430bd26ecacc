package cleaner

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Retention says which ended runs are deleted over time. durable.Retention has the
// contract.
type Retention struct {
	KeepFor      time.Duration
	KeepCount    int
	KeepFailed   bool
	OnlyArchived bool

	perWorkflow map[string]Retention
}

// Set makes per apply to the workflow of this name.
func (r *Retention) Set(workflow string, per *Retention) {
	if r.perWorkflow == nil {
		r.perWorkflow = map[string]Retention{}
	}
	r.perWorkflow[workflow] = *per
}

// Check returns why r cannot be used.
func (r *Retention) Check() error {
	if r.KeepFor < 0 || r.KeepCount < 0 {
		return fmt.Errorf("durable: Options.Retention: KeepFor and KeepCount must not be negative: %w", store.ErrInvalid)
	}
	for name, per := range r.perWorkflow {
		if per.KeepFor < 0 || per.KeepCount < 0 {
			return fmt.Errorf("durable: Options.Retention: workflow %q: KeepFor and KeepCount must not be negative: %w", name, store.ErrInvalid)
		}
	}
	return nil
}

// limits reports whether r deletes anything of a workflow it applies to.
func (r *Retention) limits() bool { return r.KeepFor > 0 || r.KeepCount > 0 }

// Active reports whether r deletes anything at all.
func (r *Retention) Active() bool {
	if r.limits() {
		return true
	}
	for _, per := range r.perWorkflow {
		if per.limits() {
			return true
		}
	}
	return false
}

// archived reports whether any part of r depends on what is archived.
func (r *Retention) archived() bool {
	for _, per := range r.perWorkflow {
		if per.OnlyArchived {
			return true
		}
	}
	return r.OnlyArchived
}

// of returns the retention that applies to a workflow.
func (r *Retention) of(workflow string) Retention {
	if per, ok := r.perWorkflow[workflow]; ok {
		return per
	}
	return *r
}
