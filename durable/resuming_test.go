package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// resume continues a run from where it is.
func resume(e *durable.Engine, ctx context.Context, id string) error {
	_, err := operate.On(e).Resume(ctx, id, operate.ResumeOptions{})
	return err
}

// goesOn checks that a parked run goes on: Recover has tried it with the code that is here, or it
// is resumed by hand.
func goesOn(t *testing.T, w *world, id string) {
	t.Helper()
	if w.row(id).Status == store.Interrupted {
		require.NoError(t, resume(w.eng, w.ctx(), id))
	}
}
