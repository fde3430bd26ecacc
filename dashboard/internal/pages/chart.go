package pages

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// chartView draws when the runs that match were started, and what has become of them.
type chartView struct {
	Span    string // "in the last 24 hours"
	Started int64
	Failed  int64
	Waiting int64
	Bars    []chartBar
	First   string // what the ends of the axis say
	Last    string
	TooMany bool // they could not be counted in time
}

// A chartBar is the runs that were started in one part of the span. Lengths are percent.
type chartBar struct {
	X, W    string
	URL     string // the list of these runs
	Text    string
	Pieces  []chartPiece
	started int64
	failed  int64
	waiting int64
}

type chartPiece struct{ Class, Y, H string }

const (
	chartSpan = 24 * time.Hour // without a filter by time
	chartBars = 30             // at most
	// chartTime bounds how long the store may count for a chart. A count reads an entry of an
	// index for each run of its span.
	chartTime = 250 * time.Millisecond
)

// chartSteps are how much time a bar may stand for.
var chartSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// chart counts the runs that match by when they were started; nil: the store cannot count
// them, or there are none.
func (li *Lists) chart(ctx context.Context, ts terms, ask *read.Listing) (*chartView, error) {
	if ask.Scans() {
		return nil, nil
	}
	f := ask.Filter
	f.Limit, f.After, f.WithLast, f.OldestFirst = 0, "", false, false
	now := view.Now()
	v := &chartView{Span: "in this span"}
	to := min(f.CreatedTo, now)
	if to == 0 {
		to = now
	}
	from := f.CreatedFrom
	if from == 0 {
		from = to.Add(-chartSpan)
		if f.CreatedTo == 0 {
			v.Span = "in the last 24 hours"
		}
	}
	if from >= to {
		return nil, nil
	}
	step := stepFor(to.Sub(from))
	rest := ts.without("since", "until")

	counting, stop := context.WithTimeout(ctx, chartTime)
	defer stop()
	most := int64(0)
	for end := to; end > from; {
		begin := max(store.TimeOf(end.Add(-time.Microsecond).Time().Truncate(step)), from)
		f.CreatedFrom, f.CreatedTo = begin, end
		counts, err := li.Engine.Store().Count(counting, f, store.ByStatus)
		switch {
		case err == nil:
		case ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || counting.Err() != nil):
			return &chartView{Span: v.Span, TooMany: true}, nil
		default:
			return nil, fmt.Errorf("dashboard: counting runs for the chart: %w", err)
		}
		b := chartBar{X: percent(begin.Sub(from), to.Sub(from)), W: percent(end.Sub(begin), to.Sub(from)), failed: counts[string(store.Failed)], waiting: counts[string(store.Waiting)]}
		for _, n := range counts {
			b.started += n
		}
		b.Text = fmt.Sprintf("%s to %s: %s started, %s failed, %s waiting", outline.Clock(begin, now, view.Zone), outline.Clock(end, now, view.Zone), count.Number(b.started), count.Number(b.failed), count.Number(b.waiting))
		b.URL = li.Site.List(strings.TrimSpace(rest + " since:" + exact(begin) + " until:" + exact(end)))
		if b.started > 0 {
			v.Bars = append(v.Bars, b)
		}
		v.Started, v.Failed, v.Waiting, most = v.Started+b.started, v.Failed+b.failed, v.Waiting+b.waiting, max(most, b.started)
		end = begin
	}
	if v.Started == 0 {
		return nil, nil
	}
	for i := range v.Bars {
		v.Bars[i].pile(most)
	}
	v.First, v.Last = outline.Clock(from, now, view.Zone), outline.Clock(to, now, view.Zone)
	return v, nil
}

// pile stacks what became of the runs of a bar: what went well or goes on, what waits, and
// on top what failed. Whatever is not zero can be seen.
func (b *chartBar) pile(most int64) {
	bottom := 100.0
	for _, p := range []struct {
		class string
		n     int64
	}{{"ok", b.started - b.failed - b.waiting}, {"wt", b.waiting}, {"bad", b.failed}} {
		if p.n <= 0 {
			continue
		}
		h := max(float64(p.n)*100/float64(most), 4)
		bottom = max(bottom-h, 0)
		b.Pieces = append(b.Pieces, chartPiece{p.class, fmt.Sprintf("%.2f%%", bottom), fmt.Sprintf("%.2f%%", h)})
	}
}

// stepFor is how much time a bar of a chart of this span stands for.
func stepFor(span time.Duration) time.Duration {
	for _, step := range chartSteps {
		if span/step < chartBars {
			return step
		}
	}
	return span/(chartBars-1) + 1
}

func percent(part, of time.Duration) string {
	return strconv.FormatFloat(float64(part)*100/float64(of), 'f', 2, 64) + "%"
}

// exact writes a moment as a filter reads it.
func exact(t store.Time) string { return t.Time().UTC().Format(time.RFC3339Nano) }
