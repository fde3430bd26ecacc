package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func watchCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "watch ID", short: "Follow a run live, whoever executes it", min: 1, max: 1, ids: true,
		long: `watch shows a run as it goes on, wherever it is executed, until it ends; q or Ctrl-C
leaves it, and the run goes on. In a pipe it prints a line for each thing that happens,
with --json each event as an object. When nobody executes the run it says so, and ends.`,
		example: `  durable watch order-42
  durable watch order-42 --json
  durable resume order-42`,
		do: func(c *invocation, args []string) error { return watch(c, args[0]) },
	})
}

// watched is an event as watch --json prints it.
type watched struct {
	Seq     int64           `json:"seq"`
	Type    string          `json:"type"`
	Key     string          `json:"key,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Branch  int             `json:"branch,omitempty"`
	At      string          `json:"at"`
	TookMS  int64           `json:"took_ms,omitempty"`
	Steps   int             `json:"steps"`
	Text    string          `json:"text"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func watch(c *invocation, id string) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	left := make(chan int, 2) // the exit code with which the watch is left
	go func() {
		select {
		case sig := <-signals:
			left <- map[bool]int{true: ExitTerminated, false: ExitInterrupted}[sig == syscall.SIGTERM]
			stop()
		case <-ctx.Done():
		}
	}()
	if in, ok := c.cmd.InOrStdin().(*os.File); ok && c.out.TTY && !c.flags.json {
		defer show.OnKey(in, 'q', func() { left <- ExitDone; stop() })()
	}

	w := newWatching(c, t, s)
	go w.look(ctx, stop)
	if err := w.show(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	stop()
	select {
	case code := <-left:
		if code != ExitDone {
			return show.Quiet(code)
		}
		return nil
	default:
	}
	return w.end()
}

// watching is one watch in progress.
type watching struct {
	c     *invocation
	t     target.Target
	s     *target.Run
	board *termview.Board // on a terminal
	view  *termview.View  // elsewhere
}

func newWatching(c *invocation, t target.Target, s *target.Run) *watching {
	w := &watching{c: c, t: t, s: s}
	switch o := c.out.View(); {
	case c.flags.json:
	case o.Redraw:
		w.board = termview.NewBoard(c.out.W, s.ID, o, c.words(t, s))
		w.board.Names(s.Declared, 0)
		w.board.Owner(owner(c, s))
	default:
		w.view = termview.New(c.out.W, o, c.words(t, s))
		w.view.Names(s.Declared, 0)
	}
	return w
}

// owner says which process executes a run.
func owner(c *invocation, s *target.Run) string {
	l, isLocal := c.to.(*target.Local)
	switch {
	case s.Terminal():
		return ""
	case s.Live && isLocal:
		return l.Who(c.ctx, s.Owner)
	case s.Live:
		return s.Owner
	}
	return "nobody executes it"
}

// show shows the run until ctx ends, or the run.
func (w *watching) show(ctx context.Context) error {
	switch {
	case w.board != nil:
		return w.board.Follow(ctx, w.t, w.s.ID, nil)
	case w.view != nil:
		return w.view.Follow(ctx, w.t, w.s.ID, 0, nil)
	}
	last := int64(0)
	for ev, err := range w.t.Watch(ctx, w.s.ID, 0) {
		if err != nil {
			return err
		}
		if ev.Seq <= last {
			continue // a wait that was announced first
		}
		last = ev.Seq
		line := watched{ev.Seq, string(ev.Type), ev.Key, int(ev.Attempt), int(ev.Branch), show.RFC3339(ev.At), ev.Took.Milliseconds(), int(ev.Steps), operate.Describe(ev), ev.Data}
		if err := w.c.out.JSON(line); err != nil {
			return err
		}
	}
	return nil
}

// look ends the watch once nothing executes the run any more and its last state is
// shown.
func (w *watching) look(ctx context.Context, stop func()) {
	tick := time.NewTicker(settle)
	defer tick.Stop()
	idle := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := w.t.Run(ctx, w.s.ID)
		if err != nil {
			continue // the watch itself says what is wrong
		}
		if w.board != nil {
			w.board.Owner(owner(w.c, now))
		}
		if idle++; !abandoned(ctx, w.c, w.t, now) {
			idle = 0
		}
		// A run that moves to another process has no owner for a moment.
		if idle >= 4 {
			stop()
			return
		}
	}
}

// abandoned reports whether a run has ended, or no process executes it or is about
// to.
func abandoned(ctx context.Context, c *invocation, t target.Target, s *target.Run) bool {
	if s.Terminal() {
		return true
	}
	if s.Live || s.Status == string(store.Interrupted) && (s.Code != "" || s.Paused) {
		return !s.Live
	}
	l, isLocal := t.(*target.Local)
	return isLocal && !l.OthersMayTake(ctx, s)
}

// end says why the watch is over, unless the run's own events did.
func (w *watching) end() error {
	c := w.c
	now, err := w.t.Run(c.ctx, w.s.ID)
	if err != nil {
		return err
	}
	switch {
	case now.Terminal() && c.flags.json:
	case now.Terminal():
		line := "Workflow " + show.Escape(now.ID) + " " + now.Status
		if now.Reason != "" {
			line += ": " + show.Escape(now.Reason)
		}
		c.say("%s", line)
	default:
		next := "Show it: " + c.self("sessions", "show", now.ID)
		if run := c.code(now); run != "" {
			next = "Resume with: " + run
		}
		c.say("Nobody executes %s (%s). %s", show.Escape(now.ID), now.StatusText(), next)
	}
	return nil
}
