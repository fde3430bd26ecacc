package durable_test

import (
	"context"

	"github.com/holdfast-dev/holdfast/durable"
)

// resume continues a run from where it is.
func resume(e *durable.Engine, ctx context.Context, id string) error {
	_, err := e.Resume(ctx, id, durable.ResumeOptions{})
	return err
}
