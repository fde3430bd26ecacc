package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What an operator does to a run that has failed is of the same effect on every
// store, and outlives the process.
func TestAFailedRunIsTakenBackOnEveryStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		var mended atomic.Bool
		var prepared, sent atomic.Int32
		wf := durable.Define("takeback", func(ctx context.Context, _ int) (string, error) {
			out, err := durable.Map(ctx, "items", []int{1, 2, 3}, durable.MapOptions{KeepGoing: true}, func(ctx context.Context, n int) (int, error) {
				v, err := durable.Step(ctx, "prepare", func(context.Context) (int, error) { prepared.Add(1); return n, nil })
				if err != nil {
					return 0, err
				}
				return durable.Step(ctx, "send", func(context.Context) (int, error) {
					sent.Add(1)
					if n == 2 && !mended.Load() {
						return 0, errors.New("refused")
					}
					return v, nil
				})
			})
			return fmt.Sprint(out), err
		})
		process := func(act func(ctx context.Context, eng *durable.Engine)) {
			st, release := d.handle(t, b, 0)
			defer release()
			eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), patience)
			defer stop()
			_, err = durable.Recover(ctx)
			require.NoError(t, err)
			act(ctx, eng)
			require.NoError(t, eng.Close())
		}
		ends := func(ctx context.Context, id string) (string, error) {
			h, err := wf.Handle(ctx, id)
			require.NoError(t, err)
			return h.Wait(ctx)
		}
		at := func(ctx context.Context, eng *durable.Engine, key string) int64 {
			seq, err := operate.On(eng).CheckpointOf(ctx, "r", key)
			require.NoError(t, err)
			return seq
		}
		process(func(ctx context.Context, eng *durable.Engine) {
			_, err := wf.Run(ctx, "r", 0)
			require.ErrorIs(t, err, durable.ErrRunFailed)
		})
		process(func(ctx context.Context, eng *durable.Engine) { // fails again, on branch 1
			plan, err := operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: at(ctx, eng, "items[1]/prepare")})
			require.NoError(t, err)
			require.Equal(t, "items[1]", plan.Scope)
			_, err = ends(ctx, "r")
			require.ErrorIs(t, err, durable.ErrRunFailed)
		})
		process(func(ctx context.Context, eng *durable.Engine) { // on branch 2
			plan, err := operate.On(eng).Jump(ctx, "r", at(ctx, eng, "items[1]/prepare"), operate.JumpOptions{By: "ann"})
			require.NoError(t, err)
			require.EqualValues(t, 2, plan.Branch)
			_, err = ends(ctx, "r")
			require.ErrorIs(t, err, durable.ErrRunFailed)
		})
		process(func(ctx context.Context, eng *durable.Engine) {
			id, err := operate.On(eng).Fork(ctx, "r", operate.ForkOptions{ID: "f"})
			require.NoError(t, err)
			_, err = ends(ctx, id)
			require.ErrorIs(t, err, durable.ErrRunFailed)
			id, err = operate.On(eng).Fork(ctx, "r", operate.ForkOptions{ID: "g", Edits: map[string]any{"items[2]/prepare": 30, "items[0]": 10}, By: "ann"})
			require.NoError(t, err)
			_, err = ends(ctx, id)
			require.ErrorIs(t, err, durable.ErrRunFailed)
			_, err = operate.On(eng).Edit(ctx, "r", "items[0]/prepare", 10, operate.EditOptions{By: "ann"})
			require.NoError(t, err)
		})
		require.EqualValues(t, 3, prepared.Load(), "each item was prepared once")
		require.EqualValues(t, 6, sent.Load(), "and once more in the fork whose item was prepared otherwise")
		process(func(ctx context.Context, eng *durable.Engine) {
			mended.Store(true)
			for id, want := range map[string]string{"r": "[10 2 3]", "f": "[1 2 3]", "g": "[10 2 30]"} {
				plan, err := operate.On(eng).Resume(ctx, id, operate.ResumeOptions{ResetFailures: true})
				require.NoError(t, err)
				require.Contains(t, plan.Reset, "items[1]/send")
				out, err := ends(ctx, id)
				require.NoError(t, err)
				require.Equal(t, want, out)
			}
		})
		h, err := d.outside.Load(context.Background(), "r", store.Cursor{All: true})
		require.NoError(t, err)
		require.Len(t, h.Branches, 3)
		var before store.Event
		for e, err := range h.Events {
			require.NoError(t, err)
			require.Equal(t, before.Seq+1, e.Seq)
			require.Equal(t, store.Seal("r", before.Sum, &e), e.Sum)
			before = e
		}
	})
}
