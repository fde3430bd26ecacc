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

func TestAWatcherFirstSeesWhatIsPendingAndThenEverythingInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (bool, error) {
			if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
				return false, err
			}
			ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship?"))
			if err != nil {
				return false, err
			}
			return ok, durable.Do(ctx, "after", func(context.Context) error { return nil })
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		w.reboot(t, o) // who watches from now on comes late

		var live []store.Event
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ev, err := range w.eng.Watch(context.Background(), "r", w.row("r").Last.Seq) {
				require.NoError(t, err)
				live = append(live, ev)
			}
		}()
		synctest.Wait()
		require.Len(t, live, 1)
		require.Equal(t, store.WaitRequested, live[0].Type)
		require.Contains(t, string(live[0].Data), "Ship?")
		require.NoError(t, durable.Signal(w.ctx(), "r", "approve", true))
		<-done
		var types []store.Type
		for _, ev := range live {
			types = append(types, ev.Type)
		}
		require.Equal(t, []store.Type{store.WaitRequested, store.RunClaimed, store.SignalReceived, store.StepCompleted, store.WorkflowCompleted}, types)

		// From the beginning, after the end.
		var seqs []int64
		for ev, err := range w.eng.Watch(context.Background(), "r", 0) {
			require.NoError(t, err)
			seqs = append(seqs, ev.Seq)
		}
		require.Len(t, seqs, len(w.events("r")))
	})
}

func TestAWatcherGoesOnWhereItWasAndEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for range n {
				if err := durable.Sleep(ctx, time.Minute); err != nil {
					return 0, err
				}
				if err := durable.Do(ctx, "tick", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 10)
		require.NoError(t, err)
		var seen []int64
		after := int64(0)
		for {
			ctx, stop := context.WithTimeout(context.Background(), 90*time.Second)
			for ev, err := range w.eng.Watch(ctx, "r", after) {
				require.NoError(t, err)
				seen = append(seen, ev.Seq)
				after = ev.Seq
			}
			over := ctx.Err() == nil
			stop()
			if over {
				break
			}
		}
		for i, seq := range seen {
			require.EqualValues(t, i+1, seq, "each event once, in order")
		}
		require.Len(t, seen, len(w.events("r")))
		for _, err := range w.eng.Watch(context.Background(), "nobody", 0) {
			require.ErrorIs(t, err, durable.ErrNotFound)
		}
	})
}
