package cli

import (
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/spf13/cobra"
)

func stuckCommand(a *app) *cobra.Command {
	limit := 100
	cmd := a.command(spec{
		use: "stuck", short: "List runs that cannot go on by themselves, and what to do",
		long: `stuck lists the runs that cannot go on by themselves: parked, paused, quarantined, left
by a process that is gone, or without anybody alive who has their code; each with the
reason and the next command. It exits with 6 when there is one.

A run that waits for a child of which it will not hear is found only if no more runs wait
than --limit; with --limit 0 every run that waits is looked at.`,
		example: `  durable stuck
  durable stuck --json
  durable resume order-42 --dry-run`,
		do: func(c *invocation, _ []string) error {
			if limit < 0 {
				return show.Usage("--limit must not be negative")
			}
			t, err := c.target()
			if err != nil {
				return err
			}
			list, err := t.Stuck(c.ctx, limit)
			if err != nil {
				return err
			}
			rows := show.Table{Head: []string{"ID", "REASON", "NEXT"}, Wide: 1}
			for i := range list {
				if c.flags.json {
					if err := c.out.JSON(&list[i]); err != nil {
						return err
					}
					continue
				}
				rows.Rows = append(rows.Rows, []string{list[i].ID, show.FirstLine(show.OrElse(list[i].Reason, list[i].Code)), list[i].Next})
			}
			if len(list) == 0 {
				c.say("Nothing is stuck.")
				return nil
			}
			if !c.flags.json {
				c.out.Table(rows)
			}
			if limit > 0 && len(list) >= limit {
				c.say("There may be more; see them with --limit 0.")
			}
			return show.Quiet(ExitFound)
		},
	})
	cmd.Flags().IntVar(&limit, "limit", limit, "how many of each kind at most; 0: all")
	return cmd
}
