package outline

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Style says how Print writes.
type Style struct {
	All    bool                             // also the rows of a long run that a person need not see
	Escape func(string) string              // makes text of users safe to show
	At     func(store.Time) string          // a moment
	Paint  func(t Tone, sign string) string // nil: no colours
	Dim    func(text string) string         // likewise
}

// StateText describes the outcome of an attempt. If a process was lost and had not
// recorded the beginning of the attempt, it is not known whether the attempt was made.
func (a *Attempt) StateText() string {
	if a.State == AttemptCut && !a.Begun {
		return "may have been cut off"
	}
	return string(a.State)
}

// maxRows is how many rows are shown to a person who has not requested all.
const maxRows = 60

// Print prints the rows with their attempts, nested, and returns how many it has left out.
func (o *Outline) Print(w io.Writer, s Style) (more int) {
	if s.Paint == nil {
		s.Paint = func(_ Tone, sign string) string { return sign }
	}
	if s.Dim == nil {
		s.Dim = func(text string) string { return text }
	}
	p := &printer{Style: s, w: w, o: o}
	for _, lane := range o.Lanes {
		p.rows(lane.Rows)
	}
	return p.more
}

// printer is the state of Print.
type printer struct {
	Style
	w     io.Writer
	o     *Outline
	shown int
	more  int
}

func (p *printer) rows(rows []*Row) {
	width := 0
	for _, r := range rows {
		width = max(width, len([]rune(p.Escape(r.Name))))
	}
	for _, r := range rows {
		if !p.All && p.shown >= maxRows && r.quiet() {
			p.more++
			continue
		}
		p.shown++
		p.row(r, min(width, 32))
	}
}

// quiet reports whether a person may overlook a row.
func (r *Row) quiet() bool { return r.State == Done || r.State == Expected }

func (p *printer) row(r *Row, width int) {
	indent := strings.Repeat("  ", r.Depth)
	said := []string{}
	if label := r.Label(); label != "" && label != string(r.Kind) {
		said = append(said, p.Escape(label))
	}
	between := r.State == Stopped && len(r.Attempts) > 0 || r.State == Backoff
	switch {
	case between:
		said = append(said, nextIn(r.NextAt.Sub(p.o.Now)))
	case r.Prompt != "":
		said = append(said, "asks: "+p.Escape(r.Prompt))
	}
	if _, took := p.o.Took(r); took != "" && r.State != Expected && !between {
		said = append(said, took)
	}
	line := fmt.Sprintf("  %s%s %-*s  %s", indent, p.sign(r.State), width, p.Escape(r.Name), strings.Join(said, "  "))
	p.line(strings.TrimRight(line, " "))
	if r.Error != "" && len(r.Attempts) == 0 {
		p.line(fmt.Sprintf("  %s      %s", indent, p.Escape(OneLine(r.Error, 200))))
	}
	for i := range r.Attempts {
		p.attempt(r, &r.Attempts[i], indent)
	}
	p.rows(r.Rows)
}

func (p *printer) attempt(r *Row, a *Attempt, indent string) {
	if a.State == AttemptDone && len(r.Attempts) == 1 && len(a.Notes) == 0 {
		return
	}
	text, took := a.StateText(), Duration(a.Took)
	if a.State == AttemptCut {
		took = "-" // not known
	}
	if a.Error != "" {
		text = OneLine(a.Error, 200)
	}
	p.line(fmt.Sprintf("  %s    %3d  %s  %s  %s", indent, a.N, p.At(a.Begin), took, p.Escape(text)))
	for _, n := range a.Notes {
		p.line(fmt.Sprintf("  %s         %s", indent, p.Dim(p.Escape(n.Key+": "+OneLine(n.Value, 120)))))
	}
}

func (p *printer) line(text string) { _, _ = fmt.Fprintf(p.w, "%s\n", text) }

// nextIn says when the next attempt begins.
func nextIn(d time.Duration) string {
	if d <= 0 {
		return "next"
	}
	return "next in " + About(d+time.Second)
}

// sign returns the sign of a state; a word is shown beside it if the sign is not enough.
func (p *printer) sign(st State) string {
	switch st {
	case Done:
		return p.Paint(ToneDone, "✓")
	case Failed, TimedOut:
		return p.Paint(ToneFail, "✗")
	case Waiting:
		return p.Paint(ToneWait, "?")
	case Expected, Closed:
		return p.Dim("·")
	}
	return p.Paint(ToneResume, "▸")
}
