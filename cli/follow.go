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

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// view returns a view that shows the progress of a run on standard error.
func (c *invocation) view(t target.Target, s *target.Run) *termview.View {
	return termview.New(c.err.W, c.err.View(), c.words(t, s))
}

// words are the texts of a view that depend on this program.
func (c *invocation) words(t target.Target, s *target.Run) termview.Words {
	asked := map[string]bool{}
	return termview.Words{
		Answer: func(w operate.Call) string {
			if w.Prompt == "" {
				return ""
			}
			asked[w.Key] = true
			return approves(c, s.ID, w.Key, len(asked) > 1)
		},
		Answered: func(ev store.Event) string { return verdictWord(t.Value(s.ID, ev)) },
	}
}

// verdictWord says whether an answer is a yes or a no, if it is either.
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

// settle is how often a run is read to see whether anything still executes it: no event
// says that nothing does.
const settle = 250 * time.Millisecond

// catch takes over the signals that end the program. It is called before a run is
// started or resumed here, so that at no moment a signal is lost or kills the process
// in the middle of the run.
func (c *invocation) catch() <-chan os.Signal {
	if c.signals == nil {
		c.signals = make(chan os.Signal, 4)
		signal.Notify(c.signals, os.Interrupt, syscall.SIGTERM)
		c.done = append(c.done, func() { signal.Stop(c.signals) })
	}
	return c.signals
}

// stay shows what a run does until it ends or nothing executes it any more. here says
// that it executes in this process: then an interrupt stops and saves it; otherwise an
// interrupt only ends the watching.
func (c *invocation) stay(t target.Target, s *target.Run, here bool) error {
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
		err := view.Follow(watched, t, s.ID, s.LastSeq, nil)
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

// untilItStands returns once a run has ended or nothing executes it any more. It gives
// a view that follows the run time to show the last events.
func (c *invocation) untilItStands(ctx context.Context, t target.Target, s *target.Run, view *termview.View) error {
	const patience = 20 // how often to wait for events that the row implies
	look := time.NewTicker(settle)
	defer look.Stop()
	for behind := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		now, err := t.Run(ctx, s.ID)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !c.stands(now):
			behind = 0
		case view == nil || view.Standing().Seq >= now.LastSeq || behind >= patience:
			return nil
		default:
			behind++
		}
	}
}

// stands reports whether a run has ended, or goes on only after someone acts.
func (c *invocation) stands(s *target.Run) bool {
	_, isLocal := c.to.(*target.Local)
	return s.Terminal() || s.Status == string(store.Interrupted) && (s.Code != "" || s.Paused) || !isLocal && s.Prompt
}

// outcome says how a run ended, and returns the exit code for it.
func (c *invocation) outcome(t target.Target, s *target.Run, here bool) error {
	now, err := t.Run(c.ctx, s.ID)
	if err != nil {
		return err
	}
	switch store.Status(now.Status) {
	case store.Completed:
		output, err := t.Output(c.ctx, s.ID)
		if err != nil {
			return err
		}
		return c.print(result{Session: &now.Session, Output: output}, func() {
			line := fmt.Sprintf("Workflow %s completed", show.Escape(s.ID))
			if len(output) > 0 {
				line += ": " + show.Escape(string(output))
			}
			c.out.Printf("%s\n", line)
			c.parentNext(t, now)
		})
	case store.Failed:
		f := &show.Failure{Code: "failed", Exit: ExitFailed, Message: fmt.Sprintf("Workflow %s failed: %s", s.ID, now.Reason), Next: "Show it: " + c.self("sessions", "show", s.ID)}
		if children := c.failedChildren(t, s.ID, maxNested); now.Recoverable || len(children) > 0 {
			f.Next = "Mend the cause, then: " + c.resumeInOrder(append(children, s.ID))
		}
		return f
	case store.Cancelled:
		return &show.Failure{Code: "cancelled", Exit: ExitFailed, Message: fmt.Sprintf("Workflow %s cancelled", s.ID)}
	case store.Interrupted:
		return c.parked(t, now)
	}
	return c.print(result{Session: &now.Session}, func() {
		if answer := toAnswer(c, now); answer != "" {
			c.out.Printf("%s waits for a person. Answer it: %s\n", show.Escape(s.ID), answer)
			return
		}
		c.out.Printf("%s is %s. %s\n", show.Escape(s.ID), now.Status, c.follow(s.ID))
	})
}

// resumeInOrder is the command that resumes these runs, one after the other.
func (c *invocation) resumeInOrder(ids []string) string {
	commands := make([]string, len(ids))
	for i, id := range ids {
		commands[i] = c.self("resume", id)
	}
	return strings.Join(commands, " && ")
}

// maxNested is how many generations of failed children are looked for.
const maxNested = 16

// failedChildren returns the children whose failure made a run fail and that have not
// been resumed since, each after its own such children.
func (c *invocation) failedChildren(t target.Target, id string, depth int) (ids []string) {
	if depth == 0 {
		return nil
	}
	b, _, err := t.Outline(c.ctx, id)
	if err != nil {
		return nil // it only adds detail
	}
	var look func(rows []*outline.Row)
	look = func(rows []*outline.Row) {
		for _, r := range rows {
			look(r.Rows)
			if r.Kind != outline.Child || r.ChildStatus != store.Failed || slices.Contains(ids, r.ChildID) {
				continue
			}
			if now, err := t.Run(c.ctx, r.ChildID); err == nil && now.Status == string(store.Failed) && now.Resumable {
				ids = append(append(ids, c.failedChildren(t, r.ChildID, depth-1)...), r.ChildID)
			}
		}
	}
	for _, lane := range b.Outline().Lanes {
		look(lane.Rows)
	}
	return ids
}

// parentNext says how to resume the parent of a completed run, if the parent failed
// because of it.
func (c *invocation) parentNext(t target.Target, s *target.Run) {
	if s.Parent == "" {
		return
	}
	if parent, err := t.Run(c.ctx, s.Parent); err == nil && parent.Status == string(store.Failed) && parent.Resumable {
		c.say("Its parent %s has failed. Resume it: %s", show.Escape(parent.ID), c.self("resume", parent.ID))
	}
}

// result is what run and resume print with --json.
type result struct {
	*target.Session
	Output json.RawMessage `json:"output,omitempty"`
	Resume string          `json:"resume_command,omitempty"`
}

// parked says why a run has stopped, and how to resume it once the cause is removed.
func (c *invocation) parked(t target.Target, s *target.Run) error {
	if s.Paused {
		return show.Refused("paused", "Let it go on: "+c.self("unpause", s.ID), "%s is paused%s.", s.ID, show.Because(s.Reason))
	}
	if changed := t.Difference(c.ctx, s); changed != nil {
		f := show.Refused("definition_changed", "Or match by name: "+c.self("resume", s.ID, "--force"), "%s", changed.Error())
		f.Lines = true
		return f
	}
	next := "Show it: " + c.self("sessions", "show", s.ID)
	if other := s.OtherInput(c.commands); other != "" {
		next = other
	} else if run := c.code(s); run != "" {
		next = "Resume with: " + run
	}
	return show.Refused(show.OrElse(s.Code, "interrupted"), next, "%s stopped, still resumable%s.", s.ID, show.Because(s.Reason))
}

// interrupted ends the watching. A run that executes here is stopped and saved first,
// unless a second signal says not to wait.
func (c *invocation) interrupted(t target.Target, s *target.Run, here bool, sig os.Signal, signals <-chan os.Signal, at operate.Standing) error {
	code := ExitInterrupted
	if sig == syscall.SIGTERM {
		code = ExitTerminated
	}
	c.ctx = context.WithoutCancel(c.ctx)
	if !here {
		c.say("\nDetached; %s goes on. %s", show.Escape(s.ID), c.follow(s.ID))
		return show.Quiet(code)
	}
	unfinished := c.unfinished(s, at)
	c.say("\nSaving a checkpoint (%s at most; Ctrl-C again quits)", c.engine.Grace())
	closed := make(chan error, 1)
	go func() { closed <- c.engine.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			c.say("%s", show.Escape(err.Error()))
		}
	case <-second(signals):
		c.say("\nQuit.%s", unfinished)
		c.printInterrupted(s)
		// The second signal says not to wait, and calls that the program has deferred,
		// such as the engine's Close, would wait. Whatever is recorded is durable: the
		// next process goes on from it.
		c.exit(code)
		return show.Quiet(code)
	}
	if now, err := t.Run(c.ctx, s.ID); err == nil && now.Terminal() {
		return c.outcome(t, s, here) // it ended while it was being stopped
	}
	c.printInterrupted(s)
	return show.Quiet(code)
}

// echo is how soon a second signal must follow to count as a repetition of the first: a
// program such as timeout signals the process and then its group.
const echo = 200 * time.Millisecond

// second returns a channel that is closed at the second signal.
func second(signals <-chan os.Signal) <-chan struct{} {
	again := make(chan struct{})
	go func() {
		began := time.Now()
		for range signals {
			if time.Since(began) > echo {
				close(again)
				return
			}
		}
	}()
	return again
}

// unfinished names the attempt that a process leaves without an outcome when it quits
// at once.
func (c *invocation) unfinished(s *target.Run, at operate.Standing) string {
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
	return fmt.Sprintf(" %s attempt %d has no outcome; it runs again.", show.Escape(key), attempt)
}

func (c *invocation) printInterrupted(s *target.Run) {
	command := c.commands.Run(s.Workflow, s.ID)
	c.say("Session interrupted. Resume with: %s", command)
	if c.flags.json {
		s.Status, s.Resumable = string(store.Interrupted), true
		_ = c.out.JSON(result{Session: &s.Session, Resume: command})
	}
}
