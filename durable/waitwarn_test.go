package durable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

const idleWarning = "WARN durable: Wait: nothing executes this run"

func TestAWaitThatNothingCanEndSaysSoAtOnce(t *testing.T) {
	step := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
		return 1, durable.Sleep(ctx, time.Minute)
	})
	wait := func(t *testing.T, w *world, run *durable.Run[int]) {
		t.Helper()
		ctx, stop := context.WithTimeout(w.ctx(), time.Second)
		defer stop()
		_, err := run.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		told := w.log.find(idleWarning)
		require.Equal(t, len(told) > 0, strings.Contains(err.Error(), "nothing executes it: "), "%v", err)
		for _, cause := range []string{"Options.Workflows", "durable.Recover(ctx)"} {
			require.Equal(t, strings.Contains(strings.Join(told, ""), cause), strings.Contains(err.Error(), cause), "%v", err)
		}
	}
	t.Run("nobody has the code", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.boot(t, durable.Options{})
			run, err := durable.Ref[int, int]("order").Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			wait(t, w, run)
			lines := w.log.find(idleWarning)
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "run=r")
			require.Contains(t, lines[0], "Options.Workflows")
		})
	})
	t.Run("Recover was not called", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.boot(t, durable.Options{Workflows: []durable.Definition{step}})
			_, err := step.Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			w.crash()
			w.expire()
			w.serve(t, step)
			run, err := step.Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			wait(t, w, run)
			lines := w.log.find(idleWarning)
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "durable.Recover(ctx)")
		})
	})
	t.Run("it is in line and Recover was not called", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			mails := durable.Queue{Name: "mails", Max: 1}
			w.open(t, durable.Options{Workflows: []durable.Definition{step}, Queues: []durable.Queue{mails}})
			run, err := step.Start(w.ctx(), "r", 0, durable.OnQueue("mails"))
			require.NoError(t, err)
			wait(t, w, run)
			lines := w.log.find(idleWarning)
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "durable.Recover(ctx)")
			require.Contains(t, lines[0], "in line of queue mails")
		})
	})
	t.Run("somebody takes it after all", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.boot(t, durable.Options{})
			run, err := durable.Ref[int, int]("order").Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			client := w.ctx()
			go func() {
				pass(10 * time.Second)
				w.boot(t, durable.Options{Workflows: []durable.Definition{step}, UnloadAfter: -1})
			}()
			ctx, stop := context.WithTimeout(client, 40*time.Second)
			defer stop()
			_, err = run.Wait(ctx)
			require.EqualError(t, err, "waiting for run r: context deadline exceeded", "it is executed by then")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("somebody has it", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.boot(t, durable.Options{Workflows: []durable.Definition{step}})
			w.boot(t, durable.Options{})
			run, err := durable.Ref[int, int]("order").Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			wait(t, w, run)
			require.Empty(t, w.log.find(idleWarning))
		})
	})
}
