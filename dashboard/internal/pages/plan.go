package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
)

// fillPlan shows a plan of the engine.
func (rp *RunPage) fillPlan(p *panelView, plan *operate.Plan, o *outline.Outline) {
	p.Skipped = skipped(plan, o)
	for _, key := range plan.Again {
		if key != plan.Next.Key {
			p.Again = append(p.Again, planItem{Key: key, Note: "same idempotency key", Icon: view.Icon{Name: "retry", Class: "c-run"}})
		}
	}
	if p.Refused == "" && plan.RunID != "" {
		next := &planItem{Key: cmp.Or(plan.Next.Key, "the next call of the function"), Icon: view.Icon{Name: "running", Class: "c-run"}}
		switch {
		case plan.Next.Failed:
			next.Note = "fails at once"
			next.Icon = view.Icon{Name: "recoverable", Class: "c-fail"}
			next.Detail = "It has failed for good, and its error is returned again. Reset failures gives it its attempts back."
		case plan.Next.Attempt > 0:
			next.Note = fmt.Sprintf("attempt %d", plan.Next.Attempt)
			if r := o.Row(plan.Next.Key); r != nil && r.Max >= plan.Next.Attempt {
				next.Note += fmt.Sprintf(" of %d", r.Max)
			}
			next.Detail = "Same idempotency key as before" + shortKey(o, plan.Next.Key) + ". Then whatever the code does next; that cannot be known from here."
		default:
			next.Note = plan.Next.Kind
			next.Detail = "Then whatever the code does next; that cannot be known from here."
		}
		p.Next = next
	}
	wire := rp.Wire.Plan(plan)
	p.Left, p.Warn = wire.Left, append(p.Warn, wire.Warnings...)
	p.Skipped, p.Again = firstItems(p.Skipped), firstItems(p.Again)
}

// skipped lists what is taken from the history, in the order in which it was done: steps,
// and a Map as a whole instead of the steps of its items.
func skipped(plan *operate.Plan, o *outline.Outline) []planItem {
	type done struct {
		planItem
		seq int64
	}
	list := make([]done, 0, len(plan.Skipped))
	var maps []string
	rows := map[string]*outline.Row{}
	for _, l := range o.Lanes {
		outline.Each(l.Rows, func(r *outline.Row) bool {
			rows[r.Key] = r
			if r.Kind == outline.Map && r.State == outline.Done && (plan.Scope != "" || r.Outcome <= plan.From) {
				list = append(list, done{planItem{Key: r.Key, Note: r.Label(), Icon: view.Icon{Name: "done", Class: "c-done"}}, r.Outcome})
				maps = append(maps, r.Key)
			}
			return true
		})
	}
	for _, key := range plan.Skipped {
		if slices.ContainsFunc(maps, func(m string) bool { return strings.HasPrefix(key, m+"[") }) {
			continue
		}
		item := done{planItem: planItem{Key: key, Icon: view.Icon{Name: "done", Class: "c-done"}}}
		if r := rows[key]; r != nil {
			item.seq = r.Outcome
			if _, took := o.Took(r); took != "" {
				item.Note = took + " saved"
			}
		}
		list = append(list, item)
	}
	slices.SortStableFunc(list, func(a, b done) int { return cmp.Compare(a.seq, b.seq) })
	items := make([]planItem, 0, len(list))
	for _, d := range list {
		items = append(items, d.planItem)
	}
	return items
}

// planShown bounds the lists of a panel.
const planShown = 12

// firstItems returns the items that a panel shows, and how many more there are.
func firstItems(items []planItem) []planItem {
	if n := len(items); n > planShown {
		items = append(items[:planShown:planShown], planItem{Key: "…", Note: fmt.Sprintf("and %d more", n-planShown)})
	}
	return items
}

// shortKey returns the beginning of a step's idempotency key.
func shortKey(o *outline.Outline, key string) string {
	r := o.Row(key)
	if r == nil || !r.Keyed() {
		return ""
	}
	return " (" + durable.IdempotencyKeyOf(o.Run.ID, int(o.Run.Generation), key)[:11] + "…)"
}
