package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/cli/internal/meant"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Command returns the command tree, named durable, to be mounted in a program's own
// cobra command or executed on its own. eng executes the runs that are started and
// resumed here, and commands act on its store unless a flag, the environment or a
// profile names another one. The caller closes eng; an interrupt closes it earlier, to
// save the run. With a nil eng, a program without workflows, a store or a server must
// be named.
//
// Commands print their own errors. Pass what Execute returns to ExitCode.
func Command(eng *durable.Engine, o ...Option) *cobra.Command {
	a := &app{engine: eng}
	defaults(a)
	root := a.group("durable", "See, resume, answer and mend durable runs", `durable lists runs, says where each one stands, and moves those that stopped.

It acts on a store (--store, DURABLE_STORE), on a running program (--server,
DURABLE_SERVER), on a profile of durable.yaml (--profile, DURABLE_PROFILE), or, where
it is mounted in a program, on that program's store. Workflow code executes only in
a program that has it.

Exit codes: 0 done; 1 the run failed, or something unexpected; 2 usage, or not
confirmed; 3 not found, nothing to resume; 4 refused; 5 store or server not reachable;
6 something was found wrong; 130, 143 interrupted.`, `  durable ls --resumable
  durable resume order-42 --dry-run
  durable resume order-42
  durable approve order-42`)
	if err := guard.Options(a, o); err != nil {
		root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
			return a.invocation(cmd).finish(show.Usage("cli.Command: %s", err))
		}
	}
	f := root.PersistentFlags()
	f.StringVar(&a.flags.Store, "store", "", "act on this store: a SQLite file or a postgres:// URL without password (env DURABLE_STORE)")
	f.StringVar(&a.flags.Server, "server", "", "act on the program that serves this URL (env DURABLE_SERVER)")
	f.StringVar(&a.flags.Profile, "profile", "", "act on a profile of durable.yaml (env DURABLE_PROFILE)")
	f.BoolVar(&a.flags.json, "json", false, "print JSON: one object, or one a line")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colour (env NO_COLOR)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
			return unknown(a.invocation(cmd), args) // its flags are those of the command that is meant
		}
		return a.invocation(cmd).finish(show.Usage("%s", err))
	})
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		typed := show.QuoteAll(a.invocation(cmd).commands.Program)
		cmd.Example = strings.ReplaceAll(cmd.Example, "  durable ", "  "+typed+" ")
		help(cmd, args)
	})
	root.AddCommand(
		runCommand(a), resumeCommand(a), resumeLastCommand(a),
		sessionsCommand(a), listCommand(a), showCommand(a), approveCommand(a), rejectCommand(a), signalCommand(a),
		cancelCommand(a), pauseCommand(a), unpauseCommand(a), watchCommand(a),
		branchesCommand(a), stuckCommand(a), queuesCommand(a), schedulesCommand(a), forkCommand(a), checkpointsCommand(a),
		historyCommand(a), archiveCommand(a), schemaCommand(a), doctorCommand(a), versionCommand(a), completionCommand(a),
	)
	root.Version = builtWith().String()
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}

// app is the command tree and its options. Its flags, like cobra's, belong to one
// execution at a time.
type app struct {
	engine      *durable.Engine
	backends    []Backend
	schema      func() (Schema, error)
	program     []string
	archive     archive.Archive
	archiveKind string
	exit        func(code int)
	getenv      func(string) string

	flags struct {
		target.Flags
		json, noColor bool
	}
}

// A spec describes one command.
type spec struct {
	use     string
	aliases []string
	short   string
	long    string
	example string // lines that begin "  durable "
	min     int    // number of arguments
	max     int
	ids     bool                                // the first argument is the id of a run
	lists   bool                                // it lists runs: an argument would be the id of one
	values  func(c *invocation, n int) []string // completes argument n
	do      func(c *invocation, args []string) error
}

// command makes a command that does something, as opposed to a group.
func (a *app) command(s spec) *cobra.Command {
	if s.long == "" {
		s.long = s.short + "."
	}
	cmd := &cobra.Command{
		Use: s.use, Aliases: s.aliases, Short: s.short, Long: s.long, Example: s.example,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < s.min:
			return a.invocation(cmd).finish(show.Usage("%s needs %s", cmd.Name(), missing(cmd.Use, len(args))))
		case len(args) > s.max:
			c := a.invocation(cmd)
			f := show.Usage("%s does not take %q", cmd.Name(), args[s.max])
			if s.lists {
				f.Next = "Did you mean: " + c.self("show", args[s.max])
			}
			return c.finish(f)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := a.invocation(cmd)
		defer c.close()
		if err := emptyFlag(cmd); err != nil {
			return c.finish(err)
		}
		err := s.do(c, args)
		if err == nil {
			err = c.out.Lost()
		}
		return c.finish(err)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c := a.invocation(cmd)
		defer c.close()
		switch {
		case s.ids && len(args) == 0:
			return completeIDs(c), cobra.ShellCompDirectiveNoFileComp
		case s.values != nil && len(args) < s.max:
			return s.values(c, len(args)), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// targets are the flags that name what a command acts on.
var targets = []string{"store", "server", "profile"}

// maybeEmpty are the flags that say something to people, who may have nothing to say.
var maybeEmpty = []string{"reason", "by"}

// emptyFlag refuses a flag that was given without a value, as a script gives it whose variable is
// not set: without the flag the command would act on something else, such as another store, all
// workflows, or a new run.
func emptyFlag(cmd *cobra.Command) (err error) {
	inherited := cmd.InheritedFlags() // among them those of the program that mounts the commands
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || slices.Contains(maybeEmpty, f.Name) || inherited.Lookup(f.Name) == f && !slices.Contains(targets, f.Name) {
			return
		}
		values, isList := f.Value.(pflag.SliceValue)
		switch {
		case f.Value.Type() == "string" && f.Value.String() == "",
			isList && (len(values.GetSlice()) == 0 || slices.Contains(values.GetSlice(), "")):
			err = show.Usage("--%s was given without a value: give one, or leave it out", f.Name)
		}
	})
	return err
}

// missing names the first argument of a usage line that was not given.
func missing(use string, given int) string {
	words := strings.Fields(use)[1:]
	if given < len(words) {
		return strings.Trim(words[given], "[]")
	}
	return "more arguments"
}

// group makes a command that only holds other commands.
func (a *app) group(use, short, long, example string, aliases ...string) *cobra.Command {
	return &cobra.Command{
		Use: use, Aliases: aliases, Short: short, Long: long, Example: example,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(a.invocation(cmd), args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// unknown refuses a command that does not exist, and says which one may be meant.
func unknown(c *invocation, args []string) error {
	f, path := show.Usage("%s has no command %q", c.cmd.CommandPath(), args[0]), c.commands.Path()
	if args[0] == "help" {
		f.Next = "Did you mean: " + c.commands.With([]string{"--help"}, slices.Concat(path, args[1:])...)
	} else if near := meant.Command(c.cmd, path, args); near != nil {
		f.Next = "Did you mean: " + c.self(near...)
	}
	return c.finish(f)
}
