package durable_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Recovery reads a thousand rows at a time, and what it does to them takes them
// out of the listing that it reads.
func TestRecoverReachesEveryRunHoweverManyThereAre(t *testing.T) {
	const n = 2100
	for name, policy := range map[string]durable.BootPolicy{"resume": durable.ResumeOnBoot, "fail": durable.FailOnBoot, "leave": durable.LeaveOnBoot} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
				for i := range n {
					seed(t, w, store.Run{ID: fmt.Sprint("r", i), Workflow: "w", Version: "1", Status: store.Running, Owner: "gone"}, store.Event{Type: store.WorkflowStarted})
				}
				rep := w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, OnBoot: policy})
				reported := map[durable.BootPolicy][]string{durable.ResumeOnBoot: rep.Resumed, durable.FailOnBoot: rep.Failed, durable.LeaveOnBoot: rep.Left}[policy]
				require.Len(t, slices.Concat(reported, rep.Deferred), n)
				require.Empty(t, rep.Stuck)
				pass(time.Minute)
				synctest.Wait()
				want := map[durable.BootPolicy]store.Status{durable.ResumeOnBoot: store.Completed, durable.FailOnBoot: store.Failed, durable.LeaveOnBoot: store.Running}[policy]
				counts, err := w.data.Count(context.Background(), store.Filter{}, store.ByStatus)
				require.NoError(t, err)
				require.Equal(t, map[string]int64{string(want): n}, counts)

				// Once more, by the same program: there is nothing left to be done.
				w.log.clear()
				again, err := w.eng.Recover(context.Background())
				require.NoError(t, err)
				require.Empty(t, again.Failed)
				require.Empty(t, again.Resumed)
				require.Len(t, w.log.find("Recovery complete: 0 workflows marked failed, 0 approvals restored."), 1)
			})
		})
	}
}
