package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
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

var errNoBank = errors.New("the bank is closed")
