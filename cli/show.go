package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
)

func (a *app) showCommand() *cobra.Command {
	var verbose bool
	cmd := a.command(spec{
		use: "show ID", short: "Show where a run stands, its steps and attempts", min: 1, max: 1, ids: true,
		long: `show prints a run in full: its status and what is wrong with it, the steps with their
attempts and errors, where it was started, and the command that resumes it.`,
		example: `  durable sessions show order-42
  durable sessions show order-42 --json
  durable resume order-42`,
		do: func(c *call, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			b, s, err := t.tell(c.ctx, args[0])
			if err != nil {
				return err
			}
			o := b.Outline()
			if at, err := t.standing(c.ctx, s.ID); err == nil { // waits count, too
				s.Done, s.Steps = at.Done, at.Total
			}
			resume := ""
			if s.Resumable {
				resume = c.resumeCommandOf(s)
			}
			return c.print(detailOf(s, o, resume), func() { c.show(s, o, resume, verbose) })
		},
	})
	cmd.Flags().BoolVar(&verbose, "verbose", false, "all steps, items and lives, however many")
	return cmd
}

// resumeCommandOf is the command that resumes a run best: where its code is, else
// one that hands it over.
func (c *call) resumeCommandOf(s *Session) string {
	if run := c.code(s); run != "" {
		return run
	}
	return c.self("resume", s.ID)
}

// detail is a run in full, as --json prints it.
type detail struct {
	*Session
	Verdict     string            `json:"verdict"`
	ActiveMS    int64             `json:"active_ms"`
	Checkpoint  int64             `json:"checkpoint"` // id of the last one
	Headers     map[string]string `json:"headers,omitempty"`
	Environment any               `json:"environment,omitempty"`
	Git         *outline.Git      `json:"git,omitempty"` // the work tree that the last command has left
	Differences []string          `json:"differences,omitempty"`
	Rows        []rowView         `json:"rows"`
	Left        []rowView         `json:"left_behind,omitempty"`
	Lives       []lifeView        `json:"lives"`
	Resume      string            `json:"resume_command,omitempty"`
}

type rowView struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	State  string `json:"state"`
	TookMS int64  `json:"took_ms,omitempty"`
	Max    int    `json:"max_attempts,omitempty"`
	// IdempotencyKey is the one that the attempts of a step were given.
	IdempotencyKey string        `json:"idempotency_key,omitempty"`
	Error          string        `json:"error,omitempty"`
	Prompt         string        `json:"prompt,omitempty"`
	Until          string        `json:"until,omitempty"`
	Attempts       []attemptView `json:"attempts,omitempty"`
	Rows           []rowView     `json:"rows,omitempty"`
}

type attemptView struct {
	N      int    `json:"n"`
	ID     int64  `json:"id,omitempty"` // of its event
	State  string `json:"state"`
	At     string `json:"at,omitempty"`
	TookMS int64  `json:"took_ms,omitempty"`
	Error  string `json:"error,omitempty"`
	NextAt string `json:"next_at,omitempty"`
	Notes  []note `json:"notes,omitempty"`
}

type note struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type lifeView struct {
	Executor string `json:"executor"`
	Name     string `json:"name,omitempty"`
	Begin    string `json:"begin"`
	End      string `json:"end"`
	How      string `json:"how"`
	Reason   string `json:"reason,omitempty"`
}

func detailOf(s *Session, o *outline.Outline, resume string) detail {
	d := detail{Session: s, Verdict: o.Verdict.Text(), ActiveMS: o.Active.Milliseconds(), Checkpoint: o.LastSeq, Resume: resume, Rows: []rowView{}, Lives: []lifeView{}}
	d.Headers = visible(s.headers)
	if s.env != nil {
		d.Environment = s.env
	}
	d.Git = o.Git()
	d.Differences = s.differences()
	for _, lane := range o.Lanes {
		d.Rows = append(d.Rows, rowViews(o, lane.Rows)...)
		d.Left = append(d.Left, rowViews(o, lane.Left)...)
	}
	for i := range o.Lives {
		l := &o.Lives[i]
		d.Lives = append(d.Lives, lifeView{l.Executor, l.Name, rfc3339(l.Begin), rfc3339(l.End), string(l.How), l.Reason})
	}
	return d
}

// visible are the headers without ours.
func visible(headers map[string]string) map[string]string {
	h := maps.Clone(headers)
	delete(h, commandHeader)
	return h
}

func rowViews(o *outline.Outline, rows []*outline.Row) []rowView {
	views := make([]rowView, 0, len(rows))
	for _, r := range rows {
		took, _ := o.Took(r)
		v := rowView{Key: r.Key, Kind: string(r.Kind), State: string(r.State), TookMS: took, Max: r.Max, Error: r.Error, Prompt: r.Prompt, Until: rfc3339(r.Until), Rows: rowViews(o, r.Rows)}
		if r.Keyed() {
			v.IdempotencyKey = durable.IdempotencyKeyOf(o.Run.ID, int(o.Run.Generation), r.Key)
		}
		for i := range r.Attempts {
			a := &r.Attempts[i]
			av := attemptView{N: a.N, ID: a.Seq, State: attemptState(a), At: rfc3339(a.Begin), TookMS: a.Took.Milliseconds(), Error: a.Error, NextAt: rfc3339(a.NextAt)}
			for _, n := range a.Notes {
				av.Notes = append(av.Notes, note{n.Key, n.Value})
			}
			v.Attempts = append(v.Attempts, av)
		}
		views = append(views, v)
	}
	return views
}

// attemptState says what became of an attempt. Of one that a process which was lost may
// have begun, and that has announced no beginning, nobody knows whether it was made.
func attemptState(a *outline.Attempt) string {
	if a.State == outline.AttemptCut && !a.Begun {
		return "may have been cut off"
	}
	return string(a.State)
}

// show prints a run for a person.
func (c *call) show(s *Session, o *outline.Outline, resume string, verbose bool) {
	out := c.out
	title := fmt.Sprintf("%s  %s", escape(s.ID), escape(s.Workflow))
	if s.Version != "" {
		title += " v" + strings.TrimPrefix(escape(s.Version), "v")
	}
	out.printf("%s  %s\n", out.paint(bold, title), out.paint(toneColour(o.Verdict.Tone), s.status()))
	out.printf("%s\n", escape(o.Verdict.Text()))
	of := ""
	if s.Steps > 0 {
		of = fmt.Sprintf(" of %d", s.Steps)
	}
	out.printf("Steps       %d%s done, iteration %d\n", s.Done, of, s.Iteration)
	out.printf("Started     %s, active %s, resumed %s\n", out.at(s.started), length(o.Active), times(s.Resumes))
	if s.checkpoint != 0 {
		out.printf("Checkpoint  %d at %s\n", o.LastSeq, out.at(s.checkpoint))
	}
	if line := environment(s, o.Git()); line != "" {
		out.printf("Environment %s\n", line)
	}
	for _, line := range s.differences() {
		out.printf("  %s %s\n", out.paint(yellow, "!"), escape(line))
	}
	if s.live {
		out.printf("Executed by %s\n", escape(s.Owner))
	}
	p := &rowPrinter{s: out, o: o, all: verbose}
	for _, lane := range o.Lanes {
		p.rows(lane.Rows)
	}
	if p.more > 0 {
		out.printf("  and %d more: %s\n", p.more, c.self("sessions", "show", s.ID, "--verbose"))
	}
	for _, lane := range o.Lanes {
		if lane.Act != "" && !lane.Root {
			out.printf("%s\n", escape(cutOf(&lane)))
		}
		if lane.LeftEvents > 0 {
			out.printf("Left behind on branch %d: %s. %s\n", lane.Branch, plural(lane.LeftEvents, "event"), c.self("branches", s.ID))
		}
	}
	for _, w := range o.Waits {
		if w.Kind == outline.Approval {
			out.printf("Answer it: %s\n", c.self("approve", s.ID))
		}
	}
	switch {
	case s.damage != nil:
		f := c.explain(s.damage)
		out.printf("%s\n%s\n", escape(f.message), f.next)
	case resume != "":
		out.printf("Resume with: %s\n", resume)
	case s.restart:
		out.printf("It has no checkpoint. Restart from its input: %s\n", c.self("resume", s.ID, "--force"))
	}
}

// cutOf says how a branch began: "Branch 1 from 5 on: edited charge, by ada: paid
// by hand".
func cutOf(l *outline.Lane) string {
	act, _, _ := strings.Cut(strings.ReplaceAll(string(l.Act), "workflow_", ""), "_activated")
	s := fmt.Sprintf("Branch %d from %d on: %s", l.Branch, l.Cutoff, strings.TrimSpace(act+" "+l.Key))
	if l.By != "" {
		s += ", by " + l.By
	}
	return s + because(l.Reason)
}

// environment shows where a run was started, and the work tree that its last
// command has left.
func environment(s *Session, git *outline.Git) string {
	parts := []string{}
	if git != nil {
		parts = append(parts, "git "+git.String())
	}
	if s.env == nil {
		return escape(strings.Join(parts, ", "))
	}
	if s.env.Dir != "" {
		parts = slices.Insert(parts, 0, "dir "+s.env.Dir)
	}
	if s.env.Program != "" {
		parts = append(parts, "program "+s.env.Program)
	}
	if len(s.env.Args) > 0 {
		parts = append(parts, "args "+quoteAll(s.env.Args))
	}
	for _, name := range slices.Sorted(maps.Keys(s.env.Env)) {
		parts = append(parts, name+"="+s.env.Env[name])
	}
	if s.info != nil && len(s.info.Exclusive) > 0 {
		parts = append(parts, "exclusive "+strings.Join(s.info.Exclusive, ", "))
	}
	return escape(strings.Join(parts, ", "))
}

func times(n int) string { return plural(n, "time") }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func toneColour(t outline.Tone) string {
	switch t {
	case outline.ToneDone:
		return green
	case outline.ToneFail, outline.ToneStuck:
		return red
	case outline.ToneResume, outline.ToneWait:
		return yellow
	}
	return ""
}

// maxRows is how many rows are shown to a person who has not asked for all.
const maxRows = 60

// rowPrinter prints rows with their attempts, nested.
type rowPrinter struct {
	s     *stream
	o     *outline.Outline
	all   bool
	shown int
	more  int
	lines int
}

func (p *rowPrinter) rows(rows []*outline.Row) {
	width := 0
	for _, r := range rows {
		width = max(width, len([]rune(escape(r.Name))))
	}
	for _, r := range rows {
		if !p.all && p.shown >= maxRows && quietRow(r) {
			p.more++
			continue
		}
		p.shown++
		p.row(r, min(width, 32))
	}
}

// quietRow reports whether nothing about a row needs a person's eye.
func quietRow(r *outline.Row) bool {
	return r.State == outline.Done || r.State == outline.Expected
}

func (p *rowPrinter) row(r *outline.Row, width int) {
	indent := strings.Repeat("  ", r.Depth)
	sign, colour := signOf(r.State)
	name := escape(r.Name)
	said := []string{}
	if label := r.Label(); label != "" && label != string(r.Kind) {
		said = append(said, escape(label))
	}
	switch {
	case r.State == outline.Stopped && len(r.Attempts) > 0 || r.State == outline.Backoff:
		said = append(said, "next")
	case r.Prompt != "":
		said = append(said, "asks: "+escape(r.Prompt))
	}
	if _, took := p.o.Took(r); took != "" && r.State != outline.Expected {
		said = append(said, took)
	}
	line := fmt.Sprintf("  %s%s %-*s  %s", indent, p.s.paint(colour, sign), width, name, strings.Join(said, "  "))
	p.line(strings.TrimRight(line, " "))
	if r.Error != "" && len(r.Attempts) == 0 {
		p.line(fmt.Sprintf("  %s      %s", indent, escape(outline.OneLine(r.Error, 200))))
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.State == outline.AttemptDone && len(r.Attempts) == 1 && len(a.Notes) == 0 {
			continue
		}
		text, took := attemptState(a), outline.Duration(a.Took)
		if a.State == outline.AttemptCut {
			took = "-" // nobody knows
		}
		if a.Error != "" {
			text = outline.OneLine(a.Error, 200)
		}
		p.line(fmt.Sprintf("  %s    %3d  %s  %s  %s", indent, a.N, p.s.at(a.Begin), took, escape(text)))
		for _, n := range a.Notes {
			p.line(fmt.Sprintf("  %s         %s", indent, p.s.paint(dim, escape(n.Key+": "+outline.OneLine(n.Value, 120)))))
		}
	}
	p.rows(r.Rows)
}

func (p *rowPrinter) line(text string) {
	p.lines++
	p.s.printf("%s\n", text)
}

// signOf is the sign of a state; the word stands beside it where it is not plain.
func signOf(st outline.State) (sign, colour string) {
	switch st {
	case outline.Done:
		return "✓", green
	case outline.Failed, outline.TimedOut:
		return "✗", red
	case outline.Waiting:
		return "?", yellow
	case outline.Expected, outline.Closed:
		return "·", dim
	}
	return "▸", yellow
}
