package operate

import (
	"context"
	"encoding/json"

	"github.com/holdfast-dev/holdfast/durable"
)

// StartJSON is Workflow.Start for a caller that has a name and JSON instead of
// Go types, such as an HTTP handler, and returns the id of the run. When this
// engine has the workflow's code the input must be what the function takes: no
// unknown field, nothing after the value. It is then recorded as Start records
// it, so that starting the run either way is the same start. Else the input is
// recorded as it is, for whoever serves the workflow. An empty input is the zero
// value.
//
// Errors: durable.ErrNotRegistered when nobody alive serves the workflow;
// durable.ErrInvalid for an input that is none; those of Start.
func (op *Operator) StartJSON(ctx context.Context, workflow, id string, input json.RawMessage, o ...durable.StartOption) (string, error) {
	return op.desk.StartJSON(ctx, workflow, id, input, o)
}
