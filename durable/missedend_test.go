package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A store that writes a row and its events apart may have the end of a run in the
// log and not in the row. The function is replayed and comes to the same end, which
// is then recorded with all that belongs to it (what tells a parent, frees keys,
// ends children); nothing that was done is done again, and no cancel is forgotten.
func TestAnEndThatTheRowMissedIsRecordedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		end    store.Type
		status store.Status
	}{
		"completed": {store.WorkflowCompleted, store.Completed},
		"failed":    {store.WorkflowFailed, store.Failed},
		"cancelled": {store.WorkflowCancelled, store.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "a", func(context.Context) error { bodies++; return nil }); err != nil {
						return 0, err
					}
					if c.end == store.WorkflowCancelled {
						return 0, durable.Sleep(ctx, time.Hour)
					}
					if c.end == store.WorkflowFailed {
						return 0, errStock
					}
					return 7, nil
				})
				w.serve(t, wf)
				w.disk.cutBefore(c.end)
				_, err := wf.Start(w.ctx(), "r", 0, durable.Exclusive("desk"))
				require.NoError(t, err)
				pass(time.Second)
				if c.end == store.WorkflowCancelled {
					// The process may die before its Cancel has returned.
					if err := w.eng.Cancel(w.ctx(), "r", "no more"); err != nil {
						require.ErrorIs(t, err, store.ErrClosed)
					}
					pass(time.Second)
				}
				w.crash()
				w.expire()
				require.False(t, w.row("r").Status.Terminal())
				w.append("r", store.Event{Type: c.end}, map[string]any{"reason": "as it was"}, nil)

				w.boot(t, with(wf))
				w.eventually("r", c.status)
				require.Equal(t, 1, bodies)
				require.Empty(t, verify(t, w, "r").Findings)
				require.NoError(t, tryKeys(w, "desk"))
				out, err := wait(t, w, wf, "r")
				switch c.status {
				case store.Completed:
					require.NoError(t, err)
					require.Equal(t, 7, out)
				case store.Failed:
					require.ErrorContains(t, err, "out of stock")
				default:
					require.ErrorContains(t, err, "cancelled: no more")
				}
			})
		})
	}
}
