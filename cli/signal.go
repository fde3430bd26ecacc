package cli

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/spf13/cobra"
)

func signalCommand(a *app) *cobra.Command {
	var value, signalID string
	cmd := a.command(spec{
		use: "signal ID NAME", short: "Send a value to a run that waits for it, now or later", min: 2, max: 2, ids: true,
		long: `signal puts a value into the run's inbox, where the next wait of that name takes it,
first come, first served. It is kept whether somebody executes the run or not.`,
		example: `  durable signal order-42 paid
  durable signal order-42 paid --value '{"amount":4200}'
  durable signal order-42 paid --value @payment.json --signal-id p-77`,
		do: func(c *invocation, args []string) error {
			raw, err := c.readValue(value)
			if err != nil {
				return err
			}
			if raw == nil {
				raw = json.RawMessage("null")
			}
			t, err := c.target()
			if err != nil {
				return err
			}
			s, err := t.Run(c.ctx, args[0])
			if err != nil {
				return err
			}
			if err := t.Signal(c.ctx, args[0], args[1], raw, signalID); err != nil {
				return err
			}
			warnUnexecuted(c, t, s)
			return c.print(map[string]any{"id": args[0], "signal": args[1]}, func() {
				c.out.Printf("Sent %s to %s\n", show.Escape(args[1]), show.Escape(args[0]))
			})
		},
	})
	cmd.Flags().StringVar(&value, "value", "", "the value: JSON, @FILE or -; null without it")
	cmd.Flags().StringVar(&signalID, "signal-id", "", "send it once: a second signal with this `ID` is dropped")
	return cmd
}
