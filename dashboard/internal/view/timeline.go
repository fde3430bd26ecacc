package view

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// FirstRows is how many rows of a timeline come with the page; a script asks for the
// others as they scroll into view.
const FirstRows = 200

// A Line is a line of the timeline's table.
type Line struct {
	Lane     *laneView // a heading between rows; nil: a row
	N        int       // its place among all lines, from 1
	Level    int
	Key      string
	Name     string
	Label    string
	Icon     Icon
	Struck   bool // left behind
	Sub      bool // an attempt
	Selected bool
	Folds    bool // it has rows inside it
	Open     bool
	URL      string // selects it
	FoldURL  string
	ChildURL string
	Sentence string
	Took     string
	Bars     []Bar
	Height   int
}

type laneView struct {
	Icon   Icon
	Title  string
	State  string
	Detail string
}

// timeline collects the lines of a run's timeline.
type timeline struct {
	o      *outline.Outline
	axis   *axis
	page   *Query
	link   func(q url.Values) string
	Lines  []Line
	back   []Bar // in the background of every row: gaps, cuts, the present
	redact func(string) string
	cut    store.Time // when the rows that are being drawn were left behind; 0: they were not
}

// NewTimeline draws an outline the way the query asks for. link makes an address of a
// query.
func NewTimeline(o *outline.Outline, q *Query, link func(url.Values) string, redact func(string) string) *timeline {
	t := &timeline{o: o, axis: newAxis(o, !q.noFold, zoomed(o, q.zoom)), page: q, link: link, redact: redact}
	t.background()
	several := len(o.Lanes) > 1
	for i := range o.Lanes {
		l := &o.Lanes[i]
		if q.branchOnly && !l.Current && several {
			t.rows(l.Rows, false)
			continue
		}
		if several && (l.Current || l.Root && i > 0) {
			t.lane(l, true)
		}
		t.rows(l.Rows, false)
		if len(l.Left) > 0 && !q.branchOnly {
			t.lane(l, false)
			t.cut = t.cutAt(l.LeftBy)
			t.rows(l.Left, true)
			t.cut = 0
		}
	}
	for i := range t.Lines {
		t.Lines[i].N = i + 1
	}
	return t
}

// cutAt is when a branch began.
func (t *timeline) cutAt(branch int32) store.Time {
	for _, l := range t.o.Lanes {
		if l.Branch == branch {
			return l.At
		}
	}
	return t.o.End
}

// lane adds a heading.
func (t *timeline) lane(l *outline.Lane, kept bool) {
	v := &laneView{Title: fmt.Sprintf("Branch %d", l.Branch)}
	switch {
	case !kept:
		v.Icon, v.State = Icon{"cutoff", "c-off"}, "left behind"
		v.Detail = fmt.Sprintf("cut by branch %d · %s kept for the record, never called again", l.LeftBy, count.Of(l.LeftEvents, "event"))
	default:
		v.Icon = Icon{"branch", "c-resume"}
		v.State = "current"
		if !l.Current {
			v.State = ""
		}
		v.Detail = t.laneDetail(l)
	}
	t.Lines = append(t.Lines, Line{Lane: v})
}

func (t *timeline) laneDetail(l *outline.Lane) string {
	if l.Root {
		return l.Reason
	}
	var parts []string
	if l.Reason != "" {
		parts = append(parts, "“"+outline.OneLine(t.redact(l.Reason), 120)+"”")
	}
	verb := map[store.Type]string{store.Edited: "edited", store.JumpActivated: "taken back", store.WorkflowRecovered: "mended", store.WorkflowInterrupted: "resumed from a checkpoint"}[l.Act]
	if verb == "" {
		verb = "cut"
	}
	if l.By != "" {
		verb += " by " + l.By
	}
	parts = append(parts, fmt.Sprintf("%s after event %d, %s", verb, l.Cutoff, outline.Clock(l.At, t.o.Now, Zone)))
	return strings.Join(parts, " · ")
}

// rows adds lines for rows, and for those inside open ones.
func (t *timeline) rows(rows []*outline.Row, left bool) {
	for _, r := range rows {
		if !t.page.shows(r) {
			t.rows(r.Rows, left)
			continue
		}
		t.row(r, left)
		if len(r.Rows) > 0 && (t.page.isOpen(r) || t.page.filters()) {
			t.rows(r.Rows, left)
		}
	}
}

func (t *timeline) row(r *outline.Row, left bool) {
	_, took := t.o.Took(r)
	v := Line{
		Key: r.Key, Name: nameIn(r), Label: r.Label(), Level: r.Depth + 1, Struck: left, Took: took, Height: 32,
		Icon: RowIcon(r), Sentence: t.redact(t.o.Sentence(r)), Folds: len(r.Rows) > 0, Open: t.page.isOpen(r),
		URL: t.link(t.page.selecting(r, left)), Selected: !left && t.page.Step == r.Key,
	}
	if left && r.End == 0 {
		v.Took = outline.Duration(max(t.cut.Sub(r.Begin), 0))
		v.Label = strings.TrimSpace(r.Label() + " closed by the cut")
	}
	if left {
		v.Icon = Icon{"cancelled", "c-off"}
		v.Sentence += " It was left behind."
	}
	if v.Folds {
		v.FoldURL = t.link(t.page.folding(r))
	}
	if r.ChildID != "" {
		v.ChildURL = t.page.prefix + "/runs/" + client.EscapeID(r.ChildID)
	}
	v.Bars = append(append(v.Bars, t.back...), within(t.axis.window, t.bars(r))...)
	t.Lines = append(t.Lines, v)
	if v.Selected && len(r.Attempts) > 1 && len(r.Attempts) <= 50 {
		t.attempts(r)
	}
}

// nameIn returns the name of a row in its place: for an item, its number.
func nameIn(r *outline.Row) string {
	if r.Kind == outline.Item {
		return r.Name[strings.LastIndexByte(r.Name, '['):]
	}
	return r.Name
}

// attempts adds a line for each attempt of the selected row.
func (t *timeline) attempts(r *outline.Row) {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		v := Line{Sub: true, Level: r.Depth + 2, Key: r.Key, Height: 27}
		switch a.State {
		case outline.AttemptFailed:
			v.Icon = Icon{"recoverable", "c-fail"}
			v.Name = fmt.Sprintf("%d · %s", a.N, outline.OneLine(t.redact(a.Error), 60))
		case outline.AttemptCut:
			v.Icon = Icon{"cutoff", "c-fail"}
			v.Name = fmt.Sprintf("%d · may have been cut off", a.N)
		default:
			v.Icon = Icon{"done", "c-done"}
			v.Name = fmt.Sprintf("%d · succeeded", a.N)
		}
		v.Took = outline.Duration(a.Took)
		v.Bars = append(v.Bars, t.back...)
		if a.State == outline.AttemptCut {
			v.Took = ""
			v.Bars = append(v.Bars, moment(Bar{Shape: "text", Class: "hide-t", X: percent(min(t.axis.x(a.End)+1.2, 55)), Y: 17, Text: "nothing recorded, so it ran again"}, a.End))
		}
		v.Bars = within(t.axis.window, append(v.Bars, t.attempt(r, i, 7, 12)...))
		t.Lines = append(t.Lines, v)
	}
}

// LifeSentence describes the first row in words, for users who cannot see it.
func (t *timeline) LifeSentence() string {
	var b strings.Builder
	for i, l := range t.o.Lives {
		fmt.Fprintf(&b, ". %s", l.Name)
		switch l.How {
		case outline.Lost:
			fmt.Fprintf(&b, ", lost; last sign %s", outline.Clock(l.End, t.o.Now, Zone))
			if i+1 < len(t.o.Lives) {
				fmt.Fprintf(&b, ", then nobody for %s", outline.About(t.o.Lives[i+1].Begin.Sub(l.End)))
			}
		case outline.Alive:
			b.WriteString(", until now")
		default:
			fmt.Fprintf(&b, ", until %s", outline.Clock(l.End, t.o.Now, Zone))
		}
	}
	return b.String()
}
