package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// StartJSON is Workflow.Start for a caller that has a name and JSON instead of
// Go types, such as an HTTP handler, and returns the id of the run. When this
// engine has the workflow's code the input must be what the function takes: no
// unknown field, nothing behind the value. It is then recorded as Start records
// it, so that starting the run either way is the same start. Else the input is
// recorded as it is, for whoever serves the workflow. An empty input is the zero
// value.
//
// Errors: ErrNotRegistered when nobody alive serves the workflow; ErrInvalid for
// an input that is none; those of Start.
func (e *Engine) StartJSON(ctx context.Context, workflow, id string, input json.RawMessage, o ...StartOption) (string, error) {
	def := e.program.defs.find(workflow, "")
	if def == nil {
		def = &definition{name: workflow, input: reflect.TypeFor[json.RawMessage]()}
		if err := def.check(); err != nil {
			return "", err
		}
		if !e.watchers.somebodyServes(ctx, &store.Run{Workflow: workflow}) {
			return "", fmt.Errorf("durable: starting run %q: nobody alive serves workflow %q: %w", id, workflow, ErrNotRegistered)
		}
	}
	env, err := e.sealer.EncodeJSON(def.input, input)
	if err != nil {
		return "", fmt.Errorf("durable: starting run %q of workflow %s: the input is no %s: %w", id, workflow, def.input, err)
	}
	var opts startOptions
	if err := opts.apply(ctx, e, id, o); err != nil {
		return "", fmt.Errorf("durable: starting run %q of workflow %s: %w", id, workflow, err)
	}
	opts.input = def.input
	if id != AutoID {
		_, _, _, err := e.start(ctx, def, id, env, &opts)
		return id, err
	}
	for tries := 0; ; tries++ {
		_, created, err := e.create(ctx, def, generateID(workflow, e.now().Time(), tries), env, &opts)
		if errors.Is(err, store.ErrExists) && tries < 8 {
			continue // somebody has this suffix: a longer one
		}
		return created, err
	}
}

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

// Form returns the stored form of the definition.
func (w *Workflow[I, O]) Form() Form {
	return Form{Workflow: w.def.name, Version: w.def.version, Declared: slices.Clone(w.def.steps)}
}

// Form returns what the history of a run tells of its workflow: the form that
// was declared when it was created, and the calls it has made since.
func (e *Engine) Form(ctx context.Context, id string) (Form, error) {
	h, err := e.store.Load(ctx, id, store.Cursor{})
	if err != nil {
		return Form{}, fmt.Errorf("durable: run %s: %w", id, err)
	}
	f := Form{Workflow: h.Run.Workflow, Version: h.Run.Version}
	seen := map[string]bool{}
	for ev, err := range h.Events {
		if err != nil {
			return Form{}, fmt.Errorf("durable: run %s: %w", id, err)
		}
		if ev.Type == store.WorkflowCreated || ev.Type == store.WorkflowStarted {
			d, err := history.DataOf(&ev)
			if err != nil {
				return Form{}, &DamagedError{RunID: id, Seq: ev.Seq, Err: err}
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
func (f Form) Options() []DefineOption {
	o := []DefineOption{Version(f.Version)}
	if f.Declared != nil {
		o = append(o, Steps(f.Declared...))
	}
	return o
}
