package show

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-dev/holdfast/internal/host"
)

// Commands writes commands of this program so that they can be pasted into a shell.
type Commands struct {
	// Program is how this tree is called: the program's name and the user's own
	// commands before ours, as words.
	Program []string
	target  []string // the flags that name the target again
	unset   string   // precedes a command for a program that must act on its own store
	path    []string // the command being executed, below the root of this tree
	Args    []string // its arguments
	given   []string // its flags, but for those that name the target
	root    *cobra.Command
}

// NewCommands returns the commands of the tree that cmd is in. program overrides
// how the program was called; target and unset are those of the fields.
func NewCommands(cmd *cobra.Command, program, target []string, unset string) *Commands {
	c := &Commands{target: target, unset: unset, Args: cmd.Flags().Args(), given: given(cmd), root: cmd}
	for ; c.root.Name() != "durable" && c.root.Parent() != nil; c.root = c.root.Parent() {
		c.path = append([]string{c.root.Name()}, c.path...)
	}
	var below []string
	for up := c.root; up.Parent() != nil; up = up.Parent() {
		below = append([]string{up.Name()}, below...)
	}
	if len(program) == 0 {
		program = calledAs()
	}
	c.Program = slices.Concat(program, below)
	return c
}

// given returns the flags that were given to a command, as words, but for those that name the
// target.
func given(cmd *cobra.Command) (words []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		flag := "--" + f.Name
		switch list, isList := f.Value.(pflag.SliceValue); {
		case f.Name == "store" || f.Name == "server" || f.Name == "profile":
		case isList:
			for _, v := range list.GetSlice() {
				if f.Value.Type() == "stringSlice" && strings.ContainsAny(v, ",\"\n") {
					v = `"` + strings.ReplaceAll(v, `"`, `""`) + `"` // it is read as CSV
				}
				words = append(words, flag+"="+v)
			}
		case f.Value.Type() != "bool":
			words = append(words, flag+"="+f.Value.String())
		case f.Value.String() == "true":
			words = append(words, flag)
		default:
			words = append(words, flag+"=false")
		}
	})
	return words
}

// calledAs returns the words with which this program was called. A program built by "go
// run" is gone when the command ends, so it must be built again.
func calledAs() []string {
	if pkg := host.GoRun(); pkg != "" {
		return []string{"go", "run", pkg}
	}
	return []string{os.Args[0]}
}

// Path returns the command being executed, below the root of this tree.
func (c *Commands) Path() []string { return c.path }

// Self returns a command of this program.
func (c *Commands) Self(args ...string) string { return c.With(c.target, args...) }

// With is Self with flags instead of those that name the target again.
func (c *Commands) With(flags []string, args ...string) string {
	return QuoteAll(slices.Concat(c.Program, guard(c.root, args, flags)))
}

// Run returns the command that continues a run of a workflow in this program.
func (c *Commands) Run(workflow, id string) string {
	return c.Self("run", workflow, "--resume", id)
}

// RunIn is Run for another program, by how it is called, on its own store.
func (c *Commands) RunIn(program []string, workflow, id string) string {
	return c.unset + QuoteAll(slices.Concat(program, guard(c.root, []string{"run", workflow, "--resume", id}, nil)))
}

// ThisWith returns the command being executed, on another target.
func (c *Commands) ThisWith(target ...string) string {
	return c.With(slices.Concat(c.given, target), slices.Concat(c.path, c.Args)...)
}

// Again returns the command being executed, for the program's own store; empty if it
// acts on that already.
func (c *Commands) Again() string {
	if c.unset == "" {
		return ""
	}
	return c.unset + c.ThisWith()
}

// Help returns the command that prints the help of the one being executed.
func (c *Commands) Help() string {
	return QuoteAll(slices.Concat(c.Program, c.path, []string{"--help"}))
}

// guard puts an id that begins with a dash, and might be taken for a flag, after "--"
// at the end.
func guard(root *cobra.Command, args, flags []string) []string {
	cmd, rest := root, args
	for len(rest) > 0 {
		i := slices.IndexFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == rest[0] })
		if i < 0 {
			break
		}
		cmd, rest = cmd.Commands()[i], rest[1:]
	}
	path := args[:len(args)-len(rest)]
	_, wants, _ := strings.Cut(cmd.Use, " ")
	if wants == "" || len(rest) == 0 || !strings.HasPrefix(rest[0], "-") {
		return slices.Concat(args, flags)
	}
	return slices.Concat(path, rest[1:], flags, []string{"--", rest[0]})
}
