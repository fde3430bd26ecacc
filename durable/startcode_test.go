package durable_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAStartOfAWorkflowWithoutCodeIsRefusedUnlessItIsARef(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		forgotten := durable.Define("order", func(_ context.Context, n int) (int, error) { return n, nil })
		second := durable.Define("order", func(_ context.Context, n int) (int, error) { return 2 * n, nil }, durable.Version("2"))
		parent := durable.Define("parent", func(ctx context.Context, n int) (int, error) { return forgotten.Run(ctx, durable.AutoID, n) })
		w.boot(t, with(parent))

		_, err := forgotten.Start(w.ctx(), "r", 1)
		require.ErrorIs(t, err, durable.ErrNotRegistered)
		require.ErrorContains(t, err, "the code of workflow order is not in this engine")
		require.ErrorContains(t, err, "Options.Workflows")
		require.ErrorContains(t, err, `durable.Ref("order")`)
		_, err = forgotten.Run(w.ctx(), "r", 1)
		require.ErrorIs(t, err, durable.ErrNotRegistered)
		_, err = w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound, "nothing was started")

		for _, elsewhere := range []struct {
			id    string
			start func(id string) (*durable.Run[int], error)
		}{
			{"by a Ref", func(id string) (*durable.Run[int], error) {
				return durable.Ref[int, int]("order").Start(w.ctx(), id, 1)
			}},
			{"enqueued", func(id string) (*durable.Run[int], error) { return forgotten.Enqueue(w.ctx(), id, 1) }},
			{"on a queue", func(id string) (*durable.Run[int], error) {
				return forgotten.Start(w.ctx(), id, 1, durable.OnQueue("q"))
			}},
		} {
			_, err := elsewhere.start(elsewhere.id)
			require.NoError(t, err, elsewhere.id)
			require.Equal(t, store.Pending, w.row(elsewhere.id).Status)
		}

		start(t, w, parent, "p", 1)
		synctest.Wait()
		require.Equal(t, durable.CodeChildNotRegistered, w.row("p").Code)
		require.Contains(t, w.row("p").Reason, "the code of workflow order is not in this engine")
		require.ErrorIs(t, resume(w.eng, w.ctx(), "p"), durable.ErrNotRegistered)

		require.Equal(t, []string{"p"}, w.reboot(t, with(parent, forgotten)).Unparked, "the child is started once its code is here")
		_, err = second.Start(w.ctx(), "other version", 1)
		require.ErrorIs(t, err, durable.ErrNotRegistered)
		require.ErrorContains(t, err, "version 2 of workflow order (registered: 1)")
		out, err := wait(t, w, parent, "p")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}
