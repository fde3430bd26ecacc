package operate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/payload"
)

// StartJSON is Workflow.Start for a caller that has a name and JSON instead of
// Go types, such as an HTTP handler, and returns the id of the run. When this
// engine has the workflow's code the input must be what the function takes: no
// unknown field, nothing after the value. It is then recorded as Start records
// it, so that starting the run either way is the same start. Else the input is
// recorded as it is, for whoever serves the workflow. An empty input is the zero
// value.
//
// Errors: durable.ErrNotRegistered when nobody alive serves the workflow, unless an option
// only puts the run in line (see EnqueueJSON); durable.ErrInvalid for an input that is none;
// those of Start.
func (op *Operator) StartJSON(ctx context.Context, workflow, id string, input json.RawMessage, o ...durable.StartOption) (string, error) {
	return op.desk.StartJSON(ctx, workflow, id, input, false, o)
}

// EnqueueJSON is Workflow.Enqueue for a caller that has a name and JSON; see StartJSON. The
// run is recorded whether or not anybody serves its workflow at the moment, so that a caller
// need not wait for programs that are being replaced. If nobody ever does, it is listed as
// stuck.
//
// Errors are those of StartJSON.
func (op *Operator) EnqueueJSON(ctx context.Context, workflow, id string, input json.RawMessage, o ...durable.StartOption) (string, error) {
	return op.desk.StartJSON(ctx, workflow, id, input, true, o)
}

// CheckInput says why a run of a workflow whose code is here cannot be started with this
// input, for a caller that would not guess: here no input is refused, unless null is a value
// of the input's type. zero is the zero value of that type as JSON, to show what an input
// looks like; nil if it says nothing.
//
// Errors: durable.ErrNotRegistered when the code is not in this engine; durable.ErrInvalid;
// those of a codec.
func (op *Operator) CheckInput(workflow string, input json.RawMessage) (zero json.RawMessage, err error) {
	t := op.desk.Input(workflow)
	if t == nil {
		return nil, fmt.Errorf("%w: the code of workflow %q is not here", durable.ErrNotRegistered, workflow)
	}
	zero = payload.Sample(t)
	switch {
	case len(input) == 0 && !payload.MayBeNothing(t):
		return zero, fmt.Errorf("durable: workflow %s takes a %s, and no input is given: %w", workflow, t, durable.ErrInvalid)
	}
	if _, err := op.sealer.EncodeJSON(t, input); err != nil {
		return zero, fmt.Errorf("durable: the input is no %s: %w", t, err)
	}
	return zero, nil
}
