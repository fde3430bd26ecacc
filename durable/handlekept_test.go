package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAKeptHandleTellsWhatBecameOfARunThatWasResumed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended := false
		pay := durable.Define("pay", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "charge", func(context.Context) (int, error) {
				if !mended {
					return 0, errNoBank
				}
				return 2 * n, nil
			})
		})
		w.serve(t, pay)
		run, err := pay.Start(w.ctx(), "pay-1", 21)
		require.NoError(t, err)
		for range 2 {
			_, err = run.Wait(w.ctx())
			require.ErrorIs(t, err, errNoBank)
		}

		mended = true
		_, err = operate.On(w.eng).Resume(w.ctx(), "pay-1", operate.ResumeOptions{})
		require.NoError(t, err)
		got, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 42, got)
	})
}

// The engine is closed while the run waits, and another process goes on with it.
func TestAKeptHandleOfAClosedEngineTellsWhatAnotherOneHasMadeOfTheRun(t *testing.T) {
	for name, end := range map[string]func(w *world) (*durable.RunError, error){
		"completed": func(w *world) (*durable.RunError, error) {
			return nil, w.eng.Signal(w.ctx(), "r", "s", "hello")
		},
		"cancelled": func(w *world) (*durable.RunError, error) {
			return &durable.RunError{Status: store.Cancelled}, w.eng.Cancel(w.ctx(), "r", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "s") })
				w.boot(t, with(wf))
				run := start(t, w, wf, "r", 0)
				synctest.Wait()
				ctx := w.ctx()
				require.NoError(t, w.eng.Close())
				_, err := run.Wait(ctx)
				require.ErrorIs(t, err, durable.ErrInterrupted)

				w.boot(t, with(wf))
				_, err = run.Wait(ctx)
				require.ErrorIs(t, err, durable.ErrInterrupted, "it waits still")
				failed, err := end(w)
				require.NoError(t, err)
				synctest.Wait()
				out, err := run.Wait(ctx)
				if failed == nil {
					require.NoError(t, err)
					require.Equal(t, "hello", out)
					return
				}
				var got *durable.RunError
				require.ErrorAs(t, err, &got)
				require.Equal(t, failed.Status, got.Status)
			})
		})
	}
}

var errNoBank = errors.New("the bank is closed")
