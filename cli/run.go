package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func (a *app) runCommand() *cobra.Command {
	var (
		id, input, resume string
		exclusive         []string
		last, detach      bool
		f                 resumeFlags
	)
	cmd := a.command(spec{
		use: "run WORKFLOW", short: "Start a run, or continue one with --resume", min: 1, max: 1,
		long: `run starts a run of a workflow and stays until it ends. Its id is printed first; with
it the run can be resumed, whatever happens. Ctrl-C stops it and saves it.

With --exclusive it is the only run that holds the key, until it ends; while another
run holds it, nothing is started. The flag may be given several times.

With --resume it never starts anything: it continues the run with that id.`,
		example: `  durable run checkout --input '{"order":42}'
  durable run checkout --id order-42 --input @order.json
  durable run deploy --exclusive worktree:/src/app --exclusive host:web-1
  durable run checkout --resume order-42
  durable run checkout --resume-last`,
		values: func(c *call, _ int) []string {
			var names []string
			for _, s := range c.served() {
				names = append(names, s.Workflow)
			}
			return names
		},
		do: func(c *call, args []string) error {
			switch {
			case resume != "" && last:
				return usage("--resume and --resume-last exclude each other")
			case (resume != "" || last) && (id != "" || input != "" || len(exclusive) > 0):
				return usage("--resume continues a run that has an id, an input and its exclusive keys: --id, --input and --exclusive do not go with it")
			case resume != "":
				return c.runAgain(args[0], resume, f)
			case last:
				return c.runLast(args[0], f)
			}
			f.detach = detach || f.detach
			return c.run(args[0], newRun{id: id, exclusive: exclusive}, input, f.detach)
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&id, "id", "", "the run's id; without it a readable one is made")
	fl.StringVar(&input, "input", "", "the input: JSON, @FILE, or - for standard input")
	fl.StringArrayVar(&exclusive, "exclusive", nil, "a `KEY` no other run may hold meanwhile; repeatable")
	fl.StringVar(&resume, "resume", "", "continue the run with this `ID`")
	fl.BoolVar(&last, "resume-last", false, "continue the run of this workflow that was interrupted last")
	fl.BoolVar(&f.detach, "detach", false, "do not stay: a program that serves the workflow executes it")
	fl.BoolVar(&f.force, "force", false, "with --resume: see resume --force")
	_ = cmd.RegisterFlagCompletionFunc("resume", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c := a.newCall(cmd)
		defer c.close()
		return c.completeIDs(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// newRun is a run that is to be started: its id, "" for one that is made, its
// input, and the keys that it alone is to hold.
type newRun struct {
	id        string
	input     json.RawMessage
	exclusive []string
}

// run starts a run, with what input stands for.
func (c *call) run(workflow string, start newRun, input string, detach bool) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	if start.input, err = c.readValue(input); err != nil {
		return err
	}
	l, isLocal := t.(*local)
	here := isLocal && l.mounted && c.serves(workflow, "") && !detach
	if isLocal && !here && !l.somebodyElseServes(c.ctx, workflow) {
		return refused("not_registered", c.workflows(), "Nobody alive runs %s; this program lacks its code.", workflow)
	}
	if start.id != "" {
		if s, err := t.session(c.ctx, start.id); err == nil {
			return c.existing(s)
		} else if !errors.Is(err, durable.ErrNotFound) {
			return err
		}
	}
	c.suggest(t, workflow)
	if detach && isLocal && l.mounted {
		if t, err = l.handsOff(); err != nil {
			return err
		}
	}
	if here {
		c.catch()
	}
	id, err := t.start(c.ctx, workflow, start)
	if occupied := (*store.OccupiedError)(nil); errors.As(err, &occupied) {
		return c.occupied(t, occupied)
	}
	if err != nil {
		return err
	}
	s, err := t.session(c.ctx, id)
	if err != nil {
		return err
	}
	c.say("🔄 Starting session: %s", escape(id))
	if detach {
		return c.print(result{Session: s}, func() { c.out.printf("%s\n", escape(id)) })
	}
	s.lastSeq, s.Key = 0, "" // from the beginning
	return c.stay(t, s, here)
}

// workflows says which workflows can be run here.
func (c *call) workflows() string {
	var names []string
	for _, s := range c.served() {
		names = append(names, s.Workflow)
	}
	if len(names) == 0 {
		return "Start the program that has its code."
	}
	return "This program has: " + escape(strings.Join(names, ", "))
}

// existing refuses to start what is there already: an id is never used for a
// second, fresh run.
func (c *call) existing(s *Session) error {
	next := "Show it: " + c.self("sessions", "show", s.ID)
	switch run := c.code(s); {
	case s.Resumable && run != "":
		next = "Resume with: " + run
	case s.live:
		next = c.follow(s.ID)
	}
	return refused("exists", next, "Session %s exists already (status: %s)", s.ID, s.Status)
}

// suggest says that a run of this workflow was interrupted. It is never resumed
// without being asked for.
func (c *call) suggest(t target, workflow string) {
	list, _, err := t.sessions(c.ctx, query{resumable: true, workflows: []string{workflow}, statuses: []store.Status{store.Interrupted, store.Running, store.Resuming}, limit: 1})
	if err != nil || len(list) == 0 {
		return
	}
	c.say("%s was interrupted. Resume with: %s", escape(list[0].ID), c.runSelf(workflow, list[0].ID))
}

// runLast continues the run of a workflow that was interrupted last.
func (c *call) runLast(workflow string, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	list, _, err := t.sessions(c.ctx, query{resumable: true, workflows: []string{workflow}, statuses: []store.Status{store.Interrupted, store.Running, store.Resuming}})
	if err != nil {
		return err
	}
	var last *Session
	for i := range list {
		if last == nil || list[i].checkpoint > last.checkpoint {
			last = &list[i]
		}
	}
	if last == nil {
		return c.nothing()
	}
	c.say("Last interrupted session: %s (%s, %s)", escape(last.ID), escape(last.Workflow), c.err.at(last.checkpoint))
	return c.resume(last.ID, f)
}

// runAgain continues a run in the program that has its code, whatever stopped it:
// one that only waits, and that nobody executes, is executed here from now on.
func (c *call) runAgain(workflow, id string, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.session(c.ctx, id)
	if err != nil {
		return err
	}
	if s.Workflow != workflow {
		return refused("conflict", "Resume with: "+c.runSelf(s.Workflow, id), "%s is a run of %s, not of %s.", id, s.Workflow, workflow)
	}
	l, isLocal := t.(*local)
	if !isLocal || !l.mounted || f.detach || s.Paused || s.Status != string(store.Waiting) && s.Status != string(store.Pending) {
		return c.resume(id, f)
	}
	if !c.serves(s.Workflow, s.Version) {
		return c.mustBeServed(l, s)
	}
	if s.live {
		return refused("in_progress", c.follow(id), "%s", c.inProgress(id, s.Owner))
	}
	c.catch()
	if err := l.eng.Adopt(c.ctx, id); err != nil {
		return c.notResumed(t, s, err)
	}
	if !c.flags.json {
		c.out.printf("Workflow %s resumed\n", escape(id))
	}
	for _, line := range s.differences() {
		c.say("  ! %s", escape(line))
	}
	c.asked(t, id)
	return c.stay(t, s, true)
}

// asked says what a run waits for that is continued. A view on a terminal has a place
// for it; elsewhere the lines begin behind it.
func (c *call) asked(t target, id string) {
	if c.err.tty {
		return
	}
	open, err := t.approvals(c.ctx, id)
	if err != nil {
		return // it only adds to what is said
	}
	for _, w := range open {
		c.say("? %s  Answer: %s", escape(w.Prompt), c.self("approve", id))
	}
}

func (s *Session) differences() []string {
	if s.info == nil {
		return nil
	}
	return s.info.Differences
}

// somebodyElseServes reports whether a live executor but this one has the code of
// a workflow.
func (l *local) somebodyElseServes(ctx context.Context, workflow string) bool {
	live, err := l.live(ctx)
	if err != nil {
		return false
	}
	for _, x := range live {
		if x.ID != l.eng.ID() && slices.ContainsFunc(x.Serves, func(s store.Served) bool { return s.Workflow == workflow }) {
			return true
		}
	}
	return false
}

// maxInput bounds what is read for a value.
const maxInput = 64 << 20

// readValue reads a JSON value that was given as itself, as @FILE, or as - for
// standard input. Nothing given is no value.
func (c *call) readValue(text string) (json.RawMessage, error) {
	var b []byte
	var err error
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		b, err = io.ReadAll(io.LimitReader(c.cmd.InOrStdin(), maxInput+1))
	case text[0] == '@':
		var f *os.File
		if f, err = os.Open(text[1:]); err == nil {
			b, err = io.ReadAll(io.LimitReader(f, maxInput+1))
			_ = f.Close()
		}
	default:
		b = []byte(text)
	}
	switch {
	case err != nil:
		return nil, usage("the value cannot be read: %s", err)
	case len(b) > maxInput:
		return nil, usage("the value is larger than %s", bytesOf(maxInput))
	case !json.Valid(b):
		return nil, usage("the value is no JSON; text is written in quotation marks: '\"text\"'")
	}
	return b, nil
}
