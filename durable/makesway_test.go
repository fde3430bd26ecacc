package durable_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The store has the run as paused, and its execution has not come to its end: a message
// that comes in between is for neither, unless somebody looks again.
func TestACancelThatComesWhileAPausedRunMakesWayIsCarriedOutAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, time.Hour) }, durable.KeepLoaded())
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		proceed := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			if slices.ContainsFunc(batch, func(c store.Change) bool {
				return slices.ContainsFunc(c.Events, func(ev store.Event) bool { return ev.Type == store.WorkflowPaused })
			}) {
				<-proceed
			}
			return errs
		})
		paused := make(chan error, 1)
		go func() { paused <- w.eng.Pause(w.ctx(), "r", "hold on") }()
		synctest.Wait()
		require.True(t, w.row("r").Paused)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		synctest.Wait() // whoever is told of it has looked
		close(proceed)
		require.NoError(t, <-paused)
		pass(100 * time.Millisecond)
		require.Equal(t, store.Cancelled, w.row("r").Status)
	})
}
