package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestTheResultOfARunIsThereWithoutWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, fail bool) (int, error) {
			if err := durable.Sleep(ctx, time.Minute); err != nil || fail {
				return 0, errors.Join(err, errors.New("no stock"))
			}
			return 7, nil
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		ended, end := context.WithCancel(w.ctx())
		end()
		for _, fail := range []bool{false, true} {
			id, want, status := "good", 7, store.Completed
			if fail {
				id, want, status = "bad", 0, store.Failed
			}
			run, err := wf.Start(w.ctx(), id, fail)
			require.NoError(t, err)
			_, done, err := run.Result(ended)
			require.NoError(t, err)
			require.False(t, done)
			pass(2 * time.Minute)
			out, done, err := run.Result(ended)
			require.Equal(t, fail, errors.Is(err, durable.ErrRunFailed), err)
			require.True(t, done)
			require.Equal(t, want, out)
			now, err := run.Status(w.ctx())
			require.NoError(t, err)
			require.Equal(t, status, now)
		}
		nobody, err := wf.Handle(w.ctx(), "nobody")
		require.NoError(t, err)
		_, _, err = nobody.Result(w.ctx())
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = nobody.Status(w.ctx())
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func TestAStepWithoutAResultIsRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tries := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.RetryDo(ctx, "mail", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(context.Context) error {
				if tries++; tries < 3 {
					return errors.New("not yet")
				}
				return nil
			})
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := wf.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, 3, tries)
	})
}
