package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/store"
)

// view returns what shows the progress of a run, on standard error.
func (c *call) view(t target, s *Session) *termview.View {
	return termview.New(c.err.w, c.err.view(), c.words(t, s))
}

// view are the options of a stream for what is drawn on it.
func (s *stream) view() termview.Options {
	o := termview.Detect(s.w)
	o.Color = o.Color && s.colour
	return o
}

// words are what a view of a run says that only this program knows.
func (c *call) words(t target, s *Session) termview.Words {
	return termview.Words{
		Answer: func(w durable.Call) string {
			if w.Prompt == "" {
				return ""
			}
			return c.self("approve", s.ID)
		},
		Answered: func(ev store.Event) string { return verdictWord(t.value(s.ID, ev)) },
	}
}

// verdictWord tells yes from no in an answer, as far as it says.
func verdictWord(value json.RawMessage) string {
	word := map[bool]string{true: "approved", false: "rejected"}
	var b bool
	if json.Unmarshal(value, &b) == nil && len(bytes.TrimSpace(value)) > 0 && !bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return word[b]
	}
	var fields map[string]any
	if json.Unmarshal(value, &fields) == nil {
		for name, v := range fields {
			if b, ok := v.(bool); ok && strings.EqualFold(name, "approved") {
				return word[b]
			}
		}
	}
	return "answered"
}

// settle is how often a run is looked at that may stand still: that nobody goes on
// with it, no event says.
const settle = 250 * time.Millisecond

// catch takes over the signals that end the program. It is called before a run is
// started or resumed here, so that there is no moment in which one is lost, or
// ends the process with the run under way.
func (c *call) catch() <-chan os.Signal {
	if c.signals == nil {
		c.signals = make(chan os.Signal, 4)
		signal.Notify(c.signals, os.Interrupt, syscall.SIGTERM)
		c.done = append(c.done, func() { signal.Stop(c.signals) })
	}
	return c.signals
}

// stay shows what a run does until it ends, or nobody goes on with it. here says
// that it executes in this process: then an interrupt stops it, and saves it; else
// an interrupt only ends the watching.
func (c *call) stay(t target, s *Session, here bool) error {
	signals := c.catch()
	ctx, stop := context.WithCancel(context.WithoutCancel(c.ctx))
	defer stop()
	view := c.view(t, s)
	followed := make(chan error, 1)
	go func() {
		if c.flags.json {
			followed <- c.untilItStands(ctx, t, s, nil)
			return
		}
		watched, unwatch := context.WithCancel(ctx)
		defer unwatch()
		over := make(chan error, 1)
		go func() {
			over <- c.untilItStands(watched, t, s, view)
			unwatch()
		}()
		err := view.Follow(watched, t, s.ID, s.lastSeq, nil)
		unwatch()
		followed <- errors.Join(err, <-over)
	}()

	leave := func(sig os.Signal) error {
		standing := view.Standing()
		view.Stop()
		return c.interrupted(t, s, here, sig, signals, standing)
	}
	select {
	case err := <-followed:
		if err != nil {
			return err
		}
		return c.outcome(t, s, here)
	case sig := <-signals:
		return leave(sig)
	case <-c.ctx.Done():
		return leave(os.Interrupt)
	}
}

// untilItStands returns once a run has ended, or stands with nobody to go on. It
// gives a view that follows the run time to show the last events.
func (c *call) untilItStands(ctx context.Context, t target, s *Session, view *termview.View) error {
	const patience = 20 // looks for events that the row tells of
	look := time.NewTicker(settle)
	defer look.Stop()
	for behind := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		now, err := t.session(ctx, s.ID)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !c.stands(now):
			behind = 0
		case view == nil || view.Standing().Seq >= now.lastSeq || behind >= patience:
			return nil
		default:
			behind++
		}
	}
}

// stands reports whether a run has ended, or nobody goes on with it by himself.
func (c *call) stands(s *Session) bool {
	_, isLocal := c.to.(*local)
	return s.terminal() || s.Status == string(store.Interrupted) && (s.Code != "" || s.Paused) || !isLocal && s.prompt
}

// outcome says how a run came out, and makes the exit code of it.
func (c *call) outcome(t target, s *Session, here bool) error {
	now, err := t.session(c.ctx, s.ID)
	if err != nil {
		return err
	}
	switch store.Status(now.Status) {
	case store.Completed:
		output, err := t.output(c.ctx, s.ID)
		if err != nil {
			return err
		}
		return c.print(result{Session: now, Output: output}, func() {
			line := fmt.Sprintf("Workflow %s completed", escape(s.ID))
			if len(output) > 0 {
				line += ": " + escape(string(output))
			}
			c.out.printf("%s\n", line)
			c.parentNext(t, now)
		})
	case store.Failed:
		f := &failure{code: "failed", exit: ExitFailed, message: fmt.Sprintf("Workflow %s failed: %s", s.ID, now.Reason), next: "Show it: " + c.self("sessions", "show", s.ID)}
		if children := c.failedChildren(t, s.ID, maxNested); now.Recoverable || len(children) > 0 {
			f.next = "Mend the cause, then: " + c.resumeInOrder(append(children, s.ID))
		}
		return f
	case store.Cancelled:
		return &failure{code: "cancelled", exit: ExitFailed, message: fmt.Sprintf("Workflow %s cancelled", s.ID)}
	case store.Interrupted:
		return c.parked(t, now)
	}
	return c.print(result{Session: now}, func() {
		if now.prompt {
			c.out.printf("%s waits for a person. Answer it: %s\n", escape(s.ID), c.self("approve", s.ID))
			return
		}
		c.out.printf("%s is %s. %s\n", escape(s.ID), now.Status, c.follow(s.ID))
	})
}

// resumeInOrder is the command that resumes these runs, one after the other.
func (c *call) resumeInOrder(ids []string) string {
	commands := make([]string, len(ids))
	for i, id := range ids {
		commands[i] = c.self("resume", id)
	}
	return strings.Join(commands, " && ")
}

// maxNested bounds how deep failed children are looked for.
const maxNested = 16

// failedChildren returns the children that a run has failed with, and that are failed
// still, behind their own.
func (c *call) failedChildren(t target, id string, depth int) (ids []string) {
	if depth == 0 {
		return nil
	}
	b, _, err := t.tell(c.ctx, id)
	if err != nil {
		return nil // it only adds to what is said
	}
	var look func(rows []*outline.Row)
	look = func(rows []*outline.Row) {
		for _, r := range rows {
			look(r.Rows)
			if r.Kind != outline.Child || r.ChildStatus != store.Failed || slices.Contains(ids, r.ChildID) {
				continue
			}
			if now, err := t.session(c.ctx, r.ChildID); err == nil && now.Status == string(store.Failed) && now.Resumable {
				ids = append(append(ids, c.failedChildren(t, r.ChildID, depth-1)...), r.ChildID)
			}
		}
	}
	for _, lane := range b.Outline().Lanes {
		look(lane.Rows)
	}
	return ids
}

// parentNext says how the parent of a run that has completed goes on, if it has failed
// with it.
func (c *call) parentNext(t target, s *Session) {
	if s.Parent == "" {
		return
	}
	if parent, err := t.session(c.ctx, s.Parent); err == nil && parent.Status == string(store.Failed) && parent.Resumable {
		c.say("Its parent %s has failed. Resume it: %s", escape(parent.ID), c.self("resume", parent.ID))
	}
}

// result is what run and resume print with --json.
type result struct {
	*Session
	Output json.RawMessage `json:"output,omitempty"`
	Resume string          `json:"resume_command,omitempty"`
}

// parked says why a run has stopped that can be resumed, once its cause is dealt
// with.
func (c *call) parked(t target, s *Session) error {
	if s.Paused {
		return refused("paused", "Let it go on: "+c.self("unpause", s.ID), "%s is paused%s.", s.ID, because(s.Reason))
	}
	if changed := t.changed(c.ctx, s); changed != nil {
		f := refused("definition_changed", "Or match by name: "+c.self("resume", s.ID, "--force"), "%s", changed.Error())
		f.lines = true
		return f
	}
	next := "Show it: " + c.self("sessions", "show", s.ID)
	if run := c.code(s); run != "" {
		next = "Resume with: " + run
	}
	return refused(orElse(s.Code, "interrupted"), next, "%s stopped, still resumable%s.", s.ID, because(s.Reason))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// interrupted ends the watching. A run that executes here is stopped and saved
// first, unless a second signal says not to wait for that.
func (c *call) interrupted(t target, s *Session, here bool, sig os.Signal, signals <-chan os.Signal, at durable.Standing) error {
	code := ExitInterrupted
	if sig == syscall.SIGTERM {
		code = ExitTerminated
	}
	c.ctx = context.WithoutCancel(c.ctx)
	if !here {
		c.say("\nDetached; %s goes on. %s", escape(s.ID), c.follow(s.ID))
		return quiet(code)
	}
	unfinished := c.unfinished(s, at)
	c.say("\nSaving a checkpoint (%s at most; Ctrl-C again quits)", c.engine.Grace())
	closed := make(chan error, 1)
	go func() { closed <- c.engine.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			c.say("%s", escape(err.Error()))
		}
	case <-second(signals):
		c.say("\nQuit.%s", unfinished)
		c.printInterrupted(s)
		// Waiting is what the second signal has refused, and what the program
		// has deferred, such as the engine's Close, would wait. What is recorded
		// is durable: the next process goes on from it.
		c.exit(code)
		return quiet(code)
	}
	if now, err := t.session(c.ctx, s.ID); err == nil && now.terminal() {
		return c.outcome(t, s, here) // it ended while it was to be stopped
	}
	c.printInterrupted(s)
	return quiet(code)
}

// echo is for how long a second signal counts as the first one told twice: a
// program such as timeout signals the process and then its group.
const echo = 200 * time.Millisecond

// second returns a channel that is closed at the second signal.
func second(signals <-chan os.Signal) <-chan struct{} {
	told := make(chan struct{})
	go func() {
		began := time.Now()
		for range signals {
			if time.Since(began) > echo {
				close(told)
				return
			}
		}
	}()
	return told
}

// unfinished says what a process that quits at once leaves without an outcome.
func (c *call) unfinished(s *Session, at durable.Standing) string {
	key, executing := c.engine.Executing(s.ID)
	if !executing {
		return ""
	}
	attempt := 1
	for _, open := range append(at.Open, at.Current) {
		if open.Key == key {
			attempt = max(1, open.Attempt)
		}
	}
	return fmt.Sprintf(" %s attempt %d has no outcome; it runs again.", escape(key), attempt)
}

func (c *call) printInterrupted(s *Session) {
	command := c.runSelf(s.Workflow, s.ID)
	c.say("Session interrupted. Resume with: %s", command)
	if c.flags.json {
		s.Status, s.Resumable = string(store.Interrupted), true
		_ = c.out.json(result{Session: s, Resume: command})
	}
}
