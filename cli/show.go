package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

func showCommand(a *app) *cobra.Command {
	var verbose bool
	cmd := a.command(spec{
		use: "show ID", short: "Show where a run stands, its steps and attempts", min: 1, max: 1, ids: true,
		long: `show prints a run in full: its status and what is wrong with it, the steps with their
attempts and errors, where it was started, and the command that resumes it.`,
		example: `  durable sessions show order-42
  durable sessions show order-42 --json
  durable resume order-42`,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			b, s, err := t.Outline(c.ctx, args[0])
			if err != nil {
				return err
			}
			o := b.Outline()
			if at, err := t.Standing(c.ctx, s.ID); err == nil { // counts waits, too
				s.Done, s.Failed, s.Steps = at.Done, at.Failed, at.Total
			}
			resume := ""
			if s.Resumable {
				resume = resumeCommandOf(c, s)
			}
			d := detailOf(s, o, resume)
			if _, waitsFor := o.Listening(""); len(waitsFor) > 0 {
				if l, isLocal := t.(*target.Local); isLocal {
					d.Kept, d.Arrived, _ = l.KeptSignals(c.ctx, s.ID, o) // what cannot be read is shown as damage
				}
			}
			return c.print(d, func() { showRun(c, s, o, &d, verbose) })
		},
	})
	cmd.Flags().BoolVar(&verbose, "verbose", false, "all steps, items and lives, however many")
	return cmd
}

// resumeCommandOf returns the best command to resume a run: one that executes it, if a
// program is known that has its code, else one that hands it over.
func resumeCommandOf(c *invocation, s *target.Run) string {
	if run := c.code(s); run != "" {
		return run
	}
	if l, isLocal := c.to.(*target.Local); isLocal && !l.OthersTake(c.ctx, s) {
		return c.self("resume", s.ID, "--detach") // without it, it is refused: it would only wait
	}
	return c.self("resume", s.ID)
}

// detail is a run in full, as --json prints it.
type detail struct {
	*target.Session
	Verdict     string            `json:"verdict"`
	ActiveMS    int64             `json:"active_ms"`
	Checkpoint  int64             `json:"checkpoint"` // id of the last one
	Headers     map[string]string `json:"headers,omitempty"`
	Environment any               `json:"environment,omitempty"`
	Git         *outline.Git      `json:"git,omitempty"` // the work tree that the last command left
	Differences []string          `json:"differences,omitempty"`
	Rows        []show.Row        `json:"rows"`
	Left        []show.Row        `json:"left_behind,omitempty"`
	Lives       []lifeView        `json:"lives"`
	Resume      string            `json:"resume_command,omitempty"`
	Kept        []string          `json:"kept_signals,omitempty"`    // that a waiting run has, and that none of its waits is for
	Arrived     []string          `json:"arrived_signals,omitempty"` // that it waits for, and has not taken yet
}

type lifeView struct {
	Executor string `json:"executor"`
	Name     string `json:"name,omitempty"`
	Begin    string `json:"begin"`
	End      string `json:"end"`
	How      string `json:"how"`
	Reason   string `json:"reason,omitempty"`
}

func detailOf(s *target.Run, o *outline.Outline, resume string) detail {
	d := detail{Session: &s.Session, Verdict: o.Verdict.Text(), ActiveMS: o.Active.Milliseconds(), Checkpoint: o.LastSeq, Resume: resume, Rows: []show.Row{}, Lives: []lifeView{}}
	d.Headers = visible(s.Headers)
	if s.Env != nil {
		d.Environment = s.Env
	}
	d.Git = o.Git()
	d.Differences = s.Differences()
	for _, lane := range o.Lanes {
		d.Rows = append(d.Rows, show.Rows(o, lane.Rows)...)
		d.Left = append(d.Left, show.Rows(o, lane.Left)...)
	}
	for i := range o.Lives {
		l := &o.Lives[i]
		d.Lives = append(d.Lives, lifeView{l.Executor, l.Name, show.RFC3339(l.Begin), show.RFC3339(l.End), string(l.How), l.Reason})
	}
	return d
}

// visible returns the headers without our own.
func visible(headers map[string]string) map[string]string {
	h := maps.Clone(headers)
	delete(h, target.CommandHeader)
	return h
}

// showRun prints a run for a person.
func showRun(c *invocation, s *target.Run, o *outline.Outline, d *detail, verbose bool) {
	out, resume := c.out, d.Resume
	title := fmt.Sprintf("%s  %s", show.Escape(s.ID), show.Escape(s.Workflow))
	if s.Version != "" {
		title += " v" + strings.TrimPrefix(show.Escape(s.Version), "v")
	}
	out.Printf("%s  %s\n", out.Paint(show.Bold, title), out.Paint(show.ToneColour(o.Verdict.Tone), s.StatusText()))
	out.Printf("%s\n", show.Escape(o.Verdict.Text()))
	if s.Code == durable.CodeDefinitionChanged { // the verdict has its first line
		_, sides, _ := strings.Cut(o.Verdict.Error, "\n")
		for line := range strings.Lines(sides) {
			out.Printf("  %s\n", show.Escape(strings.TrimSuffix(line, "\n")))
		}
	}
	of := ""
	if s.Steps > 0 {
		of = fmt.Sprintf(" of %d", s.Steps)
	}
	failed := ""
	if s.Failed > 0 {
		failed = fmt.Sprintf(", %d failed", s.Failed)
	}
	out.Printf("Steps       %d%s done%s, iteration %d\n", s.Done, of, failed, s.Iteration)
	out.Printf("Started     %s, active %s, resumed %s\n", out.At(s.Started), show.Length(o.Active), count.Of(s.Resumes, "time"))
	if s.Checkpoint != 0 {
		out.Printf("Checkpoint  %d at %s\n", o.LastSeq, out.At(s.Checkpoint))
	}
	if line := environment(s, o.Git()); line != "" {
		out.Printf("Environment %s\n", line)
	}
	for _, line := range s.Differences() {
		out.Printf("  %s %s\n", out.Paint(show.Yellow, "!"), show.Escape(line))
	}
	if s.Live {
		out.Printf("Executed by %s\n", show.Escape(s.Owner))
	}
	if more := show.PrintRows(out, o, verbose); more > 0 {
		out.Printf("  and %d more: %s\n", more, c.self("sessions", "show", s.ID, "--verbose"))
	}
	for _, lane := range o.Lanes {
		if lane.Act != "" && !lane.Root {
			out.Printf("%s\n", show.Escape(cutOf(&lane)))
		}
		if lane.LeftEvents > 0 {
			out.Printf("Left behind on branch %d: %s. %s\n", lane.Branch, count.Of(lane.LeftEvents, "event"), c.self("branches", s.ID))
		}
	}
	showSurprise(c, s, o, d.Kept)
	if len(d.Arrived) > 0 && !s.Paused { // else it seems to wait for what it has
		out.Printf("It has its signal %s. %s\n", show.Escape(strings.Join(d.Arrived, ", ")), afterAnswer(c, s))
	}
	if slices.ContainsFunc(o.Waits, func(r *outline.Row) bool { return r.Kind == outline.Approval }) {
		showAnswer(c, s)
	}
	switch {
	case s.Damage != nil:
		f := c.explain(s.Damage)
		out.Printf("%s\n%s\n", show.Escape(f.Message), f.Next)
	case s.OtherInput(c.commands) != "":
		out.Printf("%s\n", s.OtherInput(c.commands))
	case resume != "":
		out.Printf("Resume with: %s\n", resume)
	case s.Restart:
		out.Printf("It has no checkpoint. Restart from its input: %s\n", c.self("resume", s.ID, "--force"))
		if s.Status != string(store.Failed) {
			out.Printf("%s; durable.Recover restarts it there, too.\n", s.Starter())
		}
	}
}

// showSurprise says where the code of a run has panicked, and which signals it has that it does
// not wait for.
func showSurprise(c *invocation, s *target.Run, o *outline.Outline, kept []string) {
	if _, isLocal := c.to.(*target.Local); isLocal && s.Code == durable.CodePanic {
		at := strconv.FormatInt(o.LastSeq, 10) // of the function
		if o.Current != nil {
			at = o.Current.Key
		}
		c.out.Printf("Where it panicked: %s\n", c.self("checkpoints", "show", s.ID, at))
	}
	if len(kept) > 0 {
		c.out.Printf("It has %s that it does not wait for: %s\n", count.Of(len(kept), "signal"), show.Escape(strings.Join(kept, ", ")))
	}
}

// showAnswer says how a run that asks something is answered, or that it has its answer and who
// goes on with it.
func showAnswer(c *invocation, s *target.Run) {
	open, err := c.to.Approvals(c.ctx, s.ID)
	if err != nil {
		return // what is wrong with the run is shown
	}
	for _, a := range open {
		c.out.Printf("Answer it: %s\n", approves(c, s.ID, a.Key, len(open) > 1))
	}
	if len(open) > 0 || s.Paused {
		return
	}
	c.out.Printf("It was answered. %s\n", afterAnswer(c, s))
}

// cutOf says how a branch began: "Branch 1 from 5 on: edited charge, by ada: paid by
// hand".
func cutOf(l *outline.Lane) string {
	act, _, _ := strings.Cut(strings.ReplaceAll(string(l.Act), "workflow_", ""), "_activated")
	s := fmt.Sprintf("Branch %d from %d on: %s", l.Branch, l.Cutoff, strings.TrimSpace(act+" "+l.Key))
	if l.By != "" {
		s += ", by " + l.By
	}
	return s + show.Because(l.Reason)
}

// environment says where a run was started, and which work tree its last command left.
func environment(s *target.Run, git *outline.Git) string {
	parts := []string{}
	if git != nil {
		parts = append(parts, "git "+git.String())
	}
	if s.Env == nil {
		return show.Escape(strings.Join(parts, ", "))
	}
	if s.Env.Dir != "" {
		parts = slices.Insert(parts, 0, "dir "+s.Env.Dir)
	}
	if s.Env.Program != "" {
		parts = append(parts, "program "+s.Env.Program)
	}
	if len(s.Env.Args) > 0 {
		parts = append(parts, "args "+show.QuoteAll(s.Env.Args))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env.Env)) {
		parts = append(parts, name+"="+s.Env.Env[name])
	}
	if s.Info != nil && len(s.Info.Exclusive) > 0 {
		parts = append(parts, "exclusive "+strings.Join(s.Info.Exclusive, ", "))
	}
	return show.Escape(strings.Join(parts, ", "))
}
