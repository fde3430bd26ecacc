package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// An inspectView is the selected row in full.
type inspectView struct {
	Key      string
	Icon     view.Icon
	Tag      string
	Event    int64
	Attempts []attemptView
	AttTitle string
	More     int // attempts that are not listed
	Error    string
	Payload  *payloadView
	Facts    []metaView
	Jump     string // addresses of panels; empty: not offered
	Fork     string
	Edit     string
	ForkEdit string
	Items    []itemView
}

type attemptView struct {
	Icon         view.Icon
	Title        string
	Took         string
	Error, Where string
	Notes        []noteView
}

// noteView is debug output of an attempt: user data.
type noteView struct {
	Key, Value string
	Hidden     bool
}

type itemView struct {
	Key, URL, Error string
}

// payloadView is user data, or a description of it.
type payloadView struct {
	Title     string
	Text      string       // if it is not JSON
	Tokens    []view.Token // of JSON
	Hidden    bool         // one of the Tokens is
	Redacted  bool
	KeyID     string
	Facts     string
	Error     string
	Truncated bool
	URL       string // of a download
}

// inspect shows the row that is selected; without one, the input of the run.
func (rp *RunPage) inspect(r *http.Request, o *outline.Outline, q *view.Query, link func(url.Values) string) (*inspectView, error) {
	row := o.Row(q.Step)
	if row == nil {
		return rp.inspectRun(r, o)
	}
	v := &inspectView{Key: row.Key, Icon: view.RowIcon(row), Tag: string(row.Kind), Event: max(row.Outcome, row.Seq)}
	if row.Kind == outline.Step && (row.Max > 1 || len(row.Attempts) > 1) {
		v.Tag = "retry"
	}
	show := rp.MayPayload(r, o.Run.ID)
	rp.fillAttempts(v, o, row, show)
	if len(row.Attempts) == 0 || row.Kind == outline.Map {
		v.Error = rp.Redact.Text(row.Error)
	}
	for _, item := range row.Rows {
		if item.State == outline.Failed && item.Kind == outline.Item && len(v.Items) < 20 {
			v.Items = append(v.Items, itemView{item.Key, link(q.With("step", item.Key)), rp.Redact.Text(outline.OneLine(item.Error, 160))})
		}
	}
	if err := rp.fillFacts(r, v, o, row, show); err != nil {
		return nil, err
	}
	if row.Outcome != 0 {
		p, err := rp.payload(r, o.Run.ID, row.Outcome, show)
		if err != nil {
			return nil, err
		}
		v.Payload = p
	}
	rp.fillFrom(r, v, o, row, q, link)
	return v, nil
}

// inspectRun shows what a run was started with, or its result.
func (rp *RunPage) inspectRun(r *http.Request, o *outline.Outline) (*inspectView, error) {
	v := &inspectView{Key: o.Run.ID, Icon: view.Icon{Name: "runs", Class: "c-off"}, Tag: "run"}
	show := rp.MayPayload(r, o.Run.ID)
	seq := int64(1)
	title := "Input"
	if o.Run.Status == store.Completed {
		seq, title = o.LastSeq, "Output"
	}
	p, err := rp.payload(r, o.Run.ID, seq, show)
	if err != nil {
		return nil, err
	}
	if p != nil {
		p.Title = title
	}
	v.Payload = p
	if trace := strings.Split(o.Run.Trace, "-"); len(trace) == 4 {
		v.Facts = append(v.Facts, metaView{Before: "Trace", Value: trace[1]})
	}
	v.Facts = append(v.Facts, metaView{Before: "Created", Value: outline.Clock(o.Run.CreatedAt, o.Now, view.Zone)}, metaView{Before: "Events", Value: count.Number(o.Events)})
	if git := o.Git(); git != nil && show {
		v.Facts = append(v.Facts, metaView{Before: "Git", Value: rp.Redact.Text(git.String())})
	}
	return v, nil
}

// attemptsShown bounds the list of attempts, to the last ones.
const attemptsShown = 12

func (rp *RunPage) fillAttempts(v *inspectView, o *outline.Outline, row *outline.Row, show bool) {
	if row.Kind != outline.Step && row.Kind != outline.Undo {
		return
	}
	list := row.Attempts
	v.More = max(len(list)-attemptsShown, 0)
	list = list[v.More:]
	if n := len(row.Attempts); n > 0 {
		v.AttTitle = fmt.Sprintf("%d", row.Attempts[n-1].N)
		if row.Max > 1 {
			v.AttTitle = fmt.Sprintf("%d of %d", row.Attempts[n-1].N, row.Max)
		}
	}
	for _, a := range list {
		out := attemptView{Took: outline.Duration(a.Took)}
		name := "a process that is not known"
		if a.Life >= 0 && a.Life < len(o.Lives) {
			name = o.Lives[a.Life].Name
		}
		out.Where = name + ", " + outline.Clock(a.Begin, o.Now, view.Zone)
		switch a.State {
		case outline.AttemptFailed:
			out.Icon, out.Title, out.Error = view.Icon{Name: "recoverable", Class: "c-fail"}, fmt.Sprintf("Attempt %d failed", a.N), rp.Redact.Text(a.Error)
			switch {
			case a.Permanent:
				out.Where += ", not to be tried again"
			case a.NextAt > a.End:
				out.Where += ", then " + outline.Duration(a.NextAt.Sub(a.End)) + " backoff"
			}
		case outline.AttemptCut:
			out.Icon, out.Title, out.Took = view.Icon{Name: "cutoff", Class: "c-fail"}, fmt.Sprintf("Attempt %d cut off?", a.N), ""
			out.Where = name + " was lost; its last sign is " + outline.Clock(a.End, o.Now, view.Zone) + ". Nothing recorded: what the attempt does may have happened. It ran again with the same idempotency key."
			if a.Begun {
				out.Title = fmt.Sprintf("Attempt %d cut off", a.N)
			}
		default:
			out.Icon, out.Title = view.Icon{Name: "done", Class: "c-done"}, fmt.Sprintf("Attempt %d succeeded", a.N)
		}
		if a.Reset {
			out.Where += "; reset since"
		}
		for _, n := range a.Notes {
			note := noteView{Key: n.Key, Hidden: !show}
			if show {
				note.Value = outline.OneLine(rp.Redact.Text(n.Value), 200)
			}
			out.Notes = append(out.Notes, note)
		}
		v.Attempts = append(v.Attempts, out)
	}
}

// fillGit shows the work tree of a command: that of the attempt in progress, otherwise
// that of the last one. It is user data.
func (rp *RunPage) fillGit(r *http.Request, v *inspectView, o *outline.Outline, row *outline.Row, show bool) error {
	if !show {
		return nil
	}
	var before, after *outline.Git
	if n := len(row.Attempts); n > 0 {
		before, after = row.Attempts[n-1].Git()
	}
	if seq := row.Under(); seq != 0 {
		ev, err := rp.read.Event(r, o.Run.ID, seq)
		if err != nil {
			return err
		}
		if ev != nil && len(ev.Payload) > 0 { // it is empty once the step has ended
			if saved, err := operate.On(rp.Engine).Payload(o.Run.ID, *ev); err == nil {
				before, after = outline.GitOfProgress(saved.Data), nil
			}
		}
	}
	if before != nil {
		v.Facts = append(v.Facts, metaView{Before: "Git", Value: rp.Redact.Text(before.String())})
	}
	if after != nil && (before == nil || *before != *after) {
		v.Facts = append(v.Facts, metaView{Before: "Git after it", Value: rp.Redact.Text(after.String())})
	}
	return nil
}

func (rp *RunPage) fillFacts(r *http.Request, v *inspectView, o *outline.Outline, row *outline.Row, show bool) error {
	fact := func(name, value string) {
		if value != "" {
			v.Facts = append(v.Facts, metaView{Before: name, Value: value})
		}
	}
	if row.Begin != 0 {
		fact("Begun", outline.Clock(row.Begin, o.Now, view.Zone))
	}
	if row.State == outline.Backoff || row.NextAt > o.Now {
		fact("Next attempt", outline.Clock(row.NextAt, o.Now, view.Zone))
	}
	if row.Until != 0 {
		fact("Ends by itself", outline.Clock(row.Until, o.Now, view.Zone))
	}
	fact("Prompt", rp.Redact.Text(outline.OneLine(row.Prompt, 400)))
	if row.ChildID != "" {
		v.Facts = append(v.Facts, metaView{Before: "Child run", Value: row.ChildID, URL: rp.Site.Run(row.ChildID)})
		fact("Its status", string(row.ChildStatus))
	}
	if row.Keyed() {
		v.Facts = append(v.Facts, metaView{Before: "Idempotency key", Value: durable.IdempotencyKeyOf(o.Run.ID, int(o.Run.Generation), row.Key), Mono: true})
	}
	if err := rp.fillGit(r, v, o, row, show); err != nil {
		return err
	}
	if row.Once {
		fact("Once", "its body must not run twice")
	}
	if e := row.Edited; e != nil {
		by := "somebody"
		if e.By != "" {
			by = e.By
		}
		fact("Edited", "by "+by+", "+outline.Clock(e.At, o.Now, view.Zone))
		fact("Why", rp.Redact.Text(outline.OneLine(e.Reason, 200)))
	}
	if row.Copied {
		fact("Copied from", o.ForkedFrom)
	}
	return nil
}

// fillFrom offers what can be done at a place in the history: go back to it, copy up to
// it, put another result there.
func (rp *RunPage) fillFrom(r *http.Request, v *inspectView, o *outline.Outline, row *outline.Row, q *view.Query, link func(url.Values) string) {
	if row.Outcome == 0 || row.State == outline.Closed || row.Kind == outline.Publish || row.Kind == outline.Attrs {
		return
	}
	id, at := o.Run.ID, strconv.FormatInt(row.Outcome, 10)
	stable := row.State == outline.Done && row.Kind != outline.Timer && row.Kind != outline.Map && row.Kind != outline.Branch && row.Kind != outline.First
	status := o.Run.Status
	if stable && status != store.Completed && status != store.Cancelled && status != store.Pending && rp.May(r, web.ActionJump, id) == nil {
		v.Jump = link(q.With("step", row.Key, "panel", "jump", "at", at))
	}
	if status != store.Pending && rp.May(r, web.ActionFork, id) == nil {
		v.Fork = link(q.With("step", row.Key, "panel", "fork", "at", at))
	}
	if !view.IsEditable(row) || rp.May(r, web.ActionEdit, id) != nil {
		return
	}
	if status != store.Completed && status != store.Cancelled && view.Cannot("edit", o) == "" {
		v.Edit = link(q.With("step", row.Key, "panel", "edit"))
	} else if v.Fork != "" && status.Terminal() {
		// A run that has ended stays as it is: only a copy can have another result.
		v.ForkEdit = link(q.With("step", row.Key, "panel", "fork", "edit", row.Key))
	}
}

// payload reads the user data of one event; nil: it has none.
func (rp *RunPage) payload(r *http.Request, id string, seq int64, show bool) (*payloadView, error) {
	ev, err := rp.read.Event(r, id, seq)
	if err != nil || ev == nil || len(ev.Payload) == 0 {
		return nil, err
	}
	p := rp.Wire.Payload(id, ev, show)
	v := &payloadView{Title: "Result", Redacted: p.Redacted, KeyID: p.KeyID, Error: p.Error, Truncated: p.Truncated, Text: p.Text}
	if len(p.Value) > 0 {
		var whole []byte
		if rp.Redact != nil {
			if pay, err := operate.On(rp.Engine).Payload(id, *ev); err == nil {
				whole = rp.Redact.Unredacted(pay.Data)
			}
		}
		v.Tokens = view.Tokens(view.PayloadText(p), whole)
		v.Hidden = slices.ContainsFunc(v.Tokens, func(t view.Token) bool { return t.Hidden })
	}
	v.Facts = view.Size(p.Size) + ", " + p.Codec
	if p.Type != "" {
		v.Facts += ", " + p.Type
	}
	if p.KeyID == "" {
		v.Facts += ", not encrypted"
	} else {
		v.Facts += ", encrypted with key " + p.KeyID
	}
	if show {
		v.URL = fmt.Sprintf("%s/api/runs/%s/events/%d/payload", rp.Site.Prefix, client.EscapeID(id), seq)
	}
	return v, nil
}

// metaView is a label and its value: "started 14:02:10".
type metaView struct {
	Before, Value, After, URL string
	Mono                      bool
}
