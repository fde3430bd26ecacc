package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A run whose process is gone and whose code nobody alive has does not stay
// "running": it is parked, reported, and goes on as its policy says once it is served.
func TestARunThatNobodyCanExecuteDoesNotStayRunning(t *testing.T) {
	for _, policy := range []durable.BootPolicy{durable.ResumeOnBoot, durable.FailOnBoot, durable.LeaveOnBoot} {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
				if _, err := durable.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return 0, err
				}
				return 1, durable.Do(ctx, "two", h.body)
			}, durable.Version("1"), durable.OnBoot(policy))
			w.serve(t, wf)
			_, err := wf.Start(w.ctx(), "r", 1)
			require.NoError(t, err)
			pass(1)
			w.crash()
			w.expire()
			other := durable.Define("other", func(context.Context, int) (int, error) { return 0, nil })
			rep := w.boot(t, durable.Options{Workflows: []durable.Definition{other}, OnBoot: policy})
			require.Len(t, rep.Stuck, 1)
			require.Equal(t, "r", rep.Stuck[0].RunID)
			require.Equal(t, durable.CodeNotRegistered, rep.Stuck[0].Code)
			row := w.row("r")
			require.Equal(t, store.Interrupted, row.Status)
			require.Equal(t, durable.CodeNotRegistered, row.Code)
			require.Contains(t, row.Reason, "order")

			h.open = true
			rep = w.reboot(t, durable.Options{Workflows: []durable.Definition{wf}})
			switch policy {
			case durable.ResumeOnBoot:
				require.Equal(t, []string{"r"}, rep.Resumed)
				w.eventually("r", store.Completed)
			case durable.FailOnBoot:
				require.Equal(t, []string{"r"}, rep.Failed)
				row = w.row("r")
				require.Equal(t, store.Failed, row.Status)
				require.Equal(t, "Server restarted while workflow was running", row.Reason)
				require.True(t, row.Recoverable)
			default:
				require.Equal(t, []string{"r"}, rep.Left)
			}
		})
	}
}
