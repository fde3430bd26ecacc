package cli

import (
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/spf13/cobra"
)

func completionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return a.command(spec{
		use: "completion SHELL", short: "Print a completion script for a shell", min: 1, max: 1,
		long: `completion prints a script that completes commands, flags and the ids of runs, for
bash, zsh, fish or powershell.`,
		example: `  source <(durable completion bash)
  durable completion zsh > "${fpath[1]}/_durable"
  durable completion fish | source`,
		values: func(*invocation, int) []string { return shells },
		do: func(c *invocation, args []string) error {
			root := c.cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.out.W, true)
			case "zsh":
				return root.GenZshCompletion(c.out.W)
			case "fish":
				return root.GenFishCompletion(c.out.W, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(c.out.W)
			}
			return show.Usage("there is no completion for %q; there is one for bash, zsh, fish and powershell", args[0])
		},
	})
}

// completeIDs lists the ids of the newest runs, for a shell to offer. On an error it
// lists none.
func completeIDs(c *invocation) []string {
	t, err := c.target()
	if err != nil {
		return nil
	}
	list, _, err := t.Runs(c.ctx, target.Query{Limit: 50})
	if err != nil {
		return nil
	}
	var ids []string
	for i := range list {
		if show.Quote(list[i].ID) == list[i].ID { // others the shell would split
			ids = append(ids, list[i].ID+"\t"+show.Escape(list[i].Workflow)+" "+list[i].Status)
		}
	}
	return ids
}
