package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestWhatIsSentWhileTheStoreIsDownIsRefusedAsUnavailable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "go on") })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		for _, reads := range []bool{false, true} {
			w.disk.tamperCalls(func(string, func() error) error { return errDisk })
			if !reads {
				w.disk.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, errDisk) })
			}
			require.ErrorIs(t, w.eng.Cancel(w.ctx(), "r", "enough"), durable.ErrUnavailable)
			if !reads {
				require.ErrorIs(t, durable.Signal(w.ctx(), "r", "go on", 1), durable.ErrUnavailable)
				require.ErrorIs(t, w.eng.Pause(w.ctx(), "r", "enough"), durable.ErrUnavailable)
			}
			w.disk.tamper(nil)
		}
		w.disk.tamperCalls(nil)
		require.ErrorIs(t, durable.Signal(w.ctx(), "none", "go on", 1), durable.ErrNotFound)
		require.NotErrorIs(t, durable.Signal(w.ctx(), "none", "go on", 1), durable.ErrUnavailable)
	})
}

func TestARunKnowsItsIDAndItsWorkflow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var seen []string
		note := func(ctx context.Context) {
			seen = append(seen, durable.RunID(ctx)+" "+durable.WorkflowName(ctx))
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			note(ctx)
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { note(ctx); return 0, nil })
			if _, err := f.Wait(ctx); err != nil {
				return 0, err
			}
			return 0, durable.Do(ctx, "s", func(ctx context.Context) error { note(ctx); return nil })
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, []string{"r w", "r w", "r w"}, seen)
		note(w.ctx())
		require.Equal(t, " ", seen[3], "outside a run")
	})
}
