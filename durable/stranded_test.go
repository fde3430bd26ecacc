package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-dev/holdfast/durable"
)

// A roll: the new version boots while the old one lives, and nothing is stuck.
// Then the old one leaves.
func TestRunsThatTheLastExecutorOfTheirVersionLeavesAreTold(t *testing.T) {
	for _, how := range []string{"is closed", "is killed"} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				waits := func(version string) *durable.Workflow[int, int] {
					return durable.Define("order", func(ctx context.Context, n int) (int, error) {
						if n == 0 {
							return 0, durable.Do(ctx, "s", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
						}
						return durable.Await[int](ctx, "go on")
					}, durable.Version(version))
				}
				w.boot(t, with(waits("1")))
				old, oldDisk := w.eng, w.disk
				for i := range 7 {
					start(t, w, waits("1"), fmt.Sprint("r", i), i%2)
				}
				reader := sdk.NewManualReader()
				w.boot(t, durable.Options{Workflows: []durable.Definition{waits("2")}, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))})
				pass(time.Minute)
				require.Empty(t, w.log.find("runs are stuck"))
				if how == "is closed" {
					require.NoError(t, old.Close())
				} else {
					oldDisk.cut()
					w.left.Go(func() { _ = old.Close() })
				}
				pass(w.lease + time.Minute)
				told := w.log.find("runs are stuck")
				require.Len(t, told, 1, "once")
				require.Contains(t, told[0], "WARN")
				require.Contains(t, told[0], "workflow=order version=1 runs=7")
				const gauge = "durable.run.unserved{run} durable.workflow.name=order,durable.workflow.version=1"
				values := collected(t, reader)
				require.EqualValues(t, 7, values[gauge], "%v", values)

				w.open(t, with(waits("1"))) // somebody follows the advice
				_, err := w.eng.Recover(context.Background())
				require.NoError(t, err)
				pass(time.Minute)
				require.Len(t, w.log.find("served again"), 1)
				require.NotContains(t, collected(t, reader), gauge)
				require.Len(t, w.log.find("runs are stuck"), 1)
			})
		})
	}
}

// The look costs one statement a beat, and more only when executors came or went.
func TestTheLookForStrandedRunsIsCheap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) { return durable.Await[int](ctx, "go on") })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(5 * time.Minute)
		before := w.disk.Counts()
		pass(time.Hour)
		after := w.disk.Counts()
		require.LessOrEqual(t, after.Statements-before.Statements, int64(2*3600/10+10))
	})
}
