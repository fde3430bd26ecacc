package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A row that says waiting over a log that has ended is A1, too: nothing is waited
// for. An end is never just copied to the row. It is driven to and recorded again,
// and tells everybody whom it concerns; the end that the row missed stays readable
// on the branch before.
func TestARowThatWaitsOverALogThatHasEndedComesToItsEndAgain(t *testing.T) {
	for name, c := range map[string]struct {
		end    store.Type
		status store.Status
		fails  int // bodies of the step that fails: a failure is not stable, and is tried again
	}{
		"completed": {store.WorkflowCompleted, store.Completed, 0},
		"failed":    {store.WorkflowFailed, store.Failed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				done, failed := 0, 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "a", func(context.Context) error { done++; return nil }); err != nil {
						return 0, err
					}
					if c.end == store.WorkflowFailed {
						return 0, durable.Do(ctx, "b", func(context.Context) error { failed++; return durable.Permanent(errStock) })
					}
					return 7, durable.Publish(ctx, "p", 1)
				})
				parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) { return wf.Run(ctx, "r", 0) })
				w.serve(t, wf, parent)
				w.disk.cutBefore(c.end)
				_, err := parent.Start(w.ctx(), "p", 0)
				require.NoError(t, err)
				pass(time.Second)
				w.crash()
				w.expire()
				w.append("r", store.Event{Type: c.end}, map[string]any{"reason": "as it was"}, nil)
				w.tear("r", to(store.Waiting))

				rep := w.boot(t, with(wf, parent))
				require.Len(t, rep.Repaired, 1)
				require.Equal(t, "A1: Status awaiting_input but no pending interaction", rep.Repaired[0].Reason)
				w.eventually("r", c.status)
				w.eventually("p", c.status)
				require.Equal(t, 1, done, "what was completed is not done again")
				require.Equal(t, c.fails, failed)
				require.Empty(t, verify(t, w, "r").Findings)
				var left []store.Type
				for ev, err := range operate.On(w.eng).LeftBehind(w.ctx(), "r", rep.Repaired[0].NewBranch) {
					require.NoError(t, err)
					left = append(left, ev.Type)
				}
				require.Contains(t, left, c.end, "it stays readable")
			})
		})
	}
}
