package cli

import (
	"context"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/spf13/cobra"
)

// act makes a command that does something to one run, and says that it is done.
func act(a *app, name, short, long, said string, do func(ctx context.Context, t target.Target, id, reason string) error, reasoned bool) *cobra.Command {
	return actThen(a, name, short, long, do, reasoned, func(c *invocation, _ target.Target, id string) error {
		return c.print(map[string]any{"id": id, "done": said}, func() {
			c.out.Printf("Workflow %s %s\n", show.Escape(id), said)
		})
	})
}

// actThen makes a command that does something to one run; then reports the result.
func actThen(a *app, name, short, long string, do func(ctx context.Context, t target.Target, id, reason string) error, reasoned bool, then func(c *invocation, t target.Target, id string) error) *cobra.Command {
	var reason string
	example := "  durable " + name + " order-42"
	if reasoned {
		example += "\n  durable " + name + ` order-42 --reason "the customer has called"`
	}
	cmd := a.command(spec{
		use: name + " ID", short: short, long: long, example: example, min: 1, max: 1, ids: true,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			if err := do(c.ctx, t, args[0], reason); err != nil {
				return err
			}
			return then(c, t, args[0])
		},
	})
	if reasoned {
		cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	}
	return cmd
}

func cancelCommand(a *app) *cobra.Command {
	return actThen(a, "cancel", "End a run that has not ended",
		`cancel asks a run to end. The contexts of steps in progress are cancelled, no further step
begins, and compensations run. The request is kept whether or not a process executes the
run. If none does, the run ends once one takes it up, and cancel says how to start one.`,
		func(ctx context.Context, t target.Target, id, reason string) error { return t.Cancel(ctx, id, reason) }, true, cancelled)
}

func pauseCommand(a *app) *cobra.Command {
	return act(a, "pause", "Hold a run until unpause",
		`pause holds a run: the step in progress ends, no further one begins, and a restart does
not continue the run. unpause lets it go on.`,
		"paused", func(ctx context.Context, t target.Target, id, reason string) error { return t.Pause(ctx, id, reason) }, true)
}

func unpauseCommand(a *app) *cobra.Command {
	return act(a, "unpause", "Let a paused run go on",
		`unpause lets a paused run go on from where it was.`,
		"unpaused", func(ctx context.Context, t target.Target, id, _ string) error { return t.Unpause(ctx, id) }, false)
}
