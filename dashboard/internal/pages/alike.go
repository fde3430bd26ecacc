package pages

import (
	"context"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// alikeLooked is how many of the most recently failed runs are compared with one: a page
// that stores read by index, however many runs they have.
const alikeLooked = 200

// alike says how many of the most recently failed runs ended the way this one did: with
// the same error, or otherwise in the same step. nil: none is known.
func (rp *RunPage) alike(ctx context.Context, o *outline.Outline) (view.Text, error) {
	if o.Run.Status != store.Failed {
		return nil, nil
	}
	page, err := rp.Engine.List(ctx, store.Filter{Statuses: []store.Status{store.Failed}, Limit: alikeLooked})
	if err != nil {
		return nil, err
	}
	mine := errorOf(o.Run.Reason)
	step := ""
	if o.Current != nil {
		step = "step " + o.Current.Key + ": "
	}
	var same, beside []*store.Run
	for i := range page.Runs {
		r := &page.Runs[i]
		switch {
		case r.ID == o.Run.ID || r.Workflow != o.Run.Workflow:
		case errorOf(rp.Redact.Text(r.Reason)) == mine: // the outline's reason is redacted already
			same = append(same, r)
		case step != "" && strings.HasPrefix(r.Reason, step):
			beside = append(beside, r)
		}
	}
	among := ""
	if page.Next != "" {
		among = " of the last " + count.Number(len(page.Runs)) + " that failed"
	}
	query := "status:failed"
	if len(strings.Fields(o.Run.Workflow)) == 1 { // a filter consists of words
		query = "workflow:" + o.Run.Workflow + " " + query
	}
	switch {
	case len(same) > 0:
		t := view.Text{{Text: "The same error ended "}, {Text: count.Of(len(same), "other run"), URL: rp.Site.List(query + errorTerm(rp.Redact.Text, o.Run.Reason))}, {Text: among + ", "}}
		return append(t, ended(o, same)...), nil
	case len(beside) > 0:
		t := view.Text{{Text: count.Of(len(beside), "other run"), URL: rp.Site.List(query)}, {Text: among + " failed in "}, {Text: o.Current.Key, Code: true}, {Text: " with another error, "}}
		return append(t, ended(o, beside)...), nil
	}
	return nil, nil
}

// ended says when the runs ended.
func ended(o *outline.Outline, runs []*store.Run) view.Text {
	first, last := runs[0].EndedAt, runs[0].EndedAt
	for _, r := range runs {
		first, last = min(first, r.EndedAt), max(last, r.EndedAt)
	}
	from, to := outline.Clock(first, o.Now, view.Zone), outline.Clock(last, o.Now, view.Zone)
	if from == to {
		return view.Text{{Text: "at "}, {Text: to, Strong: true}, {Text: "."}}
	}
	return view.Text{{Text: "between " + from + " and "}, {Text: to, Strong: true}, {Text: "."}}
}
