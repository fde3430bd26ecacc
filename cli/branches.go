package cli

import (
	"strconv"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/spf13/cobra"
)

// branchView is a branch as --json prints it.
type branchView struct {
	N          int32  `json:"n"`
	Parent     int32  `json:"parent"`
	Root       bool   `json:"root,omitempty"`
	Generation int    `json:"generation"`
	Cutoff     int64  `json:"cutoff"`
	Scope      string `json:"scope,omitempty"`
	Reason     string `json:"reason,omitempty"`
	CreatedAt  string `json:"created_at,omitempty"`
	Current    bool   `json:"current"`
	InLineage  bool   `json:"in_lineage"`
	Events     int    `json:"events"`
	Left       int    `json:"left"`
}

func branchesCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "branches ID", short: "List the branches of a run's history", min: 1, max: 1, ids: true,
		long: `branches lists where the history of a run was cut, by a repair, a jump or an edit, and
what was left behind there. The current one is marked.`,
		example: `  durable branches order-42
  durable checkpoints list order-42 --all`,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			list, err := t.Branches(c.ctx, args[0])
			if err != nil {
				return err
			}
			rows := show.Table{Head: []string{"BRANCH", "FROM", "KEEPS UP TO", "EVENTS", "LEFT BEHIND", "SCOPE", "REASON"}, Wide: 6}
			for _, b := range list {
				if c.flags.json {
					if err := c.out.JSON(branchView{b.N, b.Parent, b.Root, b.Generation, b.Cutoff, b.Scope, b.Reason, show.RFC3339(b.CreatedAt), b.Current, b.InLineage, b.Events, b.Left}); err != nil {
						return err
					}
					continue
				}
				from := strconv.Itoa(int(b.Parent))
				if b.Root {
					from = ""
				}
				mark := ""
				if b.Current {
					mark = "current"
				}
				rows.Mark = append(rows.Mark, mark)
				rows.Rows = append(rows.Rows, []string{strconv.Itoa(int(b.N)), from, show.Number(b.Cutoff), strconv.Itoa(b.Events), show.Number(int64(b.Left)), b.Scope, b.Reason})
			}
			if !c.flags.json {
				c.out.Table(rows)
			}
			return nil
		},
	})
}
