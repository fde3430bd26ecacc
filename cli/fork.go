package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

type forked struct {
	ID     string   `json:"id"`
	From   string   `json:"from"`
	At     int64    `json:"at"`
	Kept   []string `json:"kept"`
	Again  []string `json:"runs_again"`
	DryRun bool     `json:"dry_run,omitempty"`
}

func (a *app) forkCommand() *cobra.Command {
	var from, id string
	var dryRun, yes bool
	cmd := a.command(spec{
		use: "fork ID", short: "Copy a run up to a checkpoint, as a new run", min: 1, max: 1, ids: true,
		long: `fork makes a new run of what another one has recorded, up to a checkpoint. The steps
behind it run again, with new idempotency keys: what they did happens once more. The
source is not changed.`,
		example: `  durable fork order-40 --from 2 --id order-43
  durable fork order-40 --from reserve --dry-run
  durable resume order-42 --from-checkpoint 2`,
		do: func(c *call, args []string) error { return c.fork(args[0], from, id, dryRun, yes) },
	})
	fl := cmd.Flags()
	fl.StringVar(&from, "from", "", "the last checkpoint to copy (its ID, or the step's name); without it, all of them")
	fl.StringVar(&id, "id", "", "the new run's id; without it a readable one is made")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would be kept and what would run, and do nothing")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (c *call) fork(id, from, newID string, dryRun, yes bool) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	b, s, err := t.tell(c.ctx, id)
	if err != nil {
		return err
	}
	at, err := c.checkpoint(id, from)
	if err != nil {
		return err
	}
	f := forked{ID: newID, From: id, At: at, Kept: []string{}, Again: []string{}, DryRun: dryRun}
	for _, lane := range b.Outline().Lanes {
		for _, r := range lane.Rows {
			if r.Outcome != 0 && (at == 0 || r.Outcome <= at) {
				f.Kept = append(f.Kept, r.Key)
			} else {
				f.Again = append(f.Again, r.Key)
			}
		}
	}
	for _, name := range s.declared {
		if !slices.Contains(f.Kept, name) && !slices.Contains(f.Again, name) {
			f.Again = append(f.Again, name)
		}
	}
	tell := func(s *stream) {
		s.printf("Kept: %s. Runs again with new idempotency keys: %s.\n", c.names(s, orNone(f.Kept)), c.names(s, orNone(f.Again)))
	}
	if dryRun {
		return c.print(f, func() {
			tell(c.out)
			c.out.printf("Dry run: nothing changed, nothing ran.\n")
		})
	}
	if !c.flags.json {
		tell(c.err)
	}
	if err := c.confirm(yes, "Continue?"); err != nil {
		return err
	}
	if f.ID, err = t.fork(c.ctx, id, at, newID); err != nil {
		return err
	}
	return c.print(f, func() {
		c.out.printf("Forked to %s. %s\n", escape(f.ID), c.follow(f.ID))
	})
}

func orNone(list []string) []string {
	if len(list) == 0 {
		return []string{"nothing"}
	}
	return list
}
