package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
)

// forkPanel plans a copy: up to a place, and with other results than the run has. The
// address says which calls have other results. The values are only in the form, so that no
// address contains user data. What is copied and what runs again depends on the calls, not
// on the values.
func (rp *RunPage) forkPanel(r *http.Request, p *panelView, o *outline.Outline, q *view.Query, link func(url.Values) string) error {
	id := o.Run.ID
	at, _ := strconv.ParseInt(q.Values.Get("at"), 10, 64)
	force := q.Values.Get("force") == "1"
	chosen := q.Values.Get("at") != ""
	p.Title, p.Sub = "Fork "+id, "A dry run. A new run with this history; this one is not touched."
	p.Do, p.DoIcon, p.NewID = "Fork "+id, "branch", id+"-fork"
	var keys []string
	if rp.May(r, web.ActionEdit, id) == nil {
		keys = editedKeys(q.Values)
	}
	if !chosen && len(keys) == 0 {
		at = o.BeforeFailure() // a copy of everything would fail at once
	}
	plan, err := operate.On(rp.Engine).PlanFork(r.Context(), id, forkOf(at, keys, force))
	if undone, ok := errors.AsType[*operate.UndoneError](err); ok && !chosen && undone.Before > 0 {
		at = undone.Before // or before what was undone
		plan, err = operate.On(rp.Engine).PlanFork(r.Context(), id, forkOf(at, keys, force))
	}
	if err = p.refuse(rp, err); err != nil {
		return err
	}
	rp.fillPlan(p, &plan, o)
	p.ofCopy(&plan)
	p.forkPlaces(o, at, chosen, len(keys) > 0)
	p.Command = view.NewCommand("fork", id)
	if at > 0 {
		p.Command.Flag("--from", strconv.FormatInt(at, 10))
		p.field("at", "number", strconv.FormatInt(at, 10))
	}
	for i, key := range keys {
		e, err := rp.editField(r, p, o, key)
		if err != nil {
			return err
		}
		e.ID = "val" + strconv.Itoa(i)
		values := q.With("panel", "fork", "at", q.Values.Get("at"))
		values["edit"] = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == key })
		e.Without = link(values)
		p.Edits = append(p.Edits, *e)
		p.Hidden = append(p.Hidden, "edit", key)
		file := "result.json"
		if i > 0 {
			file = fmt.Sprintf("result%d.json", i+1)
		}
		p.Command.Flag("--edit", key+"=@"+file)
	}
	if rp.May(r, web.ActionEdit, id) == nil {
		upTo := at
		if !chosen {
			upTo = 0 // the failure can be given another result, too
		}
		p.Editable = editables(o, upTo, keys, q.Step)
	}
	if len(keys) > 0 {
		p.Reason = true
		p.Options = append(p.Options, optionView{"force", "Force", "Take a value of another type than the recorded one, and what was undone as done.", force})
	} else if p.Fix == "force" || force {
		p.Options = append(p.Options, optionView{"force", "Force", "Copy what was undone as done.", force})
	}
	if force {
		p.Command.Flag("--force")
		p.field("force", "flag", "true")
	}
	return nil
}

// editedKeys are the calls for which an address wants other results, each once.
func editedKeys(values url.Values) []string {
	var keys []string
	for _, key := range values["edit"] {
		if key != "" && !slices.Contains(keys, key) && len(keys) < view.MaxEdits {
			keys = append(keys, key)
		}
	}
	return keys
}

// forkOf returns the options of a plan. Values of any type are accepted, since they are
// not given yet.
func forkOf(at int64, keys []string, force bool) operate.ForkOptions {
	o := operate.ForkOptions{ID: durable.AutoID, At: at, Force: force || len(keys) > 0}
	for _, key := range keys {
		if o.Edits == nil {
			o.Edits = map[string]any{}
		}
		o.Edits[key] = nil
	}
	return o
}

// ofCopy adds to a plan what is different in a copy: it has its own idempotency keys, and
// what is in progress in the run stays in progress.
func (p *panelView) ofCopy(plan *operate.Plan) {
	for i := range p.Skipped {
		if slices.Contains(plan.Edited, p.Skipped[i].Key) {
			p.Skipped[i].Note, p.Skipped[i].Icon = "with your result", view.Icon{Name: "pencil", Class: "c-resume"}
		}
	}
	for i := range p.Again {
		p.Again[i].Note = "with a new idempotency key"
	}
	if p.Next != nil {
		p.Next.Detail = "Then whatever the code does next; that cannot be known from here."
		if plan.Next.Failed {
			p.Next.Detail = "It has failed for good, and the copy has its error too: give it another result, or copy less."
		}
	}
	p.Left = nil
	if p.Refused == "" {
		p.Warn = append(p.Warn, "Effects of steps that run again happen again: a fork has idempotency keys of its own.")
	}
}

// forkPlaces are the places up to which a run can be copied.
func (p *panelView) forkPlaces(o *outline.Outline, at int64, chosen, edited bool) {
	p.PlaceOf, p.PlaceIs = "at", "Copy"
	before := o.BeforeFailure()
	switch {
	case edited:
		p.Places = append(p.Places, placeView{"", "up to the edited results", at == 0})
	case before > 0:
		p.Places = append(p.Places,
			placeView{"", fmt.Sprintf("all before %s, which failed", o.Current.Key), !chosen},
			placeView{"0", "everything that is recorded: it fails at once", chosen && at == 0})
	default:
		p.Places = append(p.Places, placeView{"", "everything that is recorded", at == 0})
	}
	if chosen || edited {
		p.behind(o, at)
	} else {
		p.behind(o, -1) // no choice but the first is the current one
	}
	if at > 0 && !slices.ContainsFunc(p.Places, func(v placeView) bool { return v.On }) {
		p.Places = slices.Insert(p.Places, 1, placeView{strconv.FormatInt(at, 10), fmt.Sprintf("up to event %d", at), true})
	}
}

// editablesShown bounds a choice. It always has the row that is selected in the timeline.
const editablesShown = 60

// editables are the calls that a copy up to at could have other results for: the selected
// one first, then the latest.
func editables(o *outline.Outline, at int64, keys []string, selected string) []placeView {
	var rows []*outline.Row
	for _, l := range o.Lanes {
		outline.Each(l.Rows, func(r *outline.Row) bool {
			if view.IsEditable(r) && (at == 0 || r.Outcome <= at) && !slices.Contains(keys, r.Key) {
				rows = append(rows, r)
			}
			return true
		})
	}
	slices.SortStableFunc(rows, func(a, b *outline.Row) int {
		if (a.Key == selected) != (b.Key == selected) {
			if a.Key == selected {
				return -1
			}
			return 1
		}
		return int(b.Outcome - a.Outcome)
	})
	list := make([]placeView, 0, min(len(rows), editablesShown))
	for _, r := range rows[:min(len(rows), editablesShown)] {
		list = append(list, placeView{Value: r.Key, Label: fmt.Sprintf("%s, %s, event %d", r.Key, r.State, r.Outcome)})
	}
	return list
}
