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
	return offered(list, func(r *target.Run) (word, about string) {
		return r.ID, show.Escape(r.Workflow) + " " + string(r.Status)
	})
}

// offered returns the words that a shell may offer, each with what it is, if that is not empty:
// those that the shell would not split.
func offered[T any](list []T, of func(*T) (word, about string)) (words []string) {
	for i := range list {
		word, about := of(&list[i])
		if show.Quote(word) != word {
			continue
		}
		if about != "" {
			word += "\t" + about
		}
		words = append(words, word)
	}
	return words
}

// firstName offers the names of what list has, for the first argument of a command.
func firstName[T any](list func(*invocation, target.Target) ([]T, error), name func(*T) string) func(*invocation, int) []string {
	return func(c *invocation, n int) []string {
		t, err := c.target()
		if err != nil || n > 0 {
			return nil
		}
		found, err := list(c, t)
		if err != nil {
			return nil
		}
		return offered(found, func(v *T) (string, string) { return name(v), "" })
	}
}
