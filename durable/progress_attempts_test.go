package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// What an attempt has saved of its progress is what the next one begins with, be
// it that the attempt has failed or that its process was killed; the next step
// begins with nothing.
func TestProgressOfAnAttemptIsReadByTheNextOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type seen struct {
			attempt, from int
			found         bool
		}
		var all []seen
		copying := func(ctx context.Context) (int, error) {
			n := durable.Attempt(ctx).Number
			from, ok, err := durable.Progress[int](ctx)
			if err != nil {
				return 0, err
			}
			all = append(all, seen{n, from, ok})
			if from < 30 {
				if err := durable.SaveProgress(ctx, from+10); err != nil {
					return 0, err
				}
				if n == 2 && from == 10 {
					<-ctx.Done() // killed here
				}
				return 0, errStock
			}
			return from, nil
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			n, err := durable.Retry(ctx, "copy", durable.Policy{Initial: time.Second, MaxAttempts: 5}, copying)
			if err != nil {
				return 0, err
			}
			return n, durable.Do(ctx, "next", func(ctx context.Context) error {
				from, ok, err := durable.Progress[int](ctx)
				all = append(all, seen{0, from, ok})
				return err
			})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 30, out)
		require.Equal(t, []seen{{1, 0, false}, {2, 10, true}, {2, 20, true}, {3, 30, true}, {0, 0, false}}, all)
	})
}
