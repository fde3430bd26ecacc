package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

type forked struct {
	ID     string   `json:"id"`
	From   string   `json:"from"`
	At     int64    `json:"at"`
	Kept   []string `json:"kept"`
	Edited []string `json:"edited"`
	Again  []string `json:"runs_again"`
	DryRun bool     `json:"dry_run,omitempty"`
}

func forkCommand(a *app) *cobra.Command {
	var from, id, reason, by string
	var edits []string
	var force, dryRun, yes bool
	cmd := a.command(spec{
		use: "fork ID", short: "Copy a run up to a checkpoint, as a new run", min: 1, max: 1, ids: true,
		long: `fork makes a new run from what another one has recorded, up to a checkpoint. The steps
after it run again, with new idempotency keys: what they did happens once more. The
source is not changed. --edit gives the new run another result of a step, as if the
source had returned that; without --from, what was recorded after that step runs again.`,
		example: `  durable fork order-40 --from 2 --id order-43
  durable fork order-40 --from reserve --dry-run
  durable fork order-40 --edit 'charge={"id":"p-7"}' --edit reserve=@held.json --reason "paid by hand"
  durable resume order-42 --from-checkpoint 2`,
		do: func(c *invocation, args []string) error {
			o := operate.ForkOptions{ID: show.OrElse(id, durable.AutoID), Reason: reason, By: by, Force: force}
			var err error
			if o.Edits, err = readEdits(c, edits); err != nil {
				return err
			}
			return fork(c, args[0], from, o, dryRun, yes)
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&from, "from", "", "the last checkpoint to copy (its ID, or the step's name); without it all, or those before the failure of a failed run")
	fl.StringVar(&id, "id", "", "the new run's id; without it a readable one is made")
	fl.StringArrayVar(&edits, "edit", nil, "STEP=VALUE: another result of a step in the new run; JSON, @FILE or -; may be repeated")
	fl.StringVar(&reason, "reason", "", "why results are edited, for the history")
	fl.StringVar(&by, "by", a.getenv("USER"), "who edits them, for the history; a server knows that itself")
	fl.BoolVar(&force, "force", false, "take another kind of value, and copy what was undone as done")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would be kept and what would run, and do nothing")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// readEdits reads STEP=VALUE. The name of a step may contain "=": it ends at the first
// one that a value follows.
func readEdits(c *invocation, list []string) (map[string]any, error) {
	var edits map[string]any
	for _, text := range list {
		key, value, err := splitEdit(text)
		if err != nil {
			return nil, err
		}
		if _, twice := edits[key]; twice {
			return nil, show.Usage("--edit gives %s two results", key)
		}
		raw, err := c.readValue(value)
		if err != nil {
			return nil, err
		}
		if edits == nil {
			edits = map[string]any{}
		}
		edits[key] = raw
	}
	return edits, nil
}

func splitEdit(text string) (key, value string, err error) {
	at := strings.IndexByte(text, '=')
	if at <= 0 {
		return "", "", show.Usage("--edit takes STEP=VALUE, and not %q", text)
	}
	for end := at; end > 0 && end < len(text); {
		value = text[end+1:]
		if value == "-" || strings.HasPrefix(value, "@") || json.Valid([]byte(value)) {
			return text[:end], value, nil
		}
		next := strings.IndexByte(value, '=')
		if next < 0 {
			break
		}
		end += 1 + next
	}
	return "", "", show.Usage("the result of %s is not JSON; text is written in quotation marks: '%s=\"text\"'", text[:at], text[:at])
}

// forkNext says what continues a fork: a program that is started, or a person.
func forkNext(c *invocation, t target.Target, id string) string {
	s, err := t.Run(c.ctx, id)
	if l, isLocal := t.(*target.Local); err == nil && s.Resumable && !(isLocal && l.OthersTake(c.ctx, s)) {
		if run := c.code(s); run != "" {
			return "Resume with: " + run
		}
	}
	return c.follow(id)
}

// reportFork says what a fork keeps, and what it does anew. cut says that a person has chosen
// what is copied.
func reportFork(c *invocation, s *show.Stream, f *forked, plan *operate.Plan, cut bool) {
	s.Printf("Kept: %s.", c.names(s, show.OrNothing(f.Kept)))
	if len(f.Edited) > 0 {
		s.Printf(" Edited: %s.", c.names(s, f.Edited))
	}
	switch {
	case len(f.Again) > 0:
		s.Printf(" Runs again with new idempotency keys: %s.\n", c.names(s, f.Again))
	case len(f.Edited) > 0:
		s.Printf(" Nothing that is recorded runs again: the workflow goes on with what is edited, and does what follows from it.\n")
	default:
		s.Printf(" Runs again with new idempotency keys: nothing.\n")
	}
	if old := copiedAfter(f.Kept, f.Edited); cut && len(old) > 0 {
		s.Printf("! Kept as they are, although %s came before them with another result: %s\n", c.names(s, f.Edited), c.names(s, old))
	}
	for _, w := range plan.Warnings {
		s.Printf("! %s\n", show.Escape(show.Flags(w)))
	}
}

// copiedAfter returns the calls of a list, in the order in which they were done, that come
// after the first edited one, and are not edited.
func copiedAfter(kept, edited []string) (list []string) {
	after := false
	for _, key := range kept {
		switch {
		case slices.Contains(edited, key):
			after = true
		case after:
			list = append(list, key)
		}
	}
	return list
}

func fork(c *invocation, id, from string, o operate.ForkOptions, dryRun, yes bool) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	if o.At, err = c.checkpoint(id, from); err != nil {
		return err
	}
	if from == "" && len(o.Edits) == 0 && s.Status == string(store.Failed) {
		// A copy of everything would fail at once.
		b, _, err := t.Outline(c.ctx, id)
		if err != nil {
			return err
		}
		o.At = b.Outline().BeforeFailure()
	}
	plan, err := t.PlanFork(c.ctx, id, o)
	if err != nil {
		return err
	}
	f := forked{From: id, At: o.At, Kept: show.List(plan.Skipped), Edited: show.List(plan.Edited), Again: show.List(plan.Again), DryRun: dryRun}
	if o.ID != durable.AutoID {
		f.ID = o.ID
	}
	for _, name := range append([]string{plan.Next.Key}, s.Declared...) {
		if name != "" && !slices.Contains(f.Kept, name) && !slices.Contains(f.Again, name) {
			f.Again = append(f.Again, name)
		}
	}
	report := func(s *show.Stream) { reportFork(c, s, &f, &plan, from != "") }
	if dryRun {
		return c.print(f, func() {
			report(c.out)
			c.out.Printf("Dry run: nothing changed, nothing ran.\n")
		})
	}
	if !c.flags.json {
		report(c.err)
	}
	if err := confirm(c, yes, "Continue?"); err != nil {
		return err
	}
	at := t
	if l, isLocal := t.(*target.Local); isLocal && l.Mounted {
		// This program ends at once: what it began to execute would be interrupted.
		if at, err = c.handsOff(l); err != nil {
			return err
		}
	}
	if f.ID, err = at.Fork(c.ctx, id, o); err != nil {
		return err
	}
	return c.print(f, func() {
		c.out.Printf("Forked to %s. %s\n", show.Escape(f.ID), forkNext(c, t, f.ID))
	})
}
