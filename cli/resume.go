package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// resumeFlags are the flags of resume, as they were given.
type resumeFlags struct {
	fromCheckpoint                                string
	force, resetFailures, dryRun, verbose, detach bool
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := a.command(spec{
		use: "resume [ID]", short: "Continue a run that was interrupted or has failed", max: 1, ids: true,
		long: `resume continues a run from the attempt it had reached: what is recorded is not done
again. Without an id it takes the run that was interrupted last, and says which.

In a program that has the workflow's code the run executes here, to its end. Elsewhere
it is handed to a program that serves it.`,
		example: `  durable resume
  durable resume order-42
  durable resume order-42 --dry-run
  durable resume order-42 --from-checkpoint 2
  durable resume order-42 --reset-failures`,
		do: func(c *call, args []string) error {
			if len(args) == 0 {
				return c.resumeLast(f)
			}
			return c.resume(args[0], f)
		},
	})
	f.register(cmd)
	return cmd
}

func (a *app) resumeLastCommand() *cobra.Command {
	var f resumeFlags
	cmd := a.command(spec{
		use: "resume-last", short: "Continue the run that was interrupted last",
		example: `  durable resume-last
  durable resume-last --dry-run`,
		do: func(c *call, _ []string) error { return c.resumeLast(f) },
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
	fl.BoolVar(&f.verbose, "verbose", false, "say of each step what is restored")
	fl.BoolVar(&f.detach, "detach", false, "do not stay: leave it to a program that serves the workflow")
}

// forced says what --force does to changed code: which of its steps the run did not
// have when it was started, as far as both declare them.
func forced(s *Session, now *durable.Standing) string {
	line := "what the code calls is matched with the history by name"
	var added []string
	for _, name := range now.Names {
		if len(s.declared) > 0 && !slices.Contains(s.declared, name) {
			added = append(added, escape(name))
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

func (c *call) resumeLast(f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.lastInterrupted(c.ctx)
	if err != nil {
		return err
	}
	c.say("Last interrupted session: %s (%s, %s)", escape(s.ID), escape(s.Workflow), c.err.at(s.checkpoint))
	return c.resume(s.ID, f)
}

// resume continues a run: here if its code is here, else wherever it is.
func (c *call) resume(id string, f resumeFlags) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.session(c.ctx, id)
	if err != nil {
		return err
	}
	o := durable.ResumeOptions{ResetFailures: f.resetFailures, Force: f.force, DryRun: f.dryRun}
	if err := c.mayResume(t, s, f.force); err != nil {
		return err
	}
	if o.FromCheckpoint, err = c.checkpoint(s.ID, f.fromCheckpoint); err != nil {
		return err
	}
	if r, isRemote := t.(*remote); isRemote && s.Status == string(store.Waiting) && !s.Paused && o == (durable.ResumeOptions{}) {
		return c.reviveRemote(r, s, f)
	}
	l, isLocal := t.(*local)
	here := isLocal && l.mounted && c.serves(s.Workflow, s.Version) && !f.detach
	if isLocal && !here && !f.dryRun && !f.detach {
		if err := c.mustBeServed(l, s); err != nil {
			return err
		}
	}
	if isLocal && f.detach && l.mounted {
		// Who hands it off has no code, and this program may have it.
		dry := o
		dry.DryRun = true
		if _, err := t.resume(c.ctx, id, dry); err != nil {
			return c.notResumed(t, s, err)
		}
		if t, err = l.handsOff(); err != nil {
			return err
		}
	}
	if here && !f.dryRun {
		c.catch()
	}
	standing, _ := t.standing(c.ctx, id) // it only adds to what is said
	plan, err := t.resume(c.ctx, id, o)
	if err != nil {
		return c.notResumed(t, s, err)
	}
	if f.dryRun {
		return c.print(planOf(s, &plan), func() {
			c.showPlan(c.out, s, standing, &plan, f.verbose)
			c.out.printf("Dry run: nothing changed, nothing ran.\n")
		})
	}
	told := func() {
		if !c.flags.json {
			c.out.printf("Workflow %s resumed\n", escape(id))
			shown := plan
			// The line about force says it.
			shown.Warnings = slices.DeleteFunc(slices.Clone(plan.Warnings), func(w string) bool { return f.force && strings.HasPrefix(w, "matched by name: ") })
			c.showPlan(c.err, s, standing, &shown, f.verbose)
		}
		if f.force {
			c.say("Forced: %s", forced(s, &standing))
		}
	}
	if f.detach {
		told()
		return c.print(planOf(s, &plan), func() {})
	}
	return c.stayResumed(t, s, here, told)
}

// mayResume says why a run is not resumed that the engine, or the server, need
// not be asked about, in the order of the design: its status, its checkpoint.
func (c *call) mayResume(t target, s *Session, force bool) error {
	if _, remote := t.(*local); !remote {
		return nil // the server decides, with the same rules
	}
	if s.rowOnly {
		return c.rowOnly(s.ID)
	}
	status := store.Status(s.Status)
	if (status == store.Running || status == store.Resuming) && s.live {
		return refused("in_progress", c.follow(s.ID), "%s", c.inProgress(s.ID, s.Owner))
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
	if s.damage != nil {
		return s.damage
	}
	if s.empty && !force {
		return refused("no_checkpoint", "Restart from its input: "+c.self("resume", s.ID, "--force"), "Workflow %s has no checkpoint.", s.ID)
	}
	return nil
}

// notResumable is the refusal that scripts know by its words, and what can be
// done instead.
func (c *call) notResumable(s *Session, reason string) *failure {
	f := refused("not_resumable", "", "Session %s is not resumable (status: %s)", s.ID, s.Status)
	if reason != "" {
		f.message += ": " + reason
	}
	switch {
	case s.Paused:
		f.next = "Let it go on: " + c.self("unpause", s.ID)
	case s.Status == string(store.Completed):
		f.next = "Copy it: " + c.self("fork", s.ID, "--from", strconv.FormatInt(c.firstCheckpoint(s.ID), 10))
	case s.Status == string(store.Cancelled):
		f.next = "Take the cancel back: " + c.self("resume", s.ID, "--force")
	case s.prompt:
		f.next = "Answer it: " + c.self("approve", s.ID)
	case s.Status == string(store.Waiting) || s.Status == string(store.Pending):
		run := c.code(s)
		l, isLocal := c.to.(*local)
		switch {
		case run != "" && !s.live:
			f.next = "Execute it: " + run
		case isLocal && !s.live && !l.served(c.ctx, s):
			f.message += fmt.Sprintf(": nobody alive runs %s", s.Workflow)
			f.next = "Start the program that has its code. Follow it: " + c.self("watch", s.ID)
		default:
			f.next = c.follow(s.ID)
		}
	default:
		f.next = "Show it: " + c.self("sessions", "show", s.ID)
	}
	return f
}

// mustBeServed refuses what would only wait for somebody who has the code.
func (c *call) mustBeServed(l *local, s *Session) error {
	if l.served(c.ctx, s) {
		return nil
	}
	if _, err := l.eng.Resume(c.ctx, s.ID, durable.ResumeOptions{DryRun: true}); errors.Is(err, durable.ErrUnrecoverable) {
		return err // it would not be handed over either
	}
	next := "Start the program that has its code, or hand it over for later: " + c.self("resume", s.ID, "--detach")
	if run := c.code(s); run != "" {
		next = "Run: " + run
	}
	return refused("not_registered", next, "Nobody alive runs %s; this program lacks its code.", s.Workflow)
}

// served reports whether a live executor but this one has the code of a run. Where
// that cannot be read, it is taken for yes.
func (l *local) served(ctx context.Context, s *Session) bool {
	live, err := l.live(ctx)
	if err != nil {
		return true
	}
	for _, x := range live {
		if x.ID != l.eng.ID() && store.Serves(x.Serves, s.Workflow, s.Version) {
			return true
		}
	}
	return false
}

// handsOff returns a target on the same store through an engine that executes
// nothing.
func (l *local) handsOff() (*local, error) {
	eng, err := durable.Open(l.call.ctx, l.st, durable.Options{Name: "durable command line", Logger: quietLogger})
	if err != nil {
		return nil, err
	}
	l.call.done = append(l.call.done, func() { _ = eng.Close() })
	return &local{call: l.call, eng: eng, st: l.st}, nil
}

// notResumed explains a refusal of the engine with what is known of the run.
func (c *call) notResumed(t target, s *Session, err error) error {
	var (
		no       *durable.NotResumableError
		occupied *store.OccupiedError
		changed  *durable.DefinitionChangedError
	)
	switch {
	case errors.As(err, &occupied):
		return c.occupied(t, occupied)
	case errors.As(err, &changed):
		f := refused("definition_changed", "Or match by name: "+c.self("resume", s.ID, "--force"), "%s", changed.Error())
		f.lines, f.err = true, err
		return f
	case errors.As(err, &no):
		if now, err := t.session(c.ctx, s.ID); err == nil {
			if now.live && (now.Status == string(store.Running) || now.Status == string(store.Resuming)) {
				return refused("in_progress", c.follow(s.ID), "%s", c.inProgress(s.ID, now.Owner))
			}
			s = now
		}
		return c.notResumable(s, no.Reason)
	}
	return c.alsoNext(s, err)
}

// occupied is the refusal of a run whose exclusive key another run holds, and what
// can be done about that one.
func (c *call) occupied(t target, by *store.OccupiedError) *failure {
	f := refused("occupied", "Show it: "+c.self("sessions", "show", by.Holder), "%s is occupied by %s.", by.Key, by.Holder)
	h, err := t.session(c.ctx, by.Holder)
	if err != nil {
		return f
	}
	f.message = fmt.Sprintf("%s is occupied by %s (%s).", by.Key, by.Holder, h.Status)
	switch {
	case h.prompt:
		f.next = "Answer it: " + c.self("approve", h.ID)
	case h.Resumable:
		f.next = "Resume it: " + c.self("resume", h.ID)
	case h.live:
		f.next = c.follow(h.ID)
	}
	return f
}

// alsoNext adds to the refusal of a server, which is shown as the server says it,
// what can be done instead.
func (c *call) alsoNext(s *Session, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	switch f.code { // what a server says is for those who call its API
	case "damaged":
		f.next = "Mend it where its store is: " + c.onStore("checkpoints", "repair", s.ID, "--dry-run")
	case "definition_changed":
		f.next, f.lines = "Or match by name: "+c.self("resume", s.ID, "--force"), true
	case "undecodable":
		f.next = "Run a program that can read it, then: " + c.self("resume", s.ID)
	}
	if f.next != "" {
		return err
	}
	switch f.code {
	case "not_resumable":
		f.next = c.notResumable(s, "").next
	case "no_checkpoint":
		f.next = "Restart from its input: " + c.self("resume", s.ID, "--force")
	}
	return err
}

// onStore is self for what a server cannot do.
func (c *call) onStore(args ...string) string {
	if _, remote := c.to.(*remote); !remote {
		return c.self(args...)
	}
	return quoteAll(append(c.mount(), guard(c.ours(), args, []string{"--store", "DSN"})...))
}

// reviveRemote resumes a run of a server's that waits for a person and may have
// nobody who executes it: there is a route for that, which registers it.
func (c *call) reviveRemote(r *remote, s *Session, f resumeFlags) error {
	if _, err := r.c.ResumeRun(c.ctx, s.Workflow, s.ID); err != nil {
		return c.notResumed(r, s, r.said(err))
	}
	told := func() {
		if !c.flags.json {
			c.out.printf("Workflow %s resumed\n", escape(s.ID))
			c.asked(r, s.ID)
		}
	}
	if f.detach {
		told()
		return c.print(s, func() {})
	}
	return c.stayResumed(r, s, false, told)
}

// checkpoint returns the number of a checkpoint that was named by its number or
// by the key of a step; 0 for none.
func (c *call) checkpoint(id, name string) (int64, error) {
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
	if l, isLocal := t.(*local); isLocal {
		n, err := l.eng.CheckpointOf(c.ctx, id, name)
		return n, l.lost(id, err)
	}
	at := int64(0)
	for ev, err := range t.History(c.ctx, id) {
		if err != nil {
			return 0, err
		}
		if ev.Key == name && ev.Type.Stable() {
			at = ev.Seq
		}
	}
	if at == 0 {
		return 0, &durable.CheckpointError{RunID: id, Key: name, Reason: "it has no outcome"}
	}
	return at, nil
}

// firstCheckpoint returns the number of the first checkpoint that a history can
// be cut behind; 1, its beginning, when there is none.
func (c *call) firstCheckpoint(id string) int64 {
	if r, ok := c.to.(*remote); ok {
		page, err := r.c.Events(c.ctx, id, client.EventsOptions{Limit: 100})
		if err == nil {
			for i := range page.Events {
				if store.Type(page.Events[i].Type).Stable() {
					return page.Events[i].Seq
				}
			}
		}
	}
	l, ok := c.to.(*local)
	if !ok {
		return 1
	}
	for ev, err := range l.eng.History(c.ctx, id) {
		if err != nil {
			break
		}
		if ev.Type.Stable() {
			return ev.Seq
		}
	}
	return 1
}
