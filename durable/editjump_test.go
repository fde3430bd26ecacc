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
// outside of it, as a resume does. To go back in the item takes the first alone.
func TestARunWhoseItemWasEditedCanGoBackInThatItem(t *testing.T) {
	for name, back := range map[string]func(w *world, op *operate.Operator) (run string, err error){
		"a jump": func(w *world, op *operate.Operator) (string, error) {
			at, err := op.CheckpointOf(w.ctx(), "r", "items[1]/a")
			return "r", errors.Join(err, second(op.Jump(w.ctx(), "r", at, operate.JumpOptions{})))
		},
		"a fork with another result": func(w *world, op *operate.Operator) (string, error) {
			return op.Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", Edits: map[string]any{"items[1]/a": "by hand, too"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
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
				id, err := back(w, op)
				require.NoError(t, err)
				w.eventually(id, store.Completed)
				got, err := wf.Run(w.ctx(), id, 0)
				require.NoError(t, err)
				require.Equal(t, []string{"cx", "cy"}, got)
				w.allSound(t)
			})
		})
	}
}
