package durable_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A start that finds the run taken is given up. Whoever has begun to look after
// it meanwhile must not wait for it for ever.
func TestMailForARunWhoseStartIsGivenUpHoldsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, durable.Options{Workflows: []durable.Definition{approval}})
		first := w.ctx()
		_, err := approval.Start(first, "r", "x")
		require.NoError(t, err)
		w.eventually("r", store.Waiting)

		second := w.serve(t, approval)
		gate := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			<-gate
			return forward()
		})
		started := make(chan error, 1)
		go func() {
			_, err := approval.Start(w.ctx(), "r", "x")
			started <- err
		}()
		synctest.Wait()
		require.NoError(t, durable.Signal(first, "r", "approve", true))
		synctest.Wait()
		close(gate)
		require.NoError(t, <-started, "it is the same run")
		w.eventually("r", store.Completed)
		require.NoError(t, second.Close())
	})
}
