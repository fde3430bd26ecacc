package durable_test

import (
	"context"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// resume continues a run from where it is.
func resume(e *durable.Engine, ctx context.Context, id string) error {
	_, err := operate.On(e).Resume(ctx, id, operate.ResumeOptions{})
	return err
}
