package show

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
)

// A Row is a row of an outline as --json prints it.
type Row struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	State  string `json:"state"`
	TookMS int64  `json:"took_ms,omitempty"`
	Max    int    `json:"max_attempts,omitempty"`
	// IdempotencyKey is the key that the attempts of a step were given.
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	Error          string    `json:"error,omitempty"`
	Prompt         string    `json:"prompt,omitempty"`
	Until          string    `json:"until,omitempty"`
	Attempts       []Attempt `json:"attempts,omitempty"`
	Rows           []Row     `json:"rows,omitempty"`
}

// An Attempt is one of a Row.
type Attempt struct {
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

// Rows returns the rows of an outline for --json.
func Rows(o *outline.Outline, rows []*outline.Row) []Row {
	views := make([]Row, 0, len(rows))
	for _, r := range rows {
		took, _ := o.Took(r)
		v := Row{Key: r.Key, Kind: string(r.Kind), State: string(r.State), TookMS: took, Max: r.Max, Error: r.Error, Prompt: r.Prompt, Until: RFC3339(r.Until), Rows: Rows(o, r.Rows)}
		if r.Keyed() {
			v.IdempotencyKey = durable.IdempotencyKeyOf(o.Run.ID, int(o.Run.Generation), r.Key)
		}
		for i := range r.Attempts {
			a := &r.Attempts[i]
			av := Attempt{N: a.N, ID: a.Seq, State: AttemptState(a), At: RFC3339(a.Begin), TookMS: a.Took.Milliseconds(), Error: a.Error, NextAt: RFC3339(a.NextAt)}
			for _, n := range a.Notes {
				av.Notes = append(av.Notes, note{n.Key, n.Value})
			}
			v.Attempts = append(v.Attempts, av)
		}
		views = append(views, v)
	}
	return views
}

// AttemptState describes the outcome of an attempt. If a process was lost and had not
// recorded the beginning of the attempt, it is not known whether the attempt was made.
func AttemptState(a *outline.Attempt) string {
	if a.State == outline.AttemptCut && !a.Begun {
		return "may have been cut off"
	}
	return string(a.State)
}

// maxRows is how many rows are shown to a person who has not requested all.
const maxRows = 60

// PrintRows prints the rows of an outline with their attempts, nested. Without all it
// leaves out those of a long run that a person need not see, and returns how many.
func PrintRows(s *Stream, o *outline.Outline, all bool) (more int) {
	p := &rowPrinter{s: s, o: o, all: all}
	for _, lane := range o.Lanes {
		p.rows(lane.Rows)
	}
	return p.more
}

// rowPrinter is the state of PrintRows.
type rowPrinter struct {
	s     *Stream
	o     *outline.Outline
	all   bool
	shown int
	more  int
}

func (p *rowPrinter) rows(rows []*outline.Row) {
	width := 0
	for _, r := range rows {
		width = max(width, len([]rune(Escape(r.Name))))
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

// quietRow reports whether a person may overlook a row.
func quietRow(r *outline.Row) bool {
	return r.State == outline.Done || r.State == outline.Expected
}

func (p *rowPrinter) row(r *outline.Row, width int) {
	indent := strings.Repeat("  ", r.Depth)
	sign, colour := signOf(r.State)
	name := Escape(r.Name)
	said := []string{}
	if label := r.Label(); label != "" && label != string(r.Kind) {
		said = append(said, Escape(label))
	}
	between := r.State == outline.Stopped && len(r.Attempts) > 0 || r.State == outline.Backoff
	switch {
	case between:
		said = append(said, nextIn(r.NextAt.Sub(p.o.Now)))
	case r.Prompt != "":
		said = append(said, "asks: "+Escape(r.Prompt))
	}
	if _, took := p.o.Took(r); took != "" && r.State != outline.Expected && !between {
		said = append(said, took)
	}
	line := fmt.Sprintf("  %s%s %-*s  %s", indent, p.s.Paint(colour, sign), width, name, strings.Join(said, "  "))
	p.line(strings.TrimRight(line, " "))
	if r.Error != "" && len(r.Attempts) == 0 {
		p.line(fmt.Sprintf("  %s      %s", indent, Escape(outline.OneLine(r.Error, 200))))
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.State == outline.AttemptDone && len(r.Attempts) == 1 && len(a.Notes) == 0 {
			continue
		}
		text, took := AttemptState(a), outline.Duration(a.Took)
		if a.State == outline.AttemptCut {
			took = "-" // not known
		}
		if a.Error != "" {
			text = outline.OneLine(a.Error, 200)
		}
		p.line(fmt.Sprintf("  %s    %3d  %s  %s  %s", indent, a.N, p.s.At(a.Begin), took, Escape(text)))
		for _, n := range a.Notes {
			p.line(fmt.Sprintf("  %s         %s", indent, p.s.Paint(Dim, Escape(n.Key+": "+outline.OneLine(n.Value, 120)))))
		}
	}
	p.rows(r.Rows)
}

func (p *rowPrinter) line(text string) {
	p.s.Printf("%s\n", text)
}

// signOf returns the sign of a state; a word is shown beside it if the sign is not
// enough.
func signOf(st outline.State) (sign, colour string) {
	switch st {
	case outline.Done:
		return "✓", Green
	case outline.Failed, outline.TimedOut:
		return "✗", Red
	case outline.Waiting:
		return "?", Yellow
	case outline.Expected, outline.Closed:
		return "·", Dim
	}
	return "▸", Yellow
}
