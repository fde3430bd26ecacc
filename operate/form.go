package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Form is what can be known of a workflow without its code: the stored form of
// a definition. It is kept with each run when the run is created, and reads back
// as it was.
type Form struct {
	Workflow string `json:"workflow"`
	Version  string `json:"version"`
	// Declared are the names given to Steps, in order; nil: none were declared.
	Declared []string `json:"declared,omitempty"`
	// Observed are the keys of the calls that a run has recorded, in order of
	// their first record; nil in the form of a definition.
	Observed []string `json:"observed,omitempty"`
}

// FormOf returns the stored form of a definition, such as what durable.Define returns.
func FormOf(d durable.Definition) Form {
	workflow, version, steps := desk.Declared(d)
	return Form{Workflow: workflow, Version: version, Declared: slices.Clone(steps)}
}

// Form returns what the history of a run tells of its workflow: the form that
// was declared when it was created, and the calls it has made since.
//
// Errors: durable.ErrNotFound; durable.ErrUnavailable.
func (op *Operator) Form(ctx context.Context, id string) (Form, error) {
	h, err := op.store.Load(ctx, id, store.Cursor{})
	if err != nil {
		return Form{}, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	f := Form{Workflow: h.Run.Workflow, Version: h.Run.Version}
	seen := map[string]bool{}
	for ev, err := range h.Events {
		if err != nil {
			return Form{}, fmt.Errorf("durable: run %s: %w", id, err)
		}
		if ev.Type == store.WorkflowCreated || ev.Type == store.WorkflowStarted {
			d, err := history.Of[history.Beginning](&ev)
			if err != nil {
				return Form{}, &durable.DamagedError{RunID: id, Seq: ev.Seq, Err: err}
			}
			if ev.Type == store.WorkflowCreated || d.Generation != 0 {
				f.Declared = d.Declared
			}
		}
		if ev.Key != "" && ev.Type != store.Patched && !seen[ev.Key] {
			seen[ev.Key] = true
			f.Observed = append(f.Observed, ev.Key)
		}
	}
	return f, nil
}

// Options turns a stored form back into the options of Define that declare it.
func (f Form) Options() []durable.DefineOption {
	o := []durable.DefineOption{durable.Version(f.Version)}
	if f.Declared != nil {
		o = append(o, durable.Steps(f.Declared...))
	}
	return o
}
