package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// resumeFlags are the flags of resume, as they were given.
type resumeFlags struct {
	fromCheckpoint                                string
	force, resetFailures, dryRun, verbose, detach bool
}

func resumeCommand(a *app) *cobra.Command {
	var f resumeFlags
	var many manyFlags
	cmd := a.command(spec{
		use: "resume [ID]", short: "Continue a run that was interrupted or has failed", max: 1, ids: true,
		long: `resume continues a run from the attempt it had reached: what is recorded is not done
again. Without an id it takes the run that was interrupted last, and says which.

In a program that has the workflow's code the run executes here, to its end. Elsewhere
it is handed to a program that serves it. --all hands over every run that --workflow,
--code and --status select.`,
		example: `  durable resume
  durable resume order-42
  durable resume order-42 --dry-run
  durable resume order-42 --from-checkpoint 2
  durable resume order-42 --reset-failures
  durable resume --all --workflow checkout --code definition_changed --dry-run`,
		do: func(c *invocation, args []string) error {
			w, err := many.which(args, f)
			switch {
			case err != nil:
				return err
			case many.all:
				return resumeAll(c, w, f)
			case len(args) == 0:
				return c.resumeLast(f)
			}
			return c.resume(args[0], f)
		},
	})
	f.register(cmd)
	many.register(cmd)
	return cmd
}

func resumeLastCommand(a *app) *cobra.Command {
	var f resumeFlags
	cmd := a.command(spec{
		use: "resume-last", short: "Continue the run that was interrupted last",
		example: `  durable resume-last
  durable resume-last --dry-run`,
		do: func(c *invocation, _ []string) error { return c.resumeLast(f) },
	})
	f.register(cmd)
	return cmd
}

func (f *resumeFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.fromCheckpoint, "from-checkpoint", "", "go back to this checkpoint (its ID, or the step's name); what came later runs again, on a new branch")
	fl.BoolVar(&f.force, "force", false, "match changed code by name; restart a run that has no checkpoint; let what must run once run again; take a cancel back")
	fl.BoolVar(&f.resetFailures, "reset-failures", false, "give the failed step all its attempts again")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be skipped and what would run, and do nothing")
	asksNothing(cmd)
	fl.BoolVar(&f.verbose, "verbose", false, "say of each step what is restored")
	fl.BoolVar(&f.detach, "detach", false, "do not stay: leave it to a program that serves the workflow")
}

// forced says what --force does about changed code, and names the steps that the run
// did not have when it was started, as far as both versions declare them.
func forced(s *target.Run, now *operate.Standing) string {
	line := "what the code calls is matched with the history by name"
	var added []string
	for _, name := range now.Names {
		if len(s.Declared) > 0 && !slices.Contains(s.Declared, name) {
			added = append(added, show.Escape(name))
		}
	}
	switch len(added) {
	case 0:
		return line + "."
	case 1:
		return line + "; " + added[0] + " is new."
	}
	return line + "; " + strings.Join(added, ", ") + " are new."
}

func (c *invocation) resumeLast(f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.LastInterrupted(c.ctx)
	if err != nil {
		return onlyFailed(c, t, err)
	}
	c.say("Last interrupted session: %s (%s, %s)", show.Escape(s.ID), show.Escape(s.Workflow), c.err.At(s.Checkpoint))
	return c.resume(s.ID, f)
}

// resume continues a run: here, if this program has its code, else in a program that
// does.
func (c *invocation) resume(id string, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	o := operate.ResumeOptions{ResetFailures: f.resetFailures, Force: f.force, DryRun: f.dryRun}
	if err := c.mayResume(t, s, f.force); err != nil {
		return err
	}
	if o.FromCheckpoint, err = c.checkpoint(s.ID, f.fromCheckpoint); err != nil {
		return err
	}
	if r, isRemote := t.(*target.Remote); isRemote && s.Status == string(store.Waiting) && !s.Paused && o == (operate.ResumeOptions{}) {
		return c.reviveRemote(r, s, f)
	}
	l, isLocal := t.(*target.Local)
	here := isLocal && l.Mounted && l.Takes(c.ctx, s) && !f.detach
	if isLocal && !here && !f.dryRun && !f.detach {
		if err := c.mustBeServed(l, s); err != nil {
			return err
		}
	}
	if isLocal && f.detach && l.Mounted {
		// The engine that hands it over lacks the code; this one may have it.
		dry := o
		dry.DryRun = true
		if _, err := t.Resume(c.ctx, id, dry); err != nil {
			return c.notResumed(t, s, err)
		}
		if t, err = c.handsOff(l); err != nil {
			return err
		}
	}
	if here && !f.dryRun {
		c.catch()
	}
	standing, _ := t.Standing(c.ctx, id) // only used to say more
	plan, err := t.Resume(c.ctx, id, o)
	if err != nil {
		return c.notResumed(t, s, err)
	}
	if f.dryRun {
		return c.print(planOf(s, &plan), func() {
			c.showPlan(c.out, s, standing, &plan, f.verbose)
			endDryRun(c, s)
		})
	}
	announce := func() {
		if !c.flags.json {
			c.out.Printf("Workflow %s resumed\n", show.Escape(id))
			shown := plan
			// The line about force says that already.
			shown.Warnings = slices.DeleteFunc(slices.Clone(plan.Warnings), func(w string) bool { return f.force && strings.HasPrefix(w, "matched by name: ") })
			c.showPlan(c.err, s, standing, &shown, f.verbose)
		}
		if f.force {
			c.say("Forced: %s", forced(s, &standing))
		}
	}
	if f.detach {
		announce()
		return c.print(planOf(s, &plan), func() {})
	}
	return c.stayResumed(t, s, here, announce)
}

// mayResume refuses runs without asking the engine where it need not, with the reasons
// in their prescribed order: status first, then checkpoint.
func (c *invocation) mayResume(t target.Target, s *target.Run, force bool) error {
	if _, remote := t.(*target.Local); !remote {
		return nil // the server decides, with the same rules
	}
	if s.RowOnly {
		return show.NoHistory(s.ID, c.commands)
	}
	status := store.Status(s.Status)
	if (status == store.Running || status == store.Resuming) && s.Live {
		return show.Refused("in_progress", c.follow(s.ID), "%s", c.inProgress(s.ID, s.Owner))
	}
	switch status {
	case store.Failed, store.Interrupted, store.Running, store.Resuming:
	default:
		if !(status == store.Cancelled && force) {
			return c.notResumable(s, "")
		}
	}
	if s.Paused {
		return c.notResumable(s, "it is paused")
	}
	if s.Damage != nil {
		return s.Damage
	}
	if s.Empty && !force {
		return show.Refused("no_checkpoint", "Restart from its input: "+c.self("resume", s.ID, "--force"), "Workflow %s has no checkpoint.", s.ID)
	}
	return nil
}

// notResumable returns the refusal that scripts recognise by its wording, with what can
// be done instead.
func (c *invocation) notResumable(s *target.Run, reason string) *show.Failure {
	f := show.Refused("not_resumable", "", "Session %s is not resumable (status: %s)", s.ID, s.Status)
	if reason != "" {
		f.Message += ": " + reason
	}
	switch answer := toAnswer(c, s); {
	case s.Paused:
		f.Next = "Let it go on: " + c.self("unpause", s.ID)
	case s.Status == string(store.Completed):
		f.Next = "Copy it: " + c.self("fork", s.ID, "--from", strconv.FormatInt(c.to.FirstCheckpoint(c.ctx, s.ID), 10))
	case s.Status == string(store.Cancelled):
		f.Next = "Take the cancel back: " + c.self("resume", s.ID, "--force")
	case answer != "":
		f.Next = "Answer it: " + answer
	case s.Status == string(store.Waiting) || s.Status == string(store.Pending):
		run := c.code(s)
		l, isLocal := c.to.(*target.Local)
		switch {
		case run != "" && !s.Live && reason == "":
			f.Next = "Execute it: " + run
		case isLocal && !s.Live && !l.OthersTake(c.ctx, s):
			f.Message += ": " + l.Untaken(c.ctx, s)
			f.Next = s.Starter() + ". Follow it: " + c.self("watch", s.ID)
		default:
			f.Next = c.follow(s.ID)
		}
	default:
		f.Next = "Show it: " + c.self("sessions", "show", s.ID)
	}
	return f
}

// mustBeServed refuses a run that would only wait, because no live process has its
// code.
func (c *invocation) mustBeServed(l *target.Local, s *target.Run) error {
	if l.OthersTake(c.ctx, s) {
		return nil
	}
	if _, err := operate.On(l.Engine).Resume(c.ctx, s.ID, operate.ResumeOptions{DryRun: true}); errors.Is(err, durable.ErrUnrecoverable) {
		return err // handing it over would be refused as well
	}
	next := s.Starter() + ", or hand it over for later: " + c.self("resume", s.ID, "--detach")
	if run := c.code(s); run != "" {
		next = "Run: " + run
	}
	why := strings.Replace(l.Untaken(c.ctx, s), "nobody", "Nobody", 1)
	if l.Mounted && l.Serves(c.ctx, s.Workflow, s.Version) {
		return show.Refused("not_registered", next, "%s; nor does this program.", why)
	}
	return show.Refused("not_registered", next, "%s; this program lacks its code.", why)
}

// notResumed explains why the engine refused to resume a run, with what is known of the
// run.
func (c *invocation) notResumed(t target.Target, s *target.Run, err error) error {
	var (
		no       *durable.NotResumableError
		occupied *store.OccupiedError
		changed  *durable.DefinitionChangedError
	)
	switch {
	case errors.As(err, &occupied):
		return c.occupied(t, occupied)
	case errors.As(err, &changed):
		f := show.Refused("definition_changed", "Or match by name: "+c.self("resume", s.ID, "--force"), "%s", changed.Error())
		f.Lines, f.Err = true, err
		return f
	case errors.As(err, &no):
		if now, err := t.Run(c.ctx, s.ID); err == nil {
			if now.Live && (now.Status == string(store.Running) || now.Status == string(store.Resuming)) {
				return show.Refused("in_progress", c.follow(s.ID), "%s", c.inProgress(s.ID, now.Owner))
			}
			s = now
		}
		return c.notResumable(s, no.Reason)
	}
	return c.alsoNext(s, err)
}

// occupied refuses a run whose exclusive key another run holds, and says what can be
// done about that other run.
func (c *invocation) occupied(t target.Target, by *store.OccupiedError) *show.Failure {
	f := show.Refused("occupied", "Show it: "+c.self("sessions", "show", by.Holder), "%s is occupied by %s.", by.Key, by.Holder)
	h, err := t.Run(c.ctx, by.Holder)
	if err != nil {
		return f
	}
	f.Message = fmt.Sprintf("%s is occupied by %s (%s).", by.Key, by.Holder, h.Status)
	switch answer := toAnswer(c, h); {
	case answer != "":
		f.Next = "Answer it: " + answer
	case h.Resumable:
		f.Next = "Resume it: " + c.self("resume", h.ID)
	case h.Live:
		f.Next = c.follow(h.ID)
	}
	return f
}

// alsoNext adds to the refusal of a server, which is shown in the server's words, what
// can be done instead.
func (c *invocation) alsoNext(s *target.Run, err error) error {
	var f *show.Failure
	if !errors.As(err, &f) {
		return err
	}
	switch f.Code { // the server's advice is for callers of its API
	case "damaged":
		f.Next = "Mend it where its store is: " + c.commands.With([]string{"--store", "DSN"}, "checkpoints", "repair", s.ID, "--dry-run")
	case "definition_changed":
		f.Next, f.Lines = "Or match by name: "+c.self("resume", s.ID, "--force"), true
	case "undecodable":
		f.Next = "Run a program that can read it, then: " + c.self("resume", s.ID)
	}
	if f.Next != "" {
		return err
	}
	switch f.Code {
	case "not_resumable":
		f.Next = c.notResumable(s, "").Next
	case "no_checkpoint":
		f.Next = "Restart from its input: " + c.self("resume", s.ID, "--force")
	}
	return err
}

// reviveRemote resumes a run on a server that waits for a person and that no process
// may be executing: the route for that registers it.
func (c *invocation) reviveRemote(r *target.Remote, s *target.Run, f resumeFlags) error {
	if err := r.Revive(c.ctx, s.Workflow, s.ID); err != nil {
		return c.notResumed(r, s, err)
	}
	announce := func() {
		if !c.flags.json {
			c.out.Printf("Workflow %s resumed\n", show.Escape(s.ID))
			c.asked(r, s.ID)
		}
	}
	if f.detach {
		announce()
		return c.print(&s.Session, func() {})
	}
	return c.stayResumed(r, s, false, announce)
}

// checkpoint returns the number of a checkpoint that is named by its number or by the
// key of a step; 0 if none is named.
func (c *invocation) checkpoint(id, name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(name, 10, 64); err == nil && n > 0 {
		return n, nil
	}
	t, err := c.target()
	if err != nil {
		return 0, err
	}
	return t.CheckpointOf(c.ctx, id, name)
}
