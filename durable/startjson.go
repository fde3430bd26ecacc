package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
		if !e.somebodyServes(ctx, &store.Run{Workflow: workflow}) {
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
