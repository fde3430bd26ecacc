package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func runCommand(a *app) *cobra.Command {
	var (
		start         target.NewRun
		input, resume string
		last, detach  bool
		f             resumeFlags
	)
	cmd := a.command(spec{
		use: "run WORKFLOW", short: "Start a run, or continue one with --resume", min: 1, max: 1,
		long: `run starts a run of a workflow and stays until it ends. Its id is printed first; with
it the run can be resumed, whatever happens. Ctrl-C stops it and saves it.

Without --input nothing is started, unless the workflow is known to take none;
--input null starts it with the zero value of its input.

With --exclusive it is the only run that holds the key, until it ends; while another
run holds it, nothing is started. With --queue or --delay the run only gets in line: a
program that serves its queue, and has called durable.Recover, executes it.

With --resume it never starts anything: it continues the run with that id.`,
		example: `  durable run checkout --input '{"order":42}'
  durable run checkout --id order-42 --input @order.json
  durable run deploy --input '"v7"' --exclusive worktree:/src/app --exclusive host:web-1
  durable run mail --input '"ada@example.com"' --queue mail --priority 2
  durable run checkout --resume order-42
  durable run checkout --resume-last`,
		values: func(c *invocation, _ int) []string {
			var names []string
			for _, s := range c.served() {
				names = append(names, s.Workflow)
			}
			return names
		},
		do: func(c *invocation, args []string) error {
			switch {
			case resume != "" && last:
				return show.Usage("--resume and --resume-last exclude each other")
			case resume != "" || last:
				for _, name := range ofAStart {
					if c.cmd.Flags().Changed(name) {
						return show.Usage("--resume continues a run as it was started: --%s does not go with it", name)
					}
				}
			}
			switch {
			case resume != "":
				return c.runAgain(args[0], resume, f)
			case last:
				return c.runLast(args[0], f)
			}
			return c.run(args[0], start, input, f.detach || detach)
		},
	})
	startFlags(cmd, &start, &input)
	fl := cmd.Flags()
	fl.StringVar(&resume, "resume", "", "continue the run with this `ID`")
	fl.BoolVar(&last, "resume-last", false, "continue the run of this workflow that was interrupted last")
	fl.BoolVar(&f.detach, "detach", false, "do not stay: a program that serves the workflow executes it")
	fl.BoolVar(&f.force, "force", false, "with --resume: see resume --force")
	_ = cmd.RegisterFlagCompletionFunc("resume", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c := a.invocation(cmd)
		defer c.close()
		return completeIDs(c), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// ofAStart are the flags that say how a run is started.
var ofAStart = []string{"id", "input", "exclusive", "attribute", "queue", "partition", "priority", "dedup", "delay", "deadline"}

func startFlags(cmd *cobra.Command, start *target.NewRun, input *string) {
	fl := cmd.Flags()
	fl.StringVar(&start.ID, "id", "", "the run's id; without it a readable one is made")
	fl.StringVar(input, "input", "", "the input: JSON, @FILE, or - for standard input")
	fl.StringArrayVar(&start.Exclusive, "exclusive", nil, "a `KEY` no other run may hold meanwhile; repeatable")
	fl.StringToStringVar(&start.Attributes, "attribute", nil, "an attribute to find the run by; repeatable")
	fl.StringVar(&start.Queue, "queue", "", "put the run on this `QUEUE`")
	fl.StringVar(&start.Partition, "partition", "", "the part of the queue that it belongs to, such as a tenant")
	fl.IntVar(&start.Priority, "priority", 0, "from -1000 to 1000; in a queue each step counts as an hour of waiting")
	fl.StringVar(&start.Dedup, "dedup", "", "a `KEY` that at most one run of the queue has until it ends")
	fl.DurationVar(&start.Delay, "delay", 0, "let the run begin no earlier than this time from now")
	fl.DurationVar(&start.Deadline, "deadline", 0, "end the run this time after its start, as failed; 0: never")
}

// run starts a run with the value that input denotes.
func (c *invocation) run(workflow string, start target.NewRun, input string, detach bool) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	if start.Input, err = c.readValue(input); err != nil {
		return err
	}
	l, isLocal := t.(*target.Local)
	serves := isLocal && l.Mounted && l.Serves(c.ctx, workflow, "")
	here := serves && !detach && !start.Waits()
	if isLocal && !here && !(serves && start.Waits()) && !l.OthersServe(c.ctx, workflow) {
		if detach && serves {
			return show.Refused("not_registered", "Leave out --detach to execute it here, or start the program that serves it.", "No live process runs %s, and with --detach this one does not either.", workflow)
		}
		return show.Refused("not_registered", c.workflows(), "Nobody alive runs %s; this program lacks its code.", workflow)
	}
	if start.ID != "" {
		if s, err := t.Run(c.ctx, start.ID); err == nil {
			return c.existing(s)
		} else if !errors.Is(err, durable.ErrNotFound) {
			return err
		}
	}
	if err := checkInput(t, workflow, start.Input); err != nil {
		return err
	}
	c.suggest(t, workflow)
	asked := t
	if isLocal && l.Mounted && (detach || start.Waits()) {
		if t, err = c.handsOff(l); err != nil {
			return err
		}
	}
	if here {
		c.catch()
	}
	id, err := t.Start(c.ctx, workflow, start)
	if err != nil {
		return notStarted(c, t, err)
	}
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	c.say("🔄 Starting session: %s", show.Escape(id))
	if idle := untaken(c, asked, id); detach || start.Waits() && idle != "" {
		sayUntaken(c, idle)
		return c.print(result{Session: &s.Session}, func() { c.out.Printf("%s\n", show.Escape(id)) })
	}
	s.LastSeq, s.Key = 0, "" // from the beginning
	return c.stay(t, s, here)
}

// notStarted adds to the refusal of a start which run is in its way.
func notStarted(c *invocation, t target.Target, err error) error {
	if occupied := (*store.OccupiedError)(nil); errors.As(err, &occupied) {
		return c.occupied(t, occupied)
	}
	f := c.explain(err)
	if held := (*durable.ConflictError)(nil); errors.As(err, &held) && held.Dedup != "" {
		f.Next = "Show it: " + c.self("sessions", "show", held.Holder)
	}
	return f
}

// checkInput refuses an input that the workflow cannot take, as far as its code is here, and
// a start without any: a function that takes one would run with its zero value.
func checkInput(t target.Target, workflow string, input json.RawMessage) error {
	err, like := durable.ErrNotRegistered, json.RawMessage(nil)
	if l, ok := t.(*target.Local); ok {
		like, err = operate.On(l.Engine).CheckInput(workflow, input)
	}
	unknown := errors.Is(err, durable.ErrNotRegistered)
	switch {
	case err == nil, unknown && input != nil:
		return nil
	case !unknown && !errors.Is(err, durable.ErrInvalid):
		return err
	}
	f := show.Usage("%s takes an input, and none is given", workflow)
	if unknown {
		f.Message = "no input is given, and it is not known here whether " + workflow + " takes one"
	}
	shown := "JSON"
	if like != nil {
		shown = show.Quote(string(like))
	}
	if f.Next = "Give it: --input " + shown + " (with your values), or --input null for its zero value"; input != nil {
		f.Message = strings.NewReplacer("durable: ", "", ": "+store.ErrInvalid.Error(), "").Replace(err.Error())
		f.Next = "It is like --input " + shown
	}
	return f
}

// workflows says which workflows can be run here.
func (c *invocation) workflows() string {
	var names []string
	for _, s := range c.served() {
		names = append(names, s.Workflow)
	}
	if len(names) == 0 {
		return "Start the program that has its code."
	}
	return "This program has: " + show.Escape(strings.Join(names, ", "))
}

// existing refuses to start a run whose id is taken: no id is used for two runs.
func (c *invocation) existing(s *target.Run) error {
	next := "Show it: " + c.self("sessions", "show", s.ID)
	switch run := c.code(s); {
	case s.Resumable && run != "":
		next = "Resume with: " + run
	case s.Live:
		next = c.follow(s.ID)
	}
	return show.Refused("exists", next, "Session %s exists already (status: %s)", s.ID, s.Status)
}

// suggest says that a run of this workflow was interrupted. It is never resumed
// unasked.
func (c *invocation) suggest(t target.Target, workflow string) {
	list, _, err := t.Runs(c.ctx, target.Query{Resumable: true, Workflows: []string{workflow}, Statuses: []store.Status{store.Interrupted, store.Running, store.Resuming}, Limit: 1})
	if err != nil || len(list) == 0 {
		return
	}
	c.say("%s was interrupted. Resume with: %s", show.Escape(list[0].ID), c.commands.Run(workflow, list[0].ID))
}

// runLast continues the run of a workflow that was interrupted last.
func (c *invocation) runLast(workflow string, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	list, _, err := t.Runs(c.ctx, target.Query{Resumable: true, Workflows: []string{workflow}, Statuses: []store.Status{store.Interrupted, store.Running, store.Resuming}})
	if err != nil {
		return err
	}
	var last *target.Run
	for i := range list {
		if last == nil || list[i].Checkpoint > last.Checkpoint {
			last = &list[i]
		}
	}
	if last == nil {
		return show.NothingToResume(c.commands)
	}
	c.say("Last interrupted session: %s (%s, %s)", show.Escape(last.ID), show.Escape(last.Workflow), c.err.At(last.Checkpoint))
	return c.resume(last.ID, f)
}

// runAgain continues a run in the program that has its code, whatever stopped it. A run
// that only waits, and that no process executes, is executed here from now on.
func (c *invocation) runAgain(workflow, id string, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	if s.Workflow != workflow {
		return show.Refused("conflict", "Resume with: "+c.commands.Run(s.Workflow, id), "%s is a run of %s, not of %s.", id, s.Workflow, workflow)
	}
	l, isLocal := t.(*target.Local)
	if !isLocal || !l.Mounted || f.detach || s.Paused || s.Status != string(store.Waiting) && s.Status != string(store.Pending) {
		return c.resume(id, f)
	}
	if !l.Takes(c.ctx, s) {
		return c.mustBeServed(l, s)
	}
	if s.Live {
		return show.Refused("in_progress", c.follow(id), "%s", c.inProgress(id, s.Owner))
	}
	c.catch()
	if err := l.Engine.Adopt(c.ctx, id); err != nil {
		return c.notResumed(t, s, err)
	}
	if !c.flags.json {
		c.out.Printf("Workflow %s resumed\n", show.Escape(id))
	}
	for _, line := range s.Differences() {
		c.say("  ! %s", show.Escape(line))
	}
	c.asked(t, id)
	return c.stay(t, s, true)
}

// asked says what a continued run is waiting for. On a terminal the view shows it;
// elsewhere the lines of the run come after it.
func (c *invocation) asked(t target.Target, id string) {
	if c.err.TTY {
		return
	}
	open, err := t.Approvals(c.ctx, id)
	if err != nil {
		return // only used to say more
	}
	for _, w := range open {
		c.say("? %s  Answer: %s", show.Escape(w.Prompt), approves(c, id, w.Key, len(open) > 1))
	}
}

// maxInput is the largest value that is read.
const maxInput = 64 << 20

// readValue reads a JSON value given literally, as @FILE, or as - for standard input.
// An empty text is no value.
func (c *invocation) readValue(text string) (json.RawMessage, error) {
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
		return nil, show.Usage("the value cannot be read: %s", err)
	case len(b) > maxInput:
		return nil, show.Usage("the value is larger than %s", show.Bytes(maxInput))
	case !json.Valid(b):
		return nil, show.Usage("the value is not JSON; text is written in quotation marks: '\"text\"'")
	}
	return b, nil
}
