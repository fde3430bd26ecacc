package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

func stuckCommand(a *app) *cobra.Command {
	limit := 100
	cmd := a.command(spec{
		use: "stuck", short: "List runs that cannot go on by themselves, and what to do",
		long: `stuck lists the runs that cannot go on by themselves: parked, paused, quarantined, left
by a process that is gone, or without anybody alive who has their code; each with how
long it has not moved, the reason and the next command. It exits with 6 when there is one.
While a program is deployed anew, its runs are listed for a moment.

A run that waits for a child of which it will not hear is found only if no more runs wait
than --limit; with --limit 0 every run that waits is looked at. The same holds for signals
that a run has and does not wait for. They are named below the list and count as nothing
stuck: most such names are mistyped, but a signal may come early.`,
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
			if c.out.TTY {
				rows.Head, rows.Wide = []string{"ID", "FOR", "REASON", "NEXT"}, 2
			}
			for i := range list {
				if c.flags.json {
					if err := c.out.JSON(&list[i]); err != nil {
						return err
					}
					continue
				}
				row := []string{list[i].ID, show.FirstLine(show.OrElse(list[i].Reason, list[i].Code)), list[i].Next}
				if c.out.TTY {
					row = slices.Insert(row, 1, outline.About(store.TimeOf(time.Now()).Sub(list[i].Moved)))
				}
				rows.Rows = append(rows.Rows, row)
			}
			if len(list) == 0 {
				c.say("Nothing is stuck.")
				return sayUnawaited(c, t, limit)
			}
			if !c.flags.json {
				c.out.Table(rows)
			}
			if limit > 0 && len(list) >= limit {
				c.say("There may be more; see them with --limit 0.")
			}
			if err := sayUnawaited(c, t, limit); err != nil {
				return err
			}
			return show.Quiet(ExitFound)
		},
	})
	cmd.Flags().IntVar(&limit, "limit", limit, "how many of each kind at most; 0: all")
	return cmd
}

// sayUnawaited names the runs that have signals which they do not wait for.
func sayUnawaited(c *invocation, t target.Target, limit int) error {
	l, isLocal := t.(*target.Local)
	if !isLocal || c.flags.json {
		return nil
	}
	list, err := l.Unawaited(c.ctx, limit)
	if err != nil {
		return err
	}
	for i := range list {
		u := &list[i]
		c.say("%s waits for %s, and has %s that it does not wait for: %s", show.Escape(u.ID), show.Escape(strings.Join(u.Waits, ", ")),
			count.Of(len(u.Kept), "signal"), show.Escape(strings.Join(u.Kept, ", ")))
	}
	return nil
}
