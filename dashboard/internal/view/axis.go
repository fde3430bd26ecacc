package view

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// An axis maps moments to percent of the timeline's width. Long stretches in which nothing
// was executed are folded, so that a burst of steps next to a day of waiting still looks
// like a burst.
//
// For example, with work from 0 to 10 s, a wait to 3,610 s, and work to 3,620 s,
// the 3,600 s in between take an eighth of the width, and each burst about two
// fifths.
type axis struct {
	parts []part
	width float64 // sum of the parts
	end   float64 // percent of the last moment
	// window is the time that is shown; nil: all of it.
	window *span
}

// A part of the axis: linear within itself.
type part struct {
	from, to store.Time
	width    float64
	at       float64 // where it begins
	folded   bool
}

// foldAbove is the shortest stretch that is folded.
const foldAbove = 3 * time.Second

// axisEnd leaves room at the right for the mark of the present.
const axisEnd = 97.5

// newAxis lays out the time of an outline.
func newAxis(o *outline.Outline, fold bool, window *span) *axis {
	var busy spans
	var points []store.Time
	mark := func(t store.Time) {
		if t != 0 && (window == nil || t >= window.from && t <= window.to) {
			points = append(points, t)
		}
	}
	row := func(r *outline.Row) bool {
		mark(r.Begin)
		mark(r.End)
		for _, a := range r.Attempts {
			if a.Begin != 0 && a.State != outline.AttemptCut {
				busy = append(busy, span{a.Begin, a.End})
			}
			mark(a.Begin)
			mark(a.End)
		}
		return true
	}
	for _, l := range o.Lanes {
		outline.Each(l.Rows, row)
		outline.Each(l.Left, row)
		mark(l.At)
	}
	for _, l := range o.Lives {
		mark(l.Begin)
		mark(l.End)
	}
	if window != nil {
		points = append(points, window.from, window.to)
	}
	mark(o.Begin)
	mark(o.End)
	slices.Sort(points)
	points = slices.Compact(points)
	if len(points) == 0 {
		points = []store.Time{o.Now}
	}
	a := layAxis(points, busy.merged(), fold)
	a.window = window
	return a
}

type span struct{ from, to store.Time }

type spans []span

// merged returns the spans in order, without overlaps.
func (s spans) merged() spans {
	slices.SortFunc(s, func(a, b span) int { return int(a.from - b.from) })
	var out spans
	for _, x := range s {
		if n := len(out); n > 0 && x.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, x.to)
			continue
		}
		out = append(out, x)
	}
	return out
}

// covers reports whether something was executed between two moments.
func (s spans) covers(from, to store.Time) bool {
	i, _ := slices.BinarySearchFunc(s, from, func(x span, t store.Time) int {
		if x.to <= t {
			return -1
		}
		return 1
	})
	return i < len(s) && s[i].from < to
}

func layAxis(points []store.Time, busy spans, fold bool) *axis {
	a := &axis{end: axisEnd}
	var kept float64
	folds := 0
	for i := 1; i < len(points); i++ {
		p := part{from: points[i-1], to: points[i]}
		p.width = p.to.Sub(p.from).Seconds()
		p.folded = fold && p.to.Sub(p.from) > foldAbove && !busy.covers(p.from, p.to)
		if n := len(a.parts); !p.folded && n > 0 && !a.parts[n-1].folded {
			a.parts[n-1].to = p.to
			a.parts[n-1].width += p.width
		} else {
			a.parts = append(a.parts, p)
		}
		if p.folded {
			folds++
		} else {
			kept += p.width
		}
	}
	if kept == 0 {
		kept = 1
	}
	// One fold takes an eighth of the width of the work; all folds together take no more
	// than the work does.
	each := kept / 8
	if folds > 8 {
		each = kept / float64(folds)
	}
	for i := range a.parts {
		p := &a.parts[i]
		if p.folded {
			p.width = min(p.width, each)
			p.folded = p.width < p.to.Sub(p.from).Seconds()
		}
		p.at = a.width
		a.width += p.width
	}
	if len(a.parts) == 0 {
		a.parts = []part{{from: points[0], to: points[0]}}
	}
	if a.width == 0 {
		a.width = 1
	}
	return a
}

// x returns the position of a moment, in percent.
func (a *axis) x(t store.Time) float64 {
	i, found := slices.BinarySearchFunc(a.parts, t, func(p part, t store.Time) int {
		switch {
		case p.to < t:
			return -1
		case p.from > t:
			return 1
		}
		return 0
	})
	if !found {
		if i >= len(a.parts) {
			return a.end
		}
		return a.parts[i].at / a.width * a.end
	}
	p := a.parts[i]
	if p.to == p.from {
		return p.at / a.width * a.end
	}
	return (p.at + p.width*float64(t-p.from)/float64(p.to-p.from)) / a.width * a.end
}

// folds returns where the axis is folded, and how long each fold is.
func (a *axis) folds() []part {
	var out []part
	for _, p := range a.parts {
		if p.folded {
			out = append(out, p)
		}
	}
	return out
}

// ticks returns moments to be written on the axis: the beginning, where a folded
// stretch ends, and some in between, none nearer than room percent to another.
func (a *axis) ticks(room float64) []store.Time {
	first, last := a.parts[0].from, a.parts[len(a.parts)-1].to
	out := []store.Time{first}
	free := func(t store.Time) bool {
		x := a.x(t)
		if x > a.end-room {
			return false
		}
		for _, o := range out {
			if d := a.x(o) - x; d < room && d > -room {
				return false
			}
		}
		return true
	}
	for _, p := range a.parts {
		if p.folded && free(p.to) {
			out = append(out, p.to)
		}
	}
	for _, p := range a.parts {
		for i := 1; i < 6 && !p.folded; i++ {
			if t := p.from + store.Time(i)*(p.to-p.from)/6; free(t) {
				out = append(out, t)
			}
		}
	}
	if len(out) == 1 && last > first && free(last) {
		out = append(out, last)
	}
	slices.Sort(out)
	return out
}

// zoomed returns the stretch of time that a timeline shows when it does not show all of
// it: that of one row, with a little before and after. nil: all of it.
func zoomed(o *outline.Outline, key string) *span {
	if key == "" {
		return nil
	}
	r := o.Row(key)
	if r == nil || r.Begin == 0 {
		return nil
	}
	s := span{itemBegin(r), r.End}
	if s.to == 0 {
		s.to = o.End
	}
	room := max(s.to.Sub(s.from)/20, time.Millisecond)
	s = span{max(s.from.Add(-room), o.Begin), min(s.to.Add(room), o.End)}
	if s.to <= s.from || s == (span{o.Begin, o.End}) {
		return nil
	}
	return &s
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
