package dashboard

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// firstRows is how many rows of a timeline are sent with the page; a script asks
// for the others as they are scrolled to.
const firstRows = 200

// A bar is a mark in a row of the timeline; the template knows how each shape is
// drawn. X and W are percent.
type bar struct {
	Shape  string // of the template: box, tick, dash, hollow, gap, cut, now, fold, diamond, killed, text
	Class  string
	X, W   string
	Y, H   int
	Thin   bool // too narrow for a percentage: drawn 5 px wide
	Text   string
	Anchor string
}

// A lineView is a line of the timeline's table.
type lineView struct {
	Lane     *laneView // a heading between rows; nil: a row
	N        int       // its place among all lines, from 1
	Level    int
	Key      string
	Name     string
	Label    string
	Icon     icon
	Struck   bool // left behind
	Sub      bool // an attempt
	Selected bool
	Folds    bool // it has rows in it
	Open     bool
	URL      string // selects it
	FoldURL  string
	ChildURL string
	Sentence string
	Took     string
	Bars     []bar
	Height   int
}

type laneView struct {
	Icon   icon
	Title  string
	State  string
	Detail string
}

// timeline is what a run's timeline is made of.
type timeline struct {
	o      *outline.Outline
	axis   *axis
	page   *runQuery
	link   func(q url.Values) string
	lines  []lineView
	back   []bar // behind every row: gaps, cuts, the present
	redact func(string) string
	cut    store.Time // of the rows that are drawn: when they were left behind; 0: they were not
}

func newTimeline(o *outline.Outline, q *runQuery, link func(url.Values) string, redact func(string) string) *timeline {
	t := &timeline{o: o, axis: newAxis(o, !q.noFold), page: q, link: link, redact: redact}
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
	for i := range t.lines {
		t.lines[i].N = i + 1
	}
	return t
}

// background are the marks that go through all rows.
func (t *timeline) background() {
	o := t.o
	for i, l := range o.Lives {
		if l.How != outline.Lost && l.How != outline.Gone {
			continue
		}
		until := o.End
		if i+1 < len(o.Lives) {
			until = o.Lives[i+1].Begin
		}
		if until > l.End {
			t.back = append(t.back, t.box("gap", "gap", l.End, until))
		}
	}
	for _, l := range o.Lanes {
		if !l.Root && l.At != 0 {
			t.back = append(t.back, bar{Shape: "cut", X: percent(t.axis.x(l.At))})
		}
	}
	if !o.Run.Status.Terminal() {
		t.back = append(t.back, bar{Shape: "now", X: percent(t.axis.end)})
	}
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

func percent(x float64) string { return fmt.Sprintf("%.2f", x) }

// box is a bar from one moment to another.
func (t *timeline) box(shape, class string, from, to store.Time) bar {
	x, y := t.axis.x(from), t.axis.x(to)
	b := bar{Shape: shape, Class: class, X: percent(x), W: percent(max(y-x, 0)), Y: 9, H: 14}
	if y-x < 0.55 {
		b.Thin = true
		if shape == "gap" {
			b.Thin = false
		}
	}
	return b
}

// wide reports whether a text of n characters fits between two moments.
func (t *timeline) wide(from, to store.Time, n int) bool {
	return t.axis.x(to)-t.axis.x(from) > float64(n)*1.15+0.8
}

// lane adds a heading.
func (t *timeline) lane(l *outline.Lane, kept bool) {
	v := &laneView{Title: fmt.Sprintf("Branch %d", l.Branch)}
	switch {
	case !kept:
		v.Icon, v.State = icon{"cutoff", "c-off"}, "left behind"
		v.Detail = fmt.Sprintf("cut by branch %d · %s kept for the record, never called again", l.LeftBy, plural(l.LeftEvents, "event"))
	default:
		v.Icon = icon{"branch", "c-resume"}
		v.State = "current"
		if !l.Current {
			v.State = ""
		}
		v.Detail = t.laneDetail(l)
	}
	t.lines = append(t.lines, lineView{Lane: v})
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
	parts = append(parts, fmt.Sprintf("%s after event %d, %s", verb, l.Cutoff, outline.Clock(l.At, t.o.Now, zone)))
	return strings.Join(parts, " · ")
}

// rows adds lines for rows, those in open ones too.
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
	v := lineView{
		Key: r.Key, Name: nameIn(r), Label: r.Label(), Level: r.Depth + 1, Struck: left, Took: took, Height: 32,
		Icon: rowIcon(r), Sentence: t.redact(t.o.Sentence(r)), Folds: len(r.Rows) > 0, Open: t.page.isOpen(r),
		URL: t.link(t.page.selecting(r, left)), Selected: !left && t.page.step == r.Key,
	}
	if left && r.End == 0 {
		v.Took = outline.Duration(max(t.cut.Sub(r.Begin), 0))
		v.Label = strings.TrimSpace(r.Label() + " closed by the cut")
	}
	if left {
		v.Icon = icon{"cancelled", "c-off"}
		v.Sentence += " It was left behind."
	}
	if v.Folds {
		v.FoldURL = t.link(t.page.folding(r))
	}
	if r.ChildID != "" {
		v.ChildURL = t.page.prefix + "/runs/" + url.PathEscape(r.ChildID)
	}
	v.Bars = append(append(v.Bars, t.back...), t.bars(r)...)
	t.lines = append(t.lines, v)
	if v.Selected && len(r.Attempts) > 1 && len(r.Attempts) <= 50 {
		t.attempts(r)
	}
}

// nameIn is the name of a row where it stands: of an item its number.
func nameIn(r *outline.Row) string {
	if r.Kind == outline.Item {
		return r.Name[strings.LastIndexByte(r.Name, '['):]
	}
	return r.Name
}

// bars draws a row.
func (t *timeline) bars(r *outline.Row) []bar {
	var out []bar
	if r.Seq == 0 && len(r.Rows) == 0 {
		return nil
	}
	if r.End != 0 && r.State == outline.Done {
		for i, l := range t.o.Lives {
			if i > 0 && l.Begin > r.End && l.Replayed > 0 {
				out = append(out, bar{Shape: "tick", Class: "rp", X: percent(t.axis.x(l.Begin) + 0.3), Y: 9, H: 14})
			}
		}
	}
	switch r.Kind {
	case outline.Timer, outline.Wait, outline.Approval, outline.Request, outline.Child:
		return append(out, t.hollow(r)...)
	case outline.Map, outline.Branch, outline.Undoing:
		return append(out, t.group(r)...)
	}
	if len(r.Attempts) == 0 {
		if r.Begin != 0 && r.End != 0 {
			out = append(out, t.box("box", classOf(r), r.Begin, r.End))
		} else if r.State == outline.Running {
			out = append(out, t.running(r.Begin))
		}
		return out
	}
	for i := range r.Attempts {
		out = append(out, t.attempt(r, i, 9, 14)...)
	}
	if r.State == outline.Running && !t.o.Run.Status.Terminal() {
		out = append(out, t.running(max(r.NextAt, r.Attempts[len(r.Attempts)-1].End)))
	}
	if r.Edited != nil {
		out = append(out, bar{Shape: "diamond", X: percent(t.axis.x(r.Edited.At))})
	}
	return out
}

func classOf(r *outline.Row) string {
	if r.State == outline.Failed {
		return "bad"
	}
	return "ok"
}

// running is the bar of what goes on now.
func (t *timeline) running(since store.Time) bar {
	b := t.box("going", "go", since, t.o.Now)
	return b
}

// attempt draws one attempt and the pause behind it.
func (t *timeline) attempt(r *outline.Row, i, y, h int) []bar {
	a := &r.Attempts[i]
	class := "ok"
	switch a.State {
	case outline.AttemptFailed:
		class = "bad"
	case outline.AttemptCut:
		class = "torn"
	}
	b := t.box("box", class, a.Begin, a.End)
	b.Y, b.H = y, h
	if h > 12 && len(r.Attempts) > 1 && a.State != outline.AttemptCut && t.wide(a.Begin, a.End, len(fmt.Sprint(a.N))) {
		b.Text = fmt.Sprint(a.N)
	}
	out := []bar{b}
	if a.State == outline.AttemptFailed && a.NextAt > a.End {
		until := a.NextAt
		if i+1 < len(r.Attempts) {
			until = max(until, r.Attempts[i+1].Begin)
		}
		until = min(until, t.o.End)
		if until > a.End && t.axis.x(until)-t.axis.x(a.End) > 0.9 {
			pause := t.box("dash", "bo", a.End, until)
			pause.Y = y + h/2
			out = append(out, pause)
		}
	}
	return out
}

// hollow draws a wait, a timer or a child.
func (t *timeline) hollow(r *outline.Row) []bar {
	end, class := r.End, "wto"
	switch {
	case end == 0 && t.cut != 0:
		end = t.cut
	case end == 0:
		end = t.o.End
		if r.State == outline.Waiting {
			class = "wt open"
		}
	}
	if r.Kind == outline.Child && r.State != outline.Waiting {
		return []bar{t.box("box", classOf(r), r.Begin, end)}
	}
	b := t.box("hollow", class, r.Begin, end)
	length := outline.About(end.Sub(r.Begin))
	if end.Sub(r.Begin) < 10*time.Second {
		length = outline.Duration(end.Sub(r.Begin))
	}
	if t.wide(r.Begin, end, len(length)+1) {
		b.Text = length
	}
	out := []bar{b}
	for _, f := range t.axis.folds() {
		if f.from >= r.Begin && f.to <= end && t.axis.x(f.to)-t.axis.x(f.from) > 2 {
			out = append(out, bar{Shape: "fold", X: percent(t.axis.x(f.to) - 1.6)})
		}
	}
	return out
}

// group draws a Map or a branch in one row: its items in three thin lanes when
// they are few, else as one bar with what failed on it.
func (t *timeline) group(r *outline.Row) []bar {
	end := r.End
	if end == 0 {
		end = t.o.End
		if r.State == outline.Stopped {
			end = r.Begin
			for _, x := range r.Rows {
				end = max(end, x.End)
			}
		}
	}
	var out []bar
	if n := len(r.Rows); n > 0 && n <= 9 {
		for i, x := range r.Rows {
			to := x.End
			if to == 0 {
				to = end
			}
			if x.Begin == 0 {
				continue
			}
			b := t.box("box", classOf(x), itemBegin(x), to)
			b.Y, b.H = 8+6*(i%3), 4
			out = append(out, b)
		}
		return out
	}
	b := t.box("box", classOf(r), r.Begin, end)
	if r.State == outline.Running {
		b = t.running(r.Begin)
	}
	out = append(out, b)
	failed := 0
	for _, x := range r.Rows {
		if x.State == outline.Failed && failed < 60 {
			failed++
			out = append(out, bar{Shape: "tick", Class: "badtick", X: percent(t.axis.x(x.End)), Y: 5, H: 22})
		}
	}
	return out
}

// itemBegin is when an item began, as far as its calls tell.
func itemBegin(r *outline.Row) store.Time {
	begin := r.Begin
	for _, x := range r.Rows {
		if x.Begin != 0 {
			begin = min(begin, x.Begin)
		}
	}
	return begin
}

// attempts adds a line for each attempt of the selected row.
func (t *timeline) attempts(r *outline.Row) {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		v := lineView{Sub: true, Level: r.Depth + 2, Key: r.Key, Height: 27}
		switch a.State {
		case outline.AttemptFailed:
			v.Icon = icon{"recoverable", "c-fail"}
			v.Name = fmt.Sprintf("%d · %s", a.N, outline.OneLine(t.redact(a.Error), 60))
		case outline.AttemptCut:
			v.Icon = icon{"cutoff", "c-fail"}
			v.Name = fmt.Sprintf("%d · may have been cut off", a.N)
		default:
			v.Icon = icon{"done", "c-done"}
			v.Name = fmt.Sprintf("%d · succeeded", a.N)
		}
		v.Took = outline.Duration(a.Took)
		v.Bars = append(v.Bars, t.back...)
		if a.State == outline.AttemptCut {
			v.Took = ""
			v.Bars = append(v.Bars, bar{Shape: "text", Class: "hide-t", X: percent(min(t.axis.x(a.End)+1.2, 55)), Y: 17, Text: "nothing recorded, so it ran again"})
		}
		v.Bars = append(v.Bars, t.attempt(r, i, 7, 12)...)
		t.lines = append(t.lines, v)
	}
}

// lifeBars draw the first row: who had the run.
func (t *timeline) lifeBars() []bar {
	out := append([]bar(nil), t.back...)
	for i := range t.o.Lives {
		l := &t.o.Lives[i]
		b := t.box("life", "lf2", l.Begin, l.End)
		b.Y, b.H = 10, 16
		name := l.Name
		if l.PID != 0 && !strings.Contains(name, fmt.Sprint(l.PID)) {
			name += fmt.Sprintf(" · pid %d", l.PID)
		}
		switch {
		case t.wide(l.Begin, l.End, len(name)):
			b.Text = name
		case t.wide(l.Begin, l.End, len(l.Name)):
			b.Text = l.Name
		}
		out = append(out, b)
		if l.How == outline.Lost {
			out = append(out, bar{Shape: "killed", X: percent(max(t.axis.x(l.End)-1, 0))})
			until := t.o.End
			if i+1 < len(t.o.Lives) {
				until = t.o.Lives[i+1].Begin
			}
			if gap := outline.About(until.Sub(l.End)); t.wide(l.End, until, len(gap)+2) {
				mid := (t.axis.x(l.End) + t.axis.x(until)) / 2
				out = append(out, bar{Shape: "text", Class: "e m hide-t", X: percent(mid + 0.6), Y: 22, Text: gap})
			}
		}
	}
	return out
}

// lifeSentence says the first row for who does not see it.
func (t *timeline) lifeSentence() string {
	var b strings.Builder
	for i, l := range t.o.Lives {
		fmt.Fprintf(&b, ". %s", l.Name)
		switch l.How {
		case outline.Lost:
			fmt.Fprintf(&b, ", lost; last sign %s", outline.Clock(l.End, t.o.Now, zone))
			if i+1 < len(t.o.Lives) {
				fmt.Fprintf(&b, ", then nobody for %s", outline.About(t.o.Lives[i+1].Begin.Sub(l.End)))
			}
		case outline.Alive:
			b.WriteString(", until now")
		default:
			fmt.Fprintf(&b, ", until %s", outline.Clock(l.End, t.o.Now, zone))
		}
	}
	return b.String()
}

// axisBars write the time.
func (t *timeline) axisBars() []bar {
	var out []bar
	ticks := t.axis.ticks(11)
	layout := "15:04:05"
	if len(ticks) > 1 && ticks[len(ticks)-1].Sub(ticks[0]) < time.Duration(len(ticks))*2*time.Second {
		layout = "15:04:05.0"
	}
	for i, at := range ticks {
		class := "ax"
		if i%2 == 1 && len(ticks) > 3 {
			class = "ax hide-t"
		}
		text := outline.Clock(at, t.o.Now, zone)
		if i > 0 {
			text = at.Time().In(zone).Format(layout)
		}
		out = append(out, bar{Shape: "text", Class: class, X: percent(max(t.axis.x(at), 0.3)), Y: 19, Text: text})
	}
	if !t.o.Run.Status.Terminal() {
		out = append(out, bar{Shape: "text", Class: "w r", X: "99.5", Y: 19, Text: "now"})
	}
	return out
}
