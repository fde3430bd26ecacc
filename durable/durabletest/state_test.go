package durabletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

// The wrong way of docs/rules.md loses what it kept in a variable: what was
// sent is told by the input of the step.
func TestWhatIsKeptInAVariableIsLostAndWhatAStepReturnsIsNot(t *testing.T) {
	var current int
	forget := durabletest.Reboot(func() { current = 0 })
	wrong := define(func(ctx context.Context, in int) (string, error) {
		if err := durable.Do(ctx, "load", func(context.Context) error { current = in; return nil }); err != nil {
			return "", err
		}
		return "sent", durable.Do(ctx, "send", func(context.Context) error { return nil }, durable.WithInput(current))
	})
	err := durabletest.Examine(t, wrong, 7, forget)
	require.ErrorContains(t, err, `send`)
	require.ErrorContains(t, err, "input")
	right := define(func(ctx context.Context, in int) (string, error) {
		current, err := step(ctx, "load", in)
		if err != nil {
			return "", err
		}
		return "sent", durable.Do(ctx, "send", func(context.Context) error { return nil }, durable.WithInput(current))
	})
	durabletest.Survives(t, right, 7, forget, durabletest.SameProcess())
}
