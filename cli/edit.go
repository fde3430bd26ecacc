package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func checkpointsEdit(a *app) *cobra.Command {
	var value, reason, by string
	var force, dryRun, yes bool
	cmd := a.command(spec{
		use: "edit ID STEP", short: "Replace the recorded result of a step", min: 2, max: 2, ids: true,
		long: `edit replaces the result of a step that a run has recorded: by --value, or in your
editor ($EDITOR). The old result stays on the old branch; what was recorded after it runs
again; who edited what, and why, is an event of the history. Then resume continues it.`,
		example: `  durable checkpoints edit order-42 charge
  durable checkpoints edit order-42 charge --value '{"id":"p-7"}' --reason "paid by hand" --yes
  durable resume order-42`,
		do: func(c *invocation, args []string) error {
			return edit(c, args[0], args[1], value, yes, operate.EditOptions{Reason: reason, By: by, Force: force, DryRun: dryRun})
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&value, "value", "", "the new result: JSON, @FILE or -")
	fl.StringVar(&reason, "reason", "", "why, for the history")
	fl.StringVar(&by, "by", a.getenv("USER"), "who edits, for the history")
	fl.BoolVar(&force, "force", false, "take another kind of value, and let what must run once run again")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would run again, and do nothing")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func edit(c *invocation, id, key, value string, yes bool, o operate.EditOptions) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	s, err := l.Run(c.ctx, id)
	if err != nil {
		return err
	}
	raw, err := c.readValue(value)
	if err != nil {
		return err
	}
	if raw == nil {
		if raw, err = editor(c, l, id, key); err != nil {
			return err
		}
	}
	standing, _ := l.Standing(c.ctx, id) // only used to say more
	dry := o
	dry.DryRun = true
	plan, err := operate.On(l.Engine).Edit(c.ctx, id, key, raw, dry)
	if err != nil {
		return notEdited(c, l, s, err)
	}
	if o.DryRun {
		return c.print(planOf(s, &plan), func() {
			c.showPlan(c.out, s, standing, &plan, false)
			endDryRun(c, s)
		})
	}
	if !c.flags.json {
		c.showPlan(c.err, s, standing, &plan, false)
	}
	if err := confirm(c, yes, "Replace the result of %s?", key); err != nil {
		return err
	}
	if plan, err = operate.On(l.Engine).Edit(c.ctx, id, key, raw, o); err != nil {
		return notEdited(c, l, s, err)
	}
	return c.print(planOf(s, &plan), func() {
		c.out.Printf("Edited %s of %s. Resume with: %s\n", show.Escape(key), show.Escape(id), resumeCommandOf(c, s))
	})
}

func notEdited(c *invocation, l *target.Local, s *target.Run, err error) error {
	f := c.explain(l.Lost(s.ID, err))
	if f.Code == "internal" {
		f.Code, f.Exit = "refused", ExitRefused
	}
	e := (*operate.EditError)(nil)
	if known := errors.As(err, &e); s.Live && !(known && (e.Forceable || e.Unknown)) {
		f.Next = "Hold it first: " + c.self("pause", s.ID)
	}
	return f
}

// editor lets a person change the recorded result in an editor.
func editor(c *invocation, l *target.Local, id, key string) (json.RawMessage, error) {
	program := show.OrElse(c.getenv("VISUAL"), c.getenv("EDITOR"))
	if program == "" || !c.interactive() {
		return nil, show.Usage("no new result is given: use --value, or set EDITOR and run this in a terminal")
	}
	seq, err := c.checkpoint(id, key)
	if err != nil {
		return nil, err
	}
	old, err := valueAt(c, l, id, seq)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "durable-edit-*.json") // 0600: it is user data
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	var text bytes.Buffer
	if err := json.Indent(&text, old, "", "  "); err != nil {
		return nil, fmt.Errorf("the recorded result of %s is not JSON and cannot be edited by hand: %w", key, err)
	}
	text.WriteByte('\n')
	if _, err = f.Write(text.Bytes()); err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(c.ctx, "sh", "-c", program+` "$1"`, "sh", f.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, &show.Failure{Code: "declined", Exit: ExitUsage, Message: "The editor failed; nothing was changed: " + err.Error()}
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSpace(b)
	switch {
	case !json.Valid(b):
		return nil, show.Usage("what was written is not JSON; nothing was changed")
	case bytes.Equal(b, bytes.TrimSpace(text.Bytes())):
		return nil, &show.Failure{Code: "declined", Exit: ExitUsage, Message: "Nothing was edited."}
	}
	return b, nil
}

// valueAt returns the value of an event as JSON.
func valueAt(c *invocation, l *target.Local, id string, seq int64) (json.RawMessage, error) {
	h, err := l.Store.Load(c.ctx, id, store.Cursor{All: true, After: seq - 1, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, l.Lost(id, err)
	}
	for ev, err := range h.Events {
		if err != nil {
			return nil, err
		}
		p, err := operate.On(l.Engine).Payload(id, ev)
		if err != nil {
			return nil, err
		}
		if v := target.JSON(p); v != nil {
			return v, nil
		}
		break
	}
	return json.RawMessage("null"), nil
}
