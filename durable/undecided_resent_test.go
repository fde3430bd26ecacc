package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A signal that its receiver is recording when the caller gives up may be sent again elsewhere,
// and that may come first. Then the receiver has recorded nothing, and takes the second one.
func TestASignalThatIsSentAgainWhileItsReceiverRecordsItIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Await[int](ctx, "n")
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		elsewhere, err := durable.Open(t.Context(), w.data.Handle(), durable.Options{Grace: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, elsewhere.Close()) })

		again := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if len(batch) == 1 && len(batch[0].Send) == 1 && len(batch[0].Events) == 1 {
				<-again // a slow store
			}
			return forward()
		})
		ctx, cancel := context.WithTimeout(w.ctx(), time.Second)
		defer cancel()
		err = durable.Signal(ctx, "r", "n", 5)
		var open *durable.UndecidedError
		require.ErrorAs(t, err, &open)
		require.NoError(t, elsewhere.Signal(t.Context(), "r", "n", 5, durable.SignalID(open.ID)))
		synctest.Wait()
		close(again)
		require.Equal(t, store.Completed, w.eventually("r", store.Completed).Status)
	})
}
