package pages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// runRow is a line of the list.
type runRow struct {
	ID, URL, Workflow string
	Status            view.Status
	Where, Detail     string
	Key               string
	Strip             []stripBar
	Since             string
	Process           string
	Cells             []cellView
}

// stripBar is a mark in the picture of a run, which is 186 px wide.
type stripBar struct {
	Shape, Class string
	X, W         int
}

// runRow shows a run in a line: where it is, and its picture. Both come from the newest
// events; if the history cannot be read, the line says so.
func (li *Lists) runRow(ctx context.Context, row *store.Run, executors []store.Executor, shown []column) runRow {
	at := view.Now()
	hist, err := li.Engine.Store().Load(ctx, row.ID, store.Cursor{Tail: 24, AfterMessage: 1<<63 - 1})
	if err == nil {
		*row = hist.Run // as of the same moment as the events, unlike the listing
	}
	v := runRow{ID: row.ID, URL: li.Site.Run(row.ID), Workflow: strings.TrimSpace(row.Workflow + " " + row.Version), Status: view.StatusOf(row), Process: "none"}
	v.Cells = cells(shown, row, li.Redact.Text)
	since := cmp.Or(row.EndedAt, row.UpdatedAt)
	v.Since = outline.About(at.Sub(since))
	for i := range executors {
		if executors[i].ID == row.Owner && row.Owner != "" {
			v.Process = executors[i].Name
		}
	}
	if err == nil {
		var o *outline.Outline
		if o, err = li.read.OutlineOf(hist, executors, nil); err == nil {
			v.Strip = strip(o)
			li.where(&v, o)
			if n := len(o.Lives); n > 0 && v.Process == "none" && row.Status.Terminal() {
				v.Process = o.Lives[n-1].Name
			}
		}
	}
	if err != nil {
		v.Where, v.Detail = "its history cannot be read", li.Redact.Text(err.Error())
	}
	return v
}

// where describes, in two lines, where a run is.
func (li *Lists) where(v *runRow, o *outline.Outline) {
	r := o.Current
	if r != nil {
		v.Key = r.Key
	}
	redacted := func(s string, n int) string { return li.Redact.Text(outline.OneLine(s, n)) }
	switch {
	case o.Damage != nil:
		v.Where, v.Detail = o.Verdict.Head.String(), "it stays as it is until it is repaired"
	case o.Run.Status == store.Completed:
		// Its row says how long it took, because only its last events were read.
		v.Key, v.Where, v.Detail = "", "Completed", count.Of(o.Steps, "step")+" done"
		if o.Run.Generation == 0 {
			v.Where += " in " + outline.Duration(o.RunTook())
		}
	case o.Run.Status == store.Failed:
		v.Where = redacted(o.Verdict.Error, 140)
		v.Detail = "final"
		if o.Run.Recoverable {
			v.Detail = "can be resumed"
		}
		if r != nil && len(r.Attempts) > 1 {
			v.Detail = fmt.Sprintf("attempt %d of %d · %s", r.Attempts[len(r.Attempts)-1].N, max(r.Max, r.Attempts[len(r.Attempts)-1].N), v.Detail)
		}
	case r != nil && r.Kind == outline.Approval && r.State == outline.Waiting:
		v.Where = redacted(r.Prompt, 140)
		v.Detail = "asked " + outline.About(o.Now.Sub(r.Begin)) + " ago"
		if r.Until != 0 {
			v.Detail += " · times out " + outline.Clock(r.Until, o.Now, view.Zone)
		}
	case r != nil && r.State == outline.Backoff:
		v.Where = r.Label() + ", next try in " + outline.About(r.NextAt.Sub(o.Now)+time.Second)
		v.Detail = "last: " + redacted(o.Verdict.Error, 140)
	case r != nil && (r.State == outline.Running || r.State == outline.Stopped) && len(r.Attempts) > 0:
		v.Where = r.Label()
		v.Detail = "last: " + redacted(o.Verdict.Error, 140)
	case r != nil && (r.Kind == outline.Map || r.Kind == outline.Branch):
		v.Where, v.Detail = string(r.Kind)+", "+string(r.State), count.Of(o.Steps, "step")+" done"
	case r != nil && (r.State == outline.Waiting || r.State == outline.Running):
		v.Where = string(r.Kind) + " since " + outline.Clock(cmp.Or(r.Begin, o.LastAt), o.Now, view.Zone)
		if r.Kind == outline.Timer {
			v.Where = "until " + outline.Clock(r.Until, o.Now, view.Zone)
		}
		v.Detail = count.Of(o.Steps, "step") + " done"
	default:
		v.Key = ""
		v.Where = li.Redact.Text(outline.OneLine(o.Verdict.Head.String(), 140))
		v.Detail = count.Of(o.Steps, "step") + " done"
	}
	if run := &o.Run; o.KnowExecutors && !o.Served && !o.Attended && !run.Status.Terminal() && !run.Paused && run.Code != store.CodeNotRegistered && !view.IsStuck(o) {
		v.Detail += " · no live process serves it" // for a moment that does not count as stuck
	}
}

// strip draws a run as a small picture: its last calls in order, with what went wrong on
// the way, not to scale.
func strip(o *outline.Outline) []stripBar {
	type mark struct {
		at store.Time
		b  stripBar
	}
	var marks []mark
	for i := range o.Lives {
		if o.Lives[i].How == outline.Lost {
			marks = append(marks, mark{o.Lives[i].End, stripBar{"gap", "gap", 0, 14}})
		}
	}
	for _, l := range o.Lanes {
		if !l.Root && l.At != 0 {
			marks = append(marks, mark{l.At, stripBar{"cut", "cut", 0, 4}})
		}
		outline.Each(l.Rows, func(r *outline.Row) bool {
			marks = append(marks, stripRow(r, func(at store.Time, b stripBar) mark { return mark{at, b} })...)
			return true
		})
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return int(a.at - b.at) })
	total := 0
	for _, m := range marks {
		total += m.b.W + 2
	}
	for len(marks) > 0 && total > 186 {
		total -= marks[0].b.W + 2
		marks = marks[1:]
	}
	x := 0
	out := make([]stripBar, len(marks))
	for i, m := range marks {
		m.b.X = x
		out[i] = m.b
		x += m.b.W + 2
	}
	return out
}

func stripRow[M any](r *outline.Row, at func(store.Time, stripBar) M) []M {
	var out []M
	if len(r.Rows) > 0 || r.Seq == 0 {
		return nil
	}
	switch r.Kind {
	case outline.Timer, outline.Wait, outline.Approval, outline.Request, outline.Child:
		class := "wto"
		if r.State == outline.Waiting {
			class = "wt"
		}
		return append(out, at(r.Begin, stripBar{"hollow", class, 0, 22}))
	}
	for _, a := range r.Attempts {
		switch a.State {
		case outline.AttemptFailed:
			out = append(out, at(a.End, stripBar{"fail", "bad", 0, 12}))
		case outline.AttemptDone:
			out = append(out, at(a.End, stripBar{"box", "ok", 0, widthOf(a.Took)}))
		}
	}
	if len(r.Attempts) == 0 && r.Outcome != 0 {
		class := "ok"
		if r.State == outline.Failed {
			class = "bad"
		}
		out = append(out, at(r.End, stripBar{"box", class, 0, 5}))
	}
	if r.State == outline.Running || r.State == outline.Backoff {
		out = append(out, at(1<<62, stripBar{"going", "go", 0, 9}))
	}
	return out
}

// widthOf grows with the time a step took, slowly.
func widthOf(d time.Duration) int {
	w := 5
	for limit := 50 * time.Millisecond; d > limit && w < 30; limit *= 4 {
		w += 4
	}
	return w
}
