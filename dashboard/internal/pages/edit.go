package pages

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/dashboard/internal/act"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// An editView is the field for a result that replaces a recorded one.
type editView struct {
	Key     string
	ID      string // of the field in the page
	Value   string // what is recorded, where that may be shown; else empty
	Without string // address of the panel without it
}

// editPanel plans to replace a recorded result.
func (rp *RunPage) editPanel(r *http.Request, p *panelView, o *outline.Outline, q *view.Query) error {
	p.Title, p.Sub = "Edit a result", "The recorded result stays in the history; a new branch goes on with yours."
	p.Do, p.DoIcon, p.Reason, p.Key = "Save the result", "pencil", true, q.Step
	row := o.Row(q.Step)
	if row == nil || !view.IsEditable(row) {
		p.Key = ""
		p.Refused = "Choose a step that has ended in the timeline: its result can be replaced."
		return nil
	}
	p.Title = "Edit the result of " + row.Key
	if row.State == outline.Failed {
		p.Title = "Give " + row.Key + " a result"
		p.Sub = "Its failure stays in the history; a new branch goes on with your result."
	}
	field, err := rp.editField(r, p, o, row.Key)
	if err != nil {
		return err
	}
	p.Value = field.Value
	value := any(nil)
	if ev, err := rp.read.Event(r, o.Run.ID, row.Outcome); err != nil {
		return err
	} else if ev != nil && row.State == outline.Done {
		if pay, err := operate.On(rp.Engine).Payload(o.Run.ID, *ev); err == nil && len(pay.Data) > 0 {
			value = act.ValueOf(pay.Data)
		}
	}
	plan, err := operate.On(rp.Engine).Edit(r.Context(), o.Run.ID, row.Key, value, operate.EditOptions{DryRun: true})
	if err = p.refuse(rp, err); err != nil {
		return err
	}
	rp.fillPlan(p, &plan, o)
	p.field("key", "text", row.Key)
	if !o.Run.Paused {
		p.Sub += " Then resume the run."
	}
	return nil
}

// editField makes the field for another result of a call. It holds the recorded result if
// that may be shown as a whole; if not, a warning of p says so.
func (rp *RunPage) editField(r *http.Request, p *panelView, o *outline.Outline, key string) (*editView, error) {
	e := &editView{Key: key, ID: "val"}
	row := o.Row(key)
	if row == nil || row.Outcome == 0 || !rp.MayPayload(r, o.Run.ID) {
		return e, nil
	}
	ev, err := rp.read.Event(r, o.Run.ID, row.Outcome)
	if err != nil || ev == nil || len(ev.Payload) == 0 || ev.Type == store.StepFailed || ev.Type == store.ItemFailed {
		return e, err
	}
	shown := rp.Wire.Payload(o.Run.ID, ev, true)
	switch {
	case shown.Error != "":
	case shown.Truncated:
		p.Warn = append(p.Warn, "What "+key+" has returned is too large to be edited here: `durable fork --edit "+view.ShellQuote(key+"=@result.json")+"` takes it from a file.")
	case len(shown.Value) == 0:
		p.Warn = append(p.Warn, "What "+key+" has returned is not JSON, and is not shown here.")
	default:
		e.Value = view.PayloadText(shown)
		if rp.hides(o.Run.ID, ev) {
			p.Warn = append(p.Warn, "Parts of what "+key+" has returned are redacted: what stands in their place is recorded as it stands.")
		}
	}
	return e, nil
}

// hides reports whether a payload is shown with parts redacted.
func (rp *RunPage) hides(runID string, ev *store.Event) bool {
	pay, err := operate.On(rp.Engine).Payload(runID, *ev)
	return err == nil && rp.Redact.Unredacted(pay.Data) != nil
}
