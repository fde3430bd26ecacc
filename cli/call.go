package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

// A call is one execution of one command.
type call struct {
	*app
	cmd  *cobra.Command
	ctx  context.Context
	out  *stream // results
	err  *stream // messages and progress
	done []func()
	to   target // once it was asked for

	signals chan os.Signal // once they were caught
}

func (a *app) newCall(cmd *cobra.Command) *call {
	c := &call{app: a, cmd: cmd, ctx: cmd.Context()}
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	c.out = newStream(cmd.OutOrStdout(), a.flags.noColor, a.getenv)
	c.err = newStream(cmd.ErrOrStderr(), a.flags.noColor, a.getenv)
	return c
}

// close frees what the call has opened, the last first.
func (c *call) close() {
	for i := len(c.done) - 1; i >= 0; i-- {
		c.done[i]()
	}
	c.done = nil
}

// finish prints an error and makes of it what the command returns.
func (c *call) finish(err error) error {
	if err == nil {
		return nil
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit // printed by a call inside this one
	}
	f := c.explain(err)
	if f.silent {
		return &ExitError{Code: f.exit}
	}
	if c.flags.json {
		_ = c.err.json(map[string]any{"error": map[string]string{"code": f.code, "message": f.message, "next": f.next}})
		return &ExitError{Code: f.exit, Err: err}
	}
	lines := []string{f.message}
	if f.lines {
		lines = strings.Split(f.message, "\n")
	}
	for _, line := range lines {
		c.err.printf("%s\n", escape(line))
	}
	// What to do next is ours, and quoted where others have a word in it.
	if f.next != "" {
		c.err.printf("%s\n", f.next)
	}
	if f.code == "usage" && f.next == "" {
		help := slices.Concat(c.mount(), c.path(), []string{"--help"})
		c.err.printf("Usage: %s\nHelp: %s\n", c.cmd.UseLine(), quoteAll(help))
	}
	return &ExitError{Code: f.exit, Err: err}
}

// say prints a message for people, on standard error; with --json, nothing.
func (c *call) say(format string, args ...any) {
	if !c.flags.json {
		c.err.printf(format+"\n", args...)
	}
}

// hint is say for what only a person at a terminal wants to read.
func (c *call) hint(format string, args ...any) {
	if c.out.tty {
		c.say(format, args...)
	}
}

// print prints the result of a command: v with --json, else what human prints.
func (c *call) print(v any, human func()) error {
	if c.flags.json {
		return c.out.json(v)
	}
	human()
	return nil
}

// target returns what the command acts on, opening it when it is first asked for.
func (c *call) target() (target, error) {
	if c.to != nil {
		return c.to, nil
	}
	place, err := c.place()
	if err != nil {
		return nil, err
	}
	if place.server != "" {
		if c.to, err = c.connect(place); err != nil {
			return nil, err
		}
		return c.to, nil
	}
	l, err := c.openLocal(place)
	if err != nil {
		return nil, err
	}
	c.to = l
	return l, nil
}

// local returns the target of commands that need a store itself.
func (c *call) local() (*local, error) {
	t, err := c.target()
	if err != nil {
		return nil, err
	}
	l, ok := t.(*local)
	if !ok {
		return nil, &failure{code: "needs_store", exit: ExitUsage, message: c.cmd.CommandPath() + " works on a store, not on a server.", next: "Name its store: --store DSN"}
	}
	return l, nil
}

// path is where the command stands below the root of this tree.
func (c *call) path() []string {
	var words []string
	for cmd := c.cmd; cmd != nil && cmd.Name() != "durable"; cmd = cmd.Parent() {
		words = append([]string{cmd.Name()}, words...)
	}
	return words
}

// mount is how this tree is reached from the program: its name and what the
// user's own commands put in front of ours, as words.
func (c *call) mount() []string {
	var below []string
	root := c.cmd
	for ; root.Parent() != nil; root = root.Parent() {
	}
	for cmd := c.ours(); cmd != root; cmd = cmd.Parent() {
		below = append([]string{cmd.Name()}, below...)
	}
	if len(c.program) > 0 {
		return append(append([]string{}, c.program...), below...)
	}
	return append(calledAs(), below...)
}

// calledAs is how this program was called, as words. What "go run" has built is gone
// when the command ends, so it is built again.
func calledAs() []string {
	if pkg := host.GoRun(); pkg != "" {
		return []string{"go", "run", pkg}
	}
	return []string{os.Args[0]}
}

// flagsOf are the flags that name the target again, as words.
func (c *call) flagsOf() []string {
	switch {
	case c.flags.store != "" && !hasPassword(c.flags.store):
		return []string{"--store", c.flags.store}
	case c.flags.server != "":
		return []string{"--server", c.flags.server}
	case c.flags.profile != "":
		return []string{"--profile", c.flags.profile}
	case c.flags.store != "":
		return nil // a password is printed nowhere
	}
	// The shell that the command is pasted into may lack the variable.
	for _, name := range targetVariables {
		v := c.getenv(name)
		switch {
		case v == "":
			continue
		case name != "DURABLE_PROFILE" && hasPassword(v):
			return nil
		}
		return []string{"--" + strings.ToLower(strings.TrimPrefix(name, "DURABLE_")), v}
	}
	return nil
}

// targetVariables name what commands act on where no flag does; the first that is
// set counts.
var targetVariables = []string{"DURABLE_STORE", "DURABLE_SERVER", "DURABLE_PROFILE"}

// unsetTarget begins a command for a program that is to act on its own store: the
// shell that it is pasted into may name another one.
func (c *call) unsetTarget() string {
	words := []string{"env"}
	for _, name := range targetVariables {
		if c.getenv(name) != "" {
			words = append(words, "-u", name)
		}
	}
	if len(words) == 1 {
		return ""
	}
	return strings.Join(words, " ") + " "
}

// self returns a command of this program, as it can be pasted into a shell.
func (c *call) self(args ...string) string {
	return quoteAll(append(c.mount(), guard(c.ours(), args, c.flagsOf())...))
}

// runSelf returns the command that continues a run of a workflow in this program.
func (c *call) runSelf(workflow, id string) string {
	return c.self("run", workflow, "--resume", id)
}

// guard puts what might be taken for a flag, an id that begins with a dash, behind
// "--" at the end.
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

// ours is the root of this tree.
func (c *call) ours() *cobra.Command {
	cmd := c.cmd
	for cmd.Name() != "durable" && cmd.Parent() != nil {
		cmd = cmd.Parent()
	}
	return cmd
}

// commandHeader is the header in which a run that was started at a terminal keeps
// how the program was called that has its code.
const commandHeader = "holdfast.command"

// code returns the command that executes a run where its code is: in this
// program, or in the one that has started it. It is empty when nobody recorded
// which one that is.
func (c *call) code(s *Session) string {
	if l, isLocal := c.to.(*local); isLocal && l.mounted && c.serves(s.Workflow, s.Version) {
		return c.runSelf(s.Workflow, s.ID)
	}
	words := recorded(s)
	if words == nil {
		return ""
	}
	command := c.unsetTarget() + quoteAll(append(words, guard(c.ours(), []string{"run", s.Workflow, "--resume", s.ID}, nil)...))
	dir, err := os.Getwd()
	relative := words[0] == "go" || strings.Contains(words[0], "/") && !filepath.IsAbs(words[0])
	if relative && s.env != nil && s.env.Dir != "" && (err != nil || dir != s.env.Dir) {
		command = "cd " + quote(s.env.Dir) + " && " + command
	}
	return command
}

// recorded returns the words with which the program of a run was called. Whoever
// starts a run chooses its headers, so they are believed only as far as they name
// the program that the engine itself has recorded, in words that no shell and no
// flag reads anything into.
func recorded(s *Session) []string {
	words := strings.Fields(s.headers[commandHeader])
	if len(words) == 0 || len(words) > 8 || s.env == nil {
		return nil
	}
	built := s.env.Package != "" && len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == s.env.Package
	if !built && filepath.Base(words[0]) != s.env.Program {
		return nil
	}
	for _, w := range words {
		if quote(w) != w || strings.HasPrefix(w, "-") {
			return nil
		}
	}
	return words
}

// follow is where a run that is in progress can be watched.
func (c *call) follow(id string) string { return "Follow it: " + c.self("watch", id) }

// inProgress says who has a run.
func (c *call) inProgress(id, owner string) string {
	who := ""
	if l, ok := c.to.(*local); ok {
		who = l.who(c.ctx, owner)
	}
	if who != "" {
		who = " (" + who + ")"
	}
	return fmt.Sprintf("%s is already in progress%s.", id, who)
}

// serves reports whether the mounted engine has the code of a workflow.
func (c *call) serves(workflow, version string) bool {
	return store.Serves(c.served(), workflow, version)
}

// served lists what the mounted engine has the code of, by name: it is what the
// engine tells all others.
func (c *call) served() []store.Served {
	if c.engine == nil {
		return nil
	}
	executors, err := c.engine.Store().Executors(c.ctx)
	if err != nil {
		return nil
	}
	for _, x := range executors {
		if x.ID == c.engine.ID() {
			slices.SortFunc(x.Serves, func(a, b store.Served) int { return cmp.Compare(a.Workflow, b.Workflow) })
			return x.Serves
		}
	}
	return nil
}
