package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/store"
)

// startJSON starts the workflow of this name with a JSON input, for
// operate.Operator.StartJSON and EnqueueJSON.
func (e *Engine) startJSON(ctx context.Context, workflow, id string, input json.RawMessage, enqueue bool, o []StartOption) (string, error) {
	if err := outsideFunction(ctx, "a start of workflow "+workflow+" by its name"); err != nil {
		return "", err
	}
	var opts startOptions
	opts.line.enqueue = enqueue
	if err := opts.apply(ctx, e, id, o); err != nil {
		return "", fmt.Errorf("durable: starting run %q of workflow %s: %w", id, workflow, err)
	}
	def := e.program.defs.find(workflow, "")
	if def == nil {
		def = &definition{name: workflow, input: reflect.TypeFor[json.RawMessage]()}
		if err := def.check(); err != nil {
			return "", err
		}
		if !opts.line.waits() && !e.watchers.somebodyServes(&store.Run{Workflow: workflow}, func() ([]store.Executor, error) { return e.store.Executors(ctx) }) {
			return "", fmt.Errorf("%w: nobody alive serves workflow %q, and run %q was not started: start a program that does", ErrNotRegistered, workflow, id)
		}
	}
	env, err := e.sealer.EncodeJSON(def.input, input)
	if err != nil {
		return "", fmt.Errorf("durable: starting run %q of workflow %s: the input is no %s: %w", id, workflow, def.input, err)
	}
	opts.input = def.input
	if opts.tx != nil {
		return opts.startIn(ctx, e, def, id, env)
	}
	if id != AutoID {
		_, _, _, err := e.start(ctx, def, id, env, &opts)
		return id, err
	}
	_, id, err = opts.startAuto(ctx, e, def, env)
	return id, err
}
