package dashboard

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// zoomed returns the time that a timeline is looked at in, when not the whole: that
// of one row, with a little before and behind it. Nil: all of it.
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

// within leaves out the marks of what happened outside of the time that is looked at.
func (a *axis) within(bars []bar) []bar {
	if a.window == nil {
		return bars
	}
	kept := bars[:0:0]
	for _, b := range bars {
		if b.from == 0 || b.to >= a.window.from && b.from <= a.window.to {
			kept = append(kept, b)
		}
	}
	return kept
}

// zooms are the links that change what time is looked at.
func (q *runQuery) zooms(o *outline.Outline, step string) []toggleView {
	link := func(label, key string) toggleView {
		return toggleView{Label: label, URL: q.with("zoom", key).Encode(), Wide: true}
	}
	var list []toggleView
	if step != q.zoom && zoomed(o, step) != nil {
		list = append(list, link(zoomIn, step))
	}
	if q.zoom != "" {
		list = append(list, link(zoomOut, ""))
	}
	return list
}

// What the links are called; the script finds them by it.
const (
	zoomIn  = "Zoom in"
	zoomOut = "Whole time"
)

// moment is a mark of one moment.
func moment(b bar, at store.Time) bar {
	b.from, b.to = at, at
	return b
}
