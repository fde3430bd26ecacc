package outline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// The attempts before the last one are in the history that an edit of the failure
// keeps: the row that they began is the one that has the result.
func TestAStepThatHasFailedAndWasGivenAResultIsNotToldToHaveSucceeded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Second, Jitter: -1}, func(context.Context) (int, error) {
				return 0, errors.New("503")
			})
		})
		ctx := w.boot("web-1", wf)
		_, err := wf.Start(ctx, "r", 1)
		require.NoError(t, err)
		pass(time.Minute)
		_, err = operate.On(w.eng).Edit(ctx, "r", "charge", 7, operate.EditOptions{By: "ann"})
		require.NoError(t, err)
		o := w.tell("r")
		require.Contains(t, lines(o), "charge done (result edited) [1 failed] [2 failed] [3 failed]")
		require.Equal(t, "ann", o.Row("charge").Edited.By)
		require.Equal(t, 3, o.Row("charge").Max)
	})
}
