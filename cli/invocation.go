package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/store"
)

// An invocation is one execution of one command.
type invocation struct {
	*app
	cmd  *cobra.Command
	ctx  context.Context
	out  *show.Stream // results
	err  *show.Stream // messages and progress
	done []func()
	to   target.Target // once target was called

	commands *show.Commands

	signals chan os.Signal // once catch was called
}

func (a *app) invocation(cmd *cobra.Command) *invocation {
	c := &invocation{app: a, cmd: cmd, ctx: cmd.Context()}
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	c.out = show.NewStream(cmd.OutOrStdout(), a.flags.noColor, a.getenv)
	c.err = show.NewStream(cmd.ErrOrStderr(), a.flags.noColor, a.getenv)
	c.commands = show.NewCommands(cmd, a.program, a.flags.Words(a.getenv), target.Unset(a.getenv))
	return c
}

// close frees what the invocation has opened, the last first.
func (c *invocation) close() {
	for i := len(c.done) - 1; i >= 0; i-- {
		c.done[i]()
	}
	c.done = nil
}

// finish prints an error, and turns it into the error that the command returns.
func (c *invocation) finish(err error) error {
	if err == nil {
		return nil
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit // printed by an invocation inside this one
	}
	f := c.explain(err)
	if f.Silent {
		return &ExitError{Code: f.Exit}
	}
	if c.flags.json {
		_ = c.err.JSON(map[string]any{"error": map[string]string{"code": f.Code, "message": f.Message, "next": f.Next}})
		return &ExitError{Code: f.Exit, Err: err}
	}
	lines := []string{f.Message}
	if f.Lines {
		lines = strings.Split(f.Message, "\n")
	}
	for _, line := range lines {
		c.err.Printf("%s\n", show.Escape(line))
	}
	// Next is our own text, in which untrusted words are already quoted.
	if f.Next != "" {
		c.err.Printf("%s\n", f.Next)
	}
	if f.Code == "usage" && f.Next == "" {
		c.err.Printf("Usage: %s\nHelp: %s\n", c.cmd.UseLine(), c.commands.Help())
	}
	return &ExitError{Code: f.Exit, Err: err}
}

// say prints a message for people, on standard error; with --json, nothing.
func (c *invocation) say(format string, args ...any) {
	if !c.flags.json {
		c.err.Printf(format+"\n", args...)
	}
}

// hint is say for what is of use only to a person at a terminal.
func (c *invocation) hint(format string, args ...any) {
	if c.out.TTY {
		c.say(format, args...)
	}
}

// print prints the result of a command: v with --json, else what human prints.
func (c *invocation) print(v any, human func()) error {
	if c.flags.json {
		return c.out.JSON(v)
	}
	human()
	return nil
}

// target returns what the command acts on. The first call opens it.
func (c *invocation) target() (target.Target, error) {
	if c.to != nil {
		return c.to, nil
	}
	place, err := c.place()
	if err != nil {
		return nil, err
	}
	if place.Server != "" {
		r, err := target.Connect(place, c.commands)
		if err != nil {
			return nil, err
		}
		c.to = r
		return r, nil
	}
	l, err := c.openLocal(place)
	if err != nil {
		return nil, err
	}
	c.done = append(c.done, l.Close)
	c.to = l
	return l, nil
}

// place decides what the command acts on.
func (c *invocation) place() (target.Place, error) {
	return target.Find(&c.flags.Flags, c.getenv, c.engine != nil)
}

// openLocal opens the store of a place, or takes the mounted engine's.
func (c *invocation) openLocal(p target.Place) (*target.Local, error) {
	if p.Store == "" {
		return target.Mounted(c.engine, c.commands), nil
	}
	b, err := c.backend(p)
	if err != nil {
		return nil, err
	}
	l, why, err := target.Open(c.ctx, b.Open, b.Look, p.Store, c.commands)
	if err != nil {
		return nil, c.unreachable(p, err)
	}
	if why != nil {
		c.say("Only looking: %s", show.Escape(strings.ReplaceAll(why.Error(), p.Store, target.Mask(p.Store))))
	}
	return l, nil
}

// handsOff returns a target on the same store, through an engine that executes nothing.
func (c *invocation) handsOff(l *target.Local) (*target.Local, error) {
	idle, err := target.OpenLocal(c.ctx, l.Store, c.commands)
	if err != nil {
		return nil, err
	}
	c.done = append(c.done, idle.Close)
	idle.HasCode = l.Mounted
	return idle, nil
}

// backend returns the backend that opens a store.
func (c *invocation) backend(p target.Place) (Backend, error) {
	for _, b := range c.backends {
		if b.Takes(p.Store) {
			return b, nil
		}
	}
	f := &show.Failure{
		Code: "unavailable", Exit: ExitUnreachable, Message: fmt.Sprintf("This program cannot open the store %s (from %s).", target.Mask(p.Store), p.From),
		Next: "Use the durable command for it, or leave out " + p.From + " to act on this program's own store.",
	}
	if again := c.commands.Again(); c.engine != nil && again != "" && p.From != "--store" {
		f.Next = "To act on this program's own store: " + again
	}
	return Backend{}, f
}

// unreachable says that a store cannot be opened, unless the error itself says more.
func (c *invocation) unreachable(p target.Place, err error) error {
	f := c.explain(err)
	switch f.Code {
	case "internal", "unavailable", "not_found", "invalid", "damaged", "read_only": // no run is damaged: the file is no store
		silent := f.Code == "unavailable"
		f = &show.Failure{Code: "unavailable", Exit: ExitUnreachable, Err: err, Message: fmt.Sprintf("The store %s cannot be opened: %s", target.Mask(p.Store), strings.ReplaceAll(err.Error(), p.Store, target.Mask(p.Store))), Next: "Check " + p.From + "."}
		if silent { // it was opened, and took no heartbeat
			f.Next = "The terminal begins with a heartbeat, which is a write: the store must take it. Look at a copy meanwhile: " + c.commands.Self("schema", "backup", "COPY")
		}
	}
	return f
}

// local returns the target of a command that needs a store and not a server.
func (c *invocation) local() (*target.Local, error) {
	t, err := c.target()
	if err != nil {
		return nil, err
	}
	l, ok := t.(*target.Local)
	if !ok {
		return nil, &show.Failure{Code: "needs_store", Exit: ExitUsage, Message: c.cmd.CommandPath() + " works on a store, not on a server.", Next: "Name its store: --store DSN"}
	}
	return l, nil
}

// explain says what an error means.
func (c *invocation) explain(err error) *show.Failure {
	return show.Explain(err, c.commands, c.inProgress)
}

// self returns a command of this program that can be pasted into a shell.
func (c *invocation) self(args ...string) string { return c.commands.Self(args...) }

// code returns the command that executes a run in a program that has its code; empty if
// none is known.
func (c *invocation) code(r *target.Run) string { return c.to.Code(c.ctx, r) }

// served lists the workflows whose code the mounted engine has, by name.
func (c *invocation) served() []store.Served { return target.ServedBy(c.ctx, c.engine) }

// inProgress says which process executes a run.
func (c *invocation) inProgress(id, owner string) string {
	who := ""
	if c.to != nil {
		who = c.to.Who(c.ctx, owner)
	}
	if who != "" {
		who = " (" + who + ")"
	}
	return fmt.Sprintf("%s is already in progress%s.", id, who)
}

// follow says how to watch a run that is in progress.
func (c *invocation) follow(id string) string { return "Follow it: " + c.self("watch", id) }

// bar shows the progress of work that may take long; with --json, nothing.
func (c *invocation) bar(total int64, what string) *show.Bar {
	if c.flags.json {
		return &show.Bar{}
	}
	return show.NewBar(c.err, total, what)
}

// untaken returns the workflow of a run that no live program takes; empty: one does, or the run
// has ended.
func untaken(c *invocation, t target.Target, id string) string {
	l, isLocal := t.(*target.Local)
	if !isLocal {
		return "" // the server is a live program
	}
	if s, err := l.Run(c.ctx, id); err == nil && !s.Terminal() && !l.OthersTake(c.ctx, s) {
		return s.Workflow
	}
	return ""
}

// sayUntaken says of which workflows no live program takes runs.
func sayUntaken(c *invocation, workflows ...string) {
	workflows = slices.DeleteFunc(workflows, func(w string) bool { return w == "" })
	if len(workflows) > 0 {
		c.say("No live program takes runs of %s: they go on when one starts and calls durable.Recover.", show.Escape(strings.Join(workflows, ", ")))
	}
}
