package durable_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A run is replayed after each crash, and in one process after each wait that unloads it: a signal
// that its function sends itself would be sent again each time.
func TestAWorkflowFunctionIsRefusedACallThatEachReplayWouldMakeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := durable.Define("other", func(ctx context.Context, _ int) (int, error) {
			return durable.Await[int](ctx, "go")
		})
		handle := func(ctx context.Context) *durable.Run[int] {
			h, err := other.Handle(ctx, "o")
			require.NoError(t, err)
			return h
		}
		calls := map[string]func(ctx context.Context) error{
			`Signal "go" to run o`: func(ctx context.Context) error { return durable.Signal(ctx, "o", "go", 1) },
			"Cancel of run o":      func(ctx context.Context) error { return w.eng.Cancel(ctx, "o", "") },
			"Pause of run o":       func(ctx context.Context) error { return w.eng.Pause(ctx, "o", "") },
			"Unpause of run o":     func(ctx context.Context) error { return w.eng.Unpause(ctx, "o") },
			"Status of run o":      func(ctx context.Context) error { _, err := handle(ctx).Status(ctx); return err },
			"Result of run o":      func(ctx context.Context) error { _, _, err := handle(ctx).Result(ctx); return err },
			"Wait for run o":       func(ctx context.Context) error { _, err := handle(ctx).Wait(ctx); return err },
			"Get of run o":         func(ctx context.Context) error { _, err := w.eng.Get(ctx, "o"); return err },
			"List in run":          func(ctx context.Context) error { _, err := w.eng.List(ctx, store.Filter{}); return err },
			"History of run o":     func(ctx context.Context) error { return firstError(w.eng.History(ctx, "o")) },
			"Watch of run o":       func(ctx context.Context) error { return firstError(w.eng.Watch(ctx, "o", 0)) },
			"Recover in run":       func(ctx context.Context) error { _, err := w.eng.Recover(ctx); return err },
			"RecoverRun of run o":  func(ctx context.Context) error { _, err := w.eng.RecoverRun(ctx, "o"); return err },
			"Adopt of run o":       func(ctx context.Context) error { return w.eng.Adopt(ctx, "o") },
			"the Operator for run o": func(ctx context.Context) error {
				_, err := operate.On(w.eng).Fork(ctx, "o", operate.ForkOptions{ID: durable.AutoID})
				return err
			},
			"Clean in run": func(ctx context.Context) error {
				_, err := operate.On(w.eng).Clean(ctx, operate.CleanOptions{All: true})
				return err
			},
			"Import in run": func(ctx context.Context) error {
				_, err := operate.On(w.eng).Import(ctx, strings.NewReader("{}"), operate.ImportOptions{})
				return err
			},
			"workflow other by its name": func(ctx context.Context) error {
				_, err := operate.On(w.eng).StartJSON(ctx, "other", durable.AutoID, nil)
				return err
			},
			"change of queue q":          func(ctx context.Context) error { return operate.On(w.eng).PauseQueue(ctx, "q", "") },
			"the Operator for schedules": func(ctx context.Context) error { return operate.On(w.eng).DeleteSchedule(ctx, "s") },
		}
		refused := map[string][]error{}
		caller := durable.Define("caller", func(ctx context.Context, call string) (int, error) {
			err := calls[call](ctx)
			refused[call] = append(refused[call], err)
			return 0, durable.Sleep(ctx, time.Minute) // it is unloaded, and replayed
		})
		w.boot(t, with(other, caller))
		start(t, w, other, "o", 0)
		for call := range calls {
			_, err := run(t, w, caller, "caller of "+call, call)
			require.NoError(t, err)
			require.Len(t, refused[call], 2, call)
			for _, err := range refused[call] {
				require.ErrorIs(t, err, durable.ErrInWorkflow, call)
				require.ErrorContains(t, err, call)
			}
			require.NotEmpty(t, w.log.find("a call was refused: the workflow's code is wrong"), call)
		}
		row := w.row("o")
		require.Equal(t, store.Waiting, row.Status)
		require.False(t, row.Paused)
		require.EqualValues(t, 0, row.Inbox)
		all, err := w.eng.List(w.ctx(), store.Filter{Workflows: []string{"other"}})
		require.NoError(t, err)
		require.Len(t, all.Runs, 1, "none was forked or started")
	})
}

// firstError returns the first error of a sequence.
func firstError(seq iter.Seq2[store.Event, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestABodySendsWhatTheFunctionMayNotSend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := durable.Define("other", func(ctx context.Context, _ int) (int, error) {
			return durable.Await[int](ctx, "go")
		})
		sender := durable.Define("sender", func(ctx context.Context, _ int) (int, error) {
			err := durable.Do(ctx, "send", func(ctx context.Context) error {
				return durable.Signal(ctx, "o", "go", 1, durable.SignalID(durable.IdempotencyKey(ctx)))
			})
			return 0, errors.Join(err, durable.Sleep(ctx, time.Minute))
		})
		w.boot(t, with(other, sender))
		h := start(t, w, other, "o", 0)
		synctest.Wait()
		_, err := run(t, w, sender, "s", 0)
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}
