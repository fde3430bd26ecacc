package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A program that has set up no OpenTelemetry has none: nothing of a trace is
// recorded with the run, in whatever life.
func TestWithoutOpenTelemetryNothingOfATraceIsRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		kid := durable.Define("kid", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "one", func(context.Context) (int, error) { return n, nil })
		})
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			_, _ = durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 2}, func(context.Context) (int, error) { return 0, errors.New("no") })
			if _, err := kid.Run(ctx, durable.AutoID, n); err != nil {
				return 0, err
			}
			if _, err := durable.Await[int](ctx, "go on"); err != nil {
				return 0, err
			}
			return n, durable.Do(ctx, "hold", h.body)
		})
		o := with(wf, kid)
		w.boot(t, o)
		start(t, w, wf, "r", 1)
		w.eventually("r", store.Waiting)
		require.NoError(t, durable.Signal(w.ctx(), "r", "go on", 1))
		w.expire()
		w.reboot(t, o)
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		for _, id := range []string{"r", "r/kid"} {
			require.Empty(t, w.row(id).Trace)
			for _, ev := range w.events(id) {
				require.NotContains(t, string(ev.Data), `"segment"`)
				require.NotContains(t, string(ev.Data), `"trace`)
			}
		}
		require.NotContains(t, w.log.String(), "trace_id")
	})
}
