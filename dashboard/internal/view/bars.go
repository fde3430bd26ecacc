package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// A Bar is a mark in a row of the timeline; the template knows how each shape is
// drawn. X and W are percent.
type Bar struct {
	Shape  string // of the template: box, tick, dash, hollow, gap, cut, now, fold, diamond, killed, text
	Class  string
	X, W   string
	Y, H   int
	Thin   bool // too narrow for a percentage: drawn 5 px wide
	Text   string
	Anchor string

	from, to store.Time // the time that it represents; 0: none
}

// Bounds of what is drawn; the latest of each are kept. Every row repeats the marks in its
// background.
const (
	backShown     = 12 // marks in the background
	ticksShown    = 4  // replays, in a row
	attemptsDrawn = 12 // attempts, in a row
)

func lastOf[T any](list []T, n int) []T { return list[max(len(list)-n, 0):] }

// background makes the marks that go through all rows.
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
			t.back = append(t.back, moment(Bar{Shape: "cut", X: percent(t.axis.x(l.At))}, l.At))
		}
	}
	if !o.Run.Status.Terminal() {
		t.back = append(t.back, moment(Bar{Shape: "now", X: percent(t.axis.end)}, o.End))
	}
	t.back = lastOf(within(t.axis.window, t.back), backShown)
}

func percent(x float64) string { return fmt.Sprintf("%.2f", x) }

// box is a bar from one moment to another.
func (t *timeline) box(shape, class string, from, to store.Time) Bar {
	x, y := t.axis.x(from), t.axis.x(to)
	b := Bar{Shape: shape, Class: class, X: percent(x), W: percent(max(y-x, 0)), Y: 9, H: 14, from: from, to: max(from, to)}
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

// bars draws a row.
func (t *timeline) bars(r *outline.Row) []Bar {
	var out []Bar
	if r.Seq == 0 && len(r.Rows) == 0 {
		return nil
	}
	if r.End != 0 && r.State == outline.Done {
		from := max(len(t.o.Lives)-ticksShown, 0)
		for i, l := range t.o.Lives[from:] {
			if i+from > 0 && l.Begin > r.End && l.Replayed > 0 {
				out = append(out, moment(Bar{Shape: "tick", Class: "rp", X: percent(t.axis.x(l.Begin) + 0.3), Y: 9, H: 14}, l.Begin))
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
		return append(out, t.edited(r)...)
	}
	for i := max(len(r.Attempts)-attemptsDrawn, 0); i < len(r.Attempts); i++ {
		out = append(out, t.attempt(r, i, 9, 14)...)
	}
	if r.State == outline.Running && !t.o.Run.Status.Terminal() {
		out = append(out, t.running(max(r.NextAt, r.Attempts[len(r.Attempts)-1].End)))
	}
	return append(out, t.edited(r)...)
}

// edited marks when a result was replaced.
func (t *timeline) edited(r *outline.Row) []Bar {
	if r.Edited == nil {
		return nil
	}
	return []Bar{moment(Bar{Shape: "diamond", X: percent(t.axis.x(r.Edited.At))}, r.Edited.At)}
}

func classOf(r *outline.Row) string {
	if r.State == outline.Failed {
		return "bad"
	}
	return "ok"
}

// running is the bar of what goes on now.
func (t *timeline) running(since store.Time) Bar {
	b := t.box("going", "go", since, t.o.Now)
	return b
}

// attempt draws one attempt and the pause after it.
func (t *timeline) attempt(r *outline.Row, i, y, h int) []Bar {
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
	out := []Bar{b}
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
func (t *timeline) hollow(r *outline.Row) []Bar {
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
		return []Bar{t.box("box", classOf(r), r.Begin, end)}
	}
	b := t.box("hollow", class, r.Begin, end)
	length := outline.About(end.Sub(r.Begin))
	if end.Sub(r.Begin) < 10*time.Second {
		length = outline.Duration(end.Sub(r.Begin))
	}
	if t.wide(r.Begin, end, len(length)+1) {
		b.Text = length
	}
	out := []Bar{b}
	for _, f := range t.axis.folds() {
		if f.from >= r.Begin && f.to <= end && t.axis.x(f.to)-t.axis.x(f.from) > 2 {
			out = append(out, Bar{Shape: "fold", X: percent(t.axis.x(f.to) - 1.6)})
		}
	}
	return out
}

// group draws a Map or a branch in one row: a few items in three thin lanes, many as one
// bar with the failures marked on it.
func (t *timeline) group(r *outline.Row) []Bar {
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
	var out []Bar
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
		if x.State == outline.Failed && failed < 20 {
			failed++
			out = append(out, moment(Bar{Shape: "tick", Class: "badtick", X: percent(t.axis.x(x.End)), Y: 5, H: 22}, x.End))
		}
	}
	return out
}

// LifeBars draws the first row: which executors had the run.
func (t *timeline) LifeBars() []Bar {
	out := append([]Bar(nil), t.back...)
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
			out = append(out, moment(Bar{Shape: "killed", X: percent(max(t.axis.x(l.End)-1, 0))}, l.End))
			until := t.o.End
			if i+1 < len(t.o.Lives) {
				until = t.o.Lives[i+1].Begin
			}
			if gap := outline.About(until.Sub(l.End)); t.wide(l.End, until, len(gap)+2) {
				mid := (t.axis.x(l.End) + t.axis.x(until)) / 2
				out = append(out, Bar{Shape: "text", Class: "e m hide-t", X: percent(mid + 0.6), Y: 22, Text: gap})
			}
		}
	}
	return within(t.axis.window, out)
}

// AxisBars write the time.
func (t *timeline) AxisBars() []Bar {
	var out []Bar
	ticks := t.axis.ticks(11)
	layout := "15:04:05"
	if len(ticks) > 1 && ticks[len(ticks)-1].Sub(ticks[0]) < time.Duration(len(ticks))*2*time.Second {
		layout = "15:04:05.0"
	}
	for i := 1; i < len(ticks); i++ {
		if ticks[i].Sub(ticks[i-1]) < 100*time.Millisecond {
			layout = "05.000" // the first one says the hour
		}
	}
	for i, at := range ticks {
		class := "ax"
		if i%2 == 1 && len(ticks) > 3 {
			class = "ax hide-t"
		}
		text := outline.Clock(at, t.o.Now, Zone)
		if i > 0 {
			text = at.Time().In(Zone).Format(layout)
		}
		out = append(out, Bar{Shape: "text", Class: class, X: percent(max(t.axis.x(at), 0.3)), Y: 19, Text: text})
	}
	if !t.o.Run.Status.Terminal() {
		out = append(out, moment(Bar{Shape: "text", Class: "w r", X: "99.5", Y: 19, Text: "now"}, t.o.End))
	}
	return within(t.axis.window, out)
}

// moment is a mark of one moment.
func moment(b Bar, at store.Time) Bar {
	b.from, b.to = at, at
	return b
}

// within leaves out the marks of what happened outside the time that is shown.
func within(window *span, bars []Bar) []Bar {
	if window == nil {
		return bars
	}
	kept := bars[:0:0]
	for _, b := range bars {
		if b.from == 0 || b.to >= window.from && b.from <= window.to {
			kept = append(kept, b)
		}
	}
	return kept
}
