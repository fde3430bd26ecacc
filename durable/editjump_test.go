package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What is recorded on the branch that an edit begins lies inside of the item, as the edit does, and
// outside of it, as a resume does. A jump back in the item takes the first alone.
func TestARunWhoseItemWasEditedCanJumpBackInThatItem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		broken := true
		wf := durable.Define("w", func(ctx context.Context, _ int) ([]string, error) {
			return durable.Map(ctx, "items", []string{"x", "y"}, durable.MapOptions{KeepGoing: true}, func(ctx context.Context, item string) (string, error) {
				for _, name := range []string{"a", "b"} {
					if _, err := durable.Step(ctx, name, func(context.Context) (string, error) { return name + item, nil }); err != nil {
						return "", err
					}
				}
				return durable.Step(ctx, "c", func(context.Context) (string, error) {
					if item == "y" && broken {
						return "", durable.Permanent(errors.New("the service is down"))
					}
					return "c" + item, nil
				})
			})
		})
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.Error(t, err)
		op := operate.On(w.eng)
		require.NoError(t, second(op.Edit(w.ctx(), "r", "items[1]/b", "by hand", operate.EditOptions{})))
		require.NoError(t, second(op.Resume(w.ctx(), "r", operate.ResumeOptions{})))
		w.eventually("r", store.Failed)
		broken = false
		at, err := op.CheckpointOf(w.ctx(), "r", "items[1]/a")
		require.NoError(t, err)
		require.NoError(t, second(op.Jump(w.ctx(), "r", at, operate.JumpOptions{})))
		w.eventually("r", store.Completed)
		got, err := wf.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, []string{"cx", "cy"}, got)
		w.allSound(t)
	})
}
