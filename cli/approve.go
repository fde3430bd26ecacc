package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/meant"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func approveCommand(a *app) *cobra.Command {
	return answerCommand(a, "approve", "Approved", true, "Say yes to what a run asks")
}

func rejectCommand(a *app) *cobra.Command {
	return answerCommand(a, "reject", "Rejected", false, "Say no to what a run asks")
}

// answered is what approve and reject print with --json.
type answered struct {
	ID     string          `json:"id"`
	Wait   string          `json:"wait"`
	Prompt string          `json:"prompt"`
	Value  json.RawMessage `json:"value,omitempty"`
}

func answerCommand(a *app, name, done string, yes bool, short string) *cobra.Command {
	var wait, reason, value, by string
	cmd := a.command(spec{
		use: name + " ID", short: short, min: 1, max: 1, ids: true,
		long: short + `. The answer is kept in the run's inbox: it counts also when nobody
executes the run at the moment. When the run asks several things, --wait says which.
A workflow that waits for more than yes or no takes --value.`,
		example: fmt.Sprintf(`  durable %s order-42
  durable %s order-42 --reason "in stock"
  durable %s order-42 --wait approve
  durable resume order-42`, name, name, name),
		do: func(c *invocation, args []string) error {
			raw, err := c.readValue(value)
			if err != nil {
				return err
			}
			return answer(c, args[0], wait, done, target.Answer{Yes: yes, Reason: reason, By: by, Value: raw})
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&wait, "wait", "", "the `KEY` of the wait, when the run asks several things")
	fl.StringVar(&reason, "reason", "", "why, for the run and for people")
	fl.StringVar(&by, "by", a.getenv("USER"), "who answers, where the workflow wants to know")
	fl.StringVar(&value, "value", "", "the whole answer: JSON, @FILE or -")
	return cmd
}

func answer(c *invocation, id, wait, done string, a target.Answer) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	open, err := t.Approvals(c.ctx, id)
	if err != nil {
		return err
	}
	one, err := pick(c, s, open, wait)
	if err != nil {
		return err
	}
	mend := func(value string) string { return c.self(c.cmd.Name(), id, "--wait", one.Key, "--value", value) }
	if err := misspeltField(id, one.Key, a.Value, one.Sample, mend); err != nil {
		return err
	}
	value, err := t.Answer(c.ctx, one, a)
	var late *operate.TooLateError
	if errors.As(err, &late) {
		return show.Refused("too_late", "Show it: "+c.self("sessions", "show", id), "%s of %s has ended, or somebody else has answered it.", one.Key, id)
	}
	if err != nil {
		return err
	}
	warnUnexecuted(c, t, s)
	return c.print(answered{ID: id, Wait: one.Key, Prompt: one.Prompt, Value: value}, func() {
		c.out.Printf("%s %s: %s\n", done, show.Escape(id), show.Escape(one.Prompt))
	})
}

// pick chooses which of the open waits to answer.
func pick(c *invocation, s *target.Run, open []durable.Approval, wait string) (durable.Approval, error) {
	var keys []string
	for _, a := range open {
		if a.Key == wait || wait == "" && len(open) == 1 {
			return a, nil
		}
		keys = append(keys, a.Key)
	}
	slices.Sort(keys)
	if len(open) == 0 && s.Prompt {
		return durable.Approval{}, show.Refused("answered", afterAnswer(c, s), "%s has its answer already", s.ID)
	}
	if len(open) == 0 {
		return durable.Approval{}, show.Refused("nothing_asked", "Show it: "+c.self("sessions", "show", s.ID), "%s asks nothing (status: %s)", s.ID, s.Status)
	}
	if wait == "" {
		return durable.Approval{}, &show.Failure{Code: "usage", Exit: ExitUsage, Message: fmt.Sprintf("%s asks %d things: %s", s.ID, len(open), strings.Join(keys, ", ")), Next: "Say which: --wait " + show.Quote(keys[0])}
	}
	return durable.Approval{}, &show.Failure{Code: "not_found", Exit: ExitNotFound, Message: fmt.Sprintf("%s does not ask %s; it asks: %s", s.ID, wait, strings.Join(keys, ", ")), Next: "Say which: --wait " + show.Quote(keys[0])}
}

// toAnswer returns the command that answers what a run asks; empty: it asks nothing, or what it
// asked has its answer, which whoever executes the run next will find.
func toAnswer(c *invocation, s *target.Run) string {
	if !s.Prompt {
		return ""
	}
	open, err := c.to.Approvals(c.ctx, s.ID)
	switch {
	case err == nil && len(open) == 0:
		return ""
	case err != nil:
		return approves(c, s.ID, "", false)
	}
	return approves(c, s.ID, open[0].Key, len(open) > 1)
}

// approves returns the command that answers a wait of a run. If the run asks several things, it
// would be refused without --wait.
func approves(c *invocation, id, wait string, several bool) string {
	if several {
		return c.self("approve", id, "--wait", wait)
	}
	return c.self("approve", id)
}

// warnUnexecuted says that no process executes the run that a message was kept for,
// and how to start one.
func warnUnexecuted(c *invocation, t target.Target, s *target.Run) {
	l, isLocal := t.(*target.Local)
	if !isLocal || s.Live || s.Terminal() || l.OthersMayTake(c.ctx, s) {
		return
	}
	next := show.Escape(s.Starter()) + "."
	if run := c.code(s); run != "" {
		next = "Go on with: " + run
	}
	c.say("Nobody executes %s at the moment. %s", show.Escape(s.ID), next)
}

// misspeltField refuses a value for a wait in which the name of a field is misspelt. mend makes the
// command that has it right.
func misspeltField(id, name string, value, sample json.RawMessage, mend func(value string) string) error {
	field, mended := meant.Field(value, sample)
	if field == "" {
		return nil
	}
	return &show.Failure{
		Code: "usage", Exit: ExitUsage, Message: fmt.Sprintf("%s waits in %s for a value like %s, which has no field %s.", id, name, sample, field),
		Next: "Did you mean: " + mend(string(mended)),
	}
}

// afterAnswer says who goes on with a run that has its answer.
func afterAnswer(c *invocation, s *target.Run) string {
	if s.Status == string(store.Interrupted) {
		return "It takes the answer once it goes on."
	}
	l, isLocal := c.to.(*target.Local)
	if !isLocal || s.Live || l.OthersMayTake(c.ctx, s) {
		return "It goes on as soon as its process finds the answer."
	}
	if run := c.code(s); run != "" {
		return "Nobody executes it at the moment. Go on with: " + run
	}
	return s.Starter() + "."
}
