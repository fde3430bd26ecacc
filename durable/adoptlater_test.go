package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAnAdoptedRunGoesOnWhenTheExecutorOfItsChildDiesLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		child := durable.Define("child", func(ctx context.Context, n int) (int, error) {
			if err := durable.Sleep(ctx, 10*time.Minute); err != nil {
				return 0, err
			}
			return n, durable.Do(ctx, "s", doNothing)
		})
		parent := durable.Define("parent", func(ctx context.Context, n int) (int, error) { return child.Run(ctx, durable.AutoID, n) })
		w.boot(t, with(parent, child))
		start(t, w, parent, "p", 1)
		w.eventually("p", store.Waiting)
		w.crash()
		w.expire()
		w.boot(t, with(child)) // has the child
		require.NoError(t, w.eng.Adopt(w.ctx(), "p/child"))
		pass(time.Second)
		b := w.eng
		bd := w.disk
		c := w.serve(t, parent, child)
		require.NoError(t, c.Adopt(w.ctx(), "p"))
		pass(time.Second)
		bd.cut()
		w.left.Go(func() { _ = b.Close() })
		pass(2 * time.Hour)
		require.Equal(t, store.Completed, w.row("p").Status)
	})
}
