package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What a step has saved of its progress is part of the history (adr/0015): the end
// of the step takes nothing away. One that has failed for good and is tried again
// by a person finds its session, and the log of one that has succeeded is as it was
// written.
func TestSavedProgressOutlivesItsStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var found []string
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			return durable.Step(ctx, "remote", func(ctx context.Context) (string, error) {
				session, ok, err := durable.Progress[string](ctx)
				if err != nil || ok {
					found = append(found, session)
					return session, err
				}
				if err := durable.SaveProgress(ctx, "session 7"); err != nil {
					return "", err
				}
				return "", durable.Permanent(errStock)
			})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		_, err := wait(t, w, wf, "r")
		require.ErrorContains(t, err, errStock.Error())
		saved := savedIn(w.events("r"))
		require.Len(t, saved, 1)

		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "session 7", out)
		require.Equal(t, []string{"session 7"}, found)

		pass(time.Hour)
		require.Equal(t, saved, savedIn(w.events("r")), "nothing was taken away")
		report, err := operate.On(w.eng).Verify(w.ctx(), "r")
		require.NoError(t, err)
		require.Empty(t, report.Findings)

		// It goes with its run.
		_, err = operate.On(w.eng).Clean(w.ctx(), operate.CleanOptions{All: true})
		require.NoError(t, err)
		_, err = w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func savedIn(events []store.Event) []store.Event {
	var saved []store.Event
	for _, ev := range events {
		if ev.Type == store.ProgressSaved {
			saved = append(saved, ev)
		}
	}
	return saved
}

// That something was saved is known although it has no value: a mark that says how far a body has come.
func TestProgressWithoutAValueIsKnownToBeThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		var marks []bool
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "s", func(ctx context.Context) error {
				for range 2 {
					_, ok, err := durable.Progress[struct{}](ctx)
					if marks = append(marks, ok); err != nil {
						return err
					}
					if err := durable.SaveProgress(ctx, struct{}{}); err != nil {
						return err
					}
				}
				return h.body(ctx)
			})
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []bool{false, true, true, true}, marks)
	})
}
