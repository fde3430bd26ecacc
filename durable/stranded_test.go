package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
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

// A start cannot know whether a queue of that name will be served. Who starts a run on one that
// nobody serves hears of it soon, once, also if executors neither come nor go.
func TestARunOnAQueueThatNobodyServesIsTold(t *testing.T) {
	for _, who := range []string{"a worker", "a client"} {
		t.Run(who, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("mail", func(_ context.Context, n int) (int, error) { return n, nil })
				reader := sdk.NewManualReader()
				worker := durable.Options{Workflows: []durable.Definition{wf}, ServeQueues: []string{"emails", "letters"}}
				o, version := durable.Options{}, "" // a client does not know which
				if who == "a worker" {
					o, version = worker, "1"
				} else {
					w.boot(t, worker)
				}
				o.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
				if w.open(t, o); who == "a worker" {
					_, err := w.eng.Recover(w.ctx())
					require.NoError(t, err)
				}
				pass(10 * time.Minute)
				began := store.TimeOf(time.Now())
				for i := range 3 {
					_, err := durable.Ref[int, int]("mail").Start(w.ctx(), fmt.Sprint("r", i), i, durable.OnQueue("emials"))
					require.NoError(t, err)
				}
				_, err := durable.Ref[int, int]("mail").Start(w.ctx(), "right", 1, durable.OnQueue("emails"))
				require.NoError(t, err)
				pass(time.Hour)
				told := w.log.find("runs are stuck")
				require.Len(t, told, 1, "once")
				require.Contains(t, told[0], "WARN durable: runs are stuck: no live executor takes runs from their queue")
				require.Contains(t, told[0], "workflow=mail version="+version+" queue=emials runs=3")
				const next = "run a program with the code of workflow mail that takes runs from queue emials (Options.ServeQueues); if the name is wrong (it is served from emails, letters), cancel the run and start it again"
				require.Contains(t, told[0], next)
				gauge := "durable.run.unserved{run} durable.queue.name=emials,durable.workflow.name=mail,durable.workflow.version=" + version
				require.EqualValues(t, 3, collected(t, reader)[gauge], "%v", collected(t, reader))
				found, err := operate.On(w.eng).Stuck(w.ctx(), 0)
				require.NoError(t, err)
				require.Len(t, found, 3)
				require.Equal(t, durable.Stuck{
					RunID: "r0", Workflow: "mail", Version: version, Code: durable.CodeQueueNotServed, Next: next, Since: began,
					Reason: "nobody alive who serves workflow mail takes runs from queue emials",
				}, found[0])

				for i := range 3 { // somebody follows the advice
					require.NoError(t, w.eng.Cancel(w.ctx(), fmt.Sprint("r", i), "wrong queue"))
				}
				pass(15 * time.Minute)
				require.NotContains(t, collected(t, reader), gauge)
				require.Len(t, w.log.find("served again, or have ended"), 1)
			})
		})
	}
}

func TestOfVeryManyQueuesThatNobodyServesSomeAreNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("mail", func(_ context.Context, n int) (int, error) { return n, nil })
		reader := sdk.NewManualReader()
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, ServeQueues: []string{"emails"}, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))})
		for i := range 30 {
			_, err := wf.Start(w.ctx(), fmt.Sprint("r", i), i, durable.OnQueue(fmt.Sprint("tenant ", i)))
			require.NoError(t, err)
		}
		pass(time.Minute)
		require.Len(t, w.log.find("runs are stuck"), 21)
		require.Len(t, w.log.find("from more queues"), 1)
		require.EqualValues(t, 10, collected(t, reader)["durable.run.unserved{run} durable.workflow.name=mail,durable.workflow.version=1"])
	})
}
