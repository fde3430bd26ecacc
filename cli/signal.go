package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/outline"
)

func signalCommand(a *app) *cobra.Command {
	var value, signalID string
	cmd := a.command(spec{
		use: "signal ID NAME", short: "Send a value to a run that waits for it, now or later", min: 2, max: 3, ids: true,
		long: `signal puts a value into the run's inbox, where the next wait of that name takes it,
first come, first served. It is kept whether or not a process executes the run, and
whether or not the run waits for that name already.

Without --value it sends nothing, which only a wait that is known to take nothing gets.
--value null sends nothing to any other wait that may take it.`,
		example: `  durable signal order-42 paid --value true
  durable signal order-42 paid --value '{"amount":4200}'
  durable signal order-42 paid --value @payment.json --signal-id p-77`,
		do: func(c *invocation, args []string) error {
			if len(args) == 3 {
				return valueIsAFlag(c, args)
			}
			raw, err := c.readValue(value)
			if err != nil {
				return err
			}
			return signalRun(c, args[0], args[1], raw, signalID)
		},
	})
	cmd.Flags().StringVar(&value, "value", "", "the value: JSON, @FILE or -; null is none")
	cmd.Flags().StringVar(&signalID, "signal-id", "", "send it once: a second signal with this `ID` is dropped")
	return cmd
}

// signaled is what signal prints with --json.
type signaled struct {
	ID      string   `json:"id"`
	Signal  string   `json:"signal"`
	Awaited bool     `json:"awaited"`             // the run waits for it; else it is kept until then
	Waits   []string `json:"waits_for,omitempty"` // the names of what it waits for instead
}

// signalRun sends a signal. Without a value it sends null, if the run is known to wait for
// nothing more: any other type would read it as its zero value, such as a no.
func signalRun(c *invocation, id, name string, value json.RawMessage, signalID string) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	b, s, err := t.Outline(c.ctx, id)
	if err != nil {
		return err
	}
	o := b.Outline()
	open, names := o.Listening(name)
	if value == nil {
		if !s.Terminal() && (len(open) == 0 || !open[0].TakesNothing()) {
			return noValue(c, s, name, open)
		}
		value = json.RawMessage("null")
	}
	if len(open) > 0 {
		mend := func(value string) string { return c.self("signal", id, name, "--value", value) }
		if err := misspeltField(id, name, value, open[0].Sample, mend); err != nil {
			return err
		}
	}
	if err := t.Signal(c.ctx, id, name, value, signalID); err != nil {
		return err
	}
	did := signaled{ID: id, Signal: name, Awaited: len(open) > 0}
	if !did.Awaited {
		did.Waits = names
	}
	return c.print(did, func() {
		c.out.Printf("Sent %s to %s\n", show.Escape(name), show.Escape(id))
		if kept := o.Kept(name); kept != nil {
			c.say("%s", show.Escape(kept.String()))
		}
		warnUnexecuted(c, t, s)
	})
}

// valueIsAFlag refuses a value that was given as an argument.
func valueIsAFlag(c *invocation, args []string) error {
	f := show.Usage("signal does not take %q", args[2])
	value := json.RawMessage(args[2])
	if !json.Valid(value) {
		value, _ = json.Marshal(args[2]) // a text
	}
	f.Next = "The value is a flag: " + c.self("signal", args[0], args[1], "--value", string(value))
	return f
}

// noValue refuses a signal without a value.
func noValue(c *invocation, s *target.Run, name string, open []*outline.Row) error {
	with := func(value string) string { return c.self("signal", s.ID, name, "--value", value) }
	f := &show.Failure{Code: "usage", Exit: ExitUsage, Message: fmt.Sprintf("%s has no value, and it is not known whether %s takes it without one.", name, s.ID), Next: "Give the value: --value JSON, or send none: --value null"}
	if len(open) == 0 || len(open[0].Sample) == 0 {
		return f
	}
	f.Message = fmt.Sprintf("%s has no value, and %s waits for one like %s.", name, s.ID, open[0].Sample)
	f.Next = "Give the value: " + with(string(open[0].Sample))
	if string(open[0].Sample) == "false" { // pasted, it would be a no
		f.Message = fmt.Sprintf("%s has no value, and %s waits for true or false.", name, s.ID)
		f.Next = "Give the value: " + with("true") + ", or " + with("false")
	}
	return f
}
