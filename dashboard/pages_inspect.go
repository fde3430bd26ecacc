package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// An inspectView is the selected row in full.
type inspectView struct {
	Key      string
	Icon     icon
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
	Icon         icon
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

// payloadView is user data, or what may be said of it.
type payloadView struct {
	Title     string
	Text      string  // where it is no JSON
	Tokens    []token // of JSON
	Hidden    bool    // something in Tokens is
	Redacted  bool
	KeyID     string
	Facts     string
	Error     string
	Truncated bool
	URL       string // of a download
}

// inspect shows the row that is selected; without one, the input of the run.
func (h *handler) inspect(r *http.Request, o *outline.Outline, q *runQuery, link func(url.Values) string) (*inspectView, error) {
	row := o.Row(q.step)
	if row == nil {
		return h.inspectRun(r, o)
	}
	v := &inspectView{Key: row.Key, Icon: rowIcon(row), Tag: string(row.Kind), Event: max(row.Outcome, row.Seq)}
	if row.Kind == outline.Step && (row.Max > 1 || len(row.Attempts) > 1) {
		v.Tag = "retry"
	}
	show := h.mayPayload(r, o.Run.ID)
	h.fillAttempts(v, o, row, show)
	if len(row.Attempts) == 0 || row.Kind == outline.Map {
		v.Error = h.redact(row.Error)
	}
	for _, item := range row.Rows {
		if item.State == outline.Failed && item.Kind == outline.Item && len(v.Items) < 20 {
			v.Items = append(v.Items, itemView{item.Key, link(q.with("step", item.Key)), h.redact(outline.OneLine(item.Error, 160))})
		}
	}
	if err := h.fillFacts(r, v, o, row, show); err != nil {
		return nil, err
	}
	if row.Outcome != 0 {
		p, err := h.payload(r, o.Run.ID, row.Outcome, show)
		if err != nil {
			return nil, err
		}
		v.Payload = p
	}
	h.fillFrom(r, v, o, row, q, link)
	return v, nil
}

// inspectRun shows what a run was started with, and what it came to.
func (h *handler) inspectRun(r *http.Request, o *outline.Outline) (*inspectView, error) {
	v := &inspectView{Key: o.Run.ID, Icon: icon{"runs", "c-off"}, Tag: "run"}
	show := h.mayPayload(r, o.Run.ID)
	seq := int64(1)
	title := "Input"
	if o.Run.Status == store.Completed {
		seq, title = o.LastSeq, "Output"
	}
	p, err := h.payload(r, o.Run.ID, seq, show)
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
	v.Facts = append(v.Facts, metaView{Before: "Created", Value: outline.Clock(o.Run.CreatedAt, o.Now, zone)}, metaView{Before: "Events", Value: number(o.Events)})
	if git := o.Git(); git != nil && show {
		v.Facts = append(v.Facts, metaView{Before: "Git", Value: h.redact(git.String())})
	}
	return v, nil
}

// attemptsShown bounds the list of attempts: the last ones count.
const attemptsShown = 12

func (h *handler) fillAttempts(v *inspectView, o *outline.Outline, row *outline.Row, show bool) {
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
		out.Where = name + ", " + outline.Clock(a.Begin, o.Now, zone)
		switch a.State {
		case outline.AttemptFailed:
			out.Icon, out.Title, out.Error = icon{"recoverable", "c-fail"}, fmt.Sprintf("Attempt %d failed", a.N), h.redact(a.Error)
			switch {
			case a.Permanent:
				out.Where += ", not to be tried again"
			case a.NextAt > a.End:
				out.Where += ", then " + outline.Duration(a.NextAt.Sub(a.End)) + " backoff"
			}
		case outline.AttemptCut:
			out.Icon, out.Title, out.Took = icon{"cutoff", "c-fail"}, fmt.Sprintf("Attempt %d cut off?", a.N), ""
			out.Where = name + " was lost; its last sign is " + outline.Clock(a.End, o.Now, zone) + ". Nothing recorded: what the attempt does may have happened. It ran again with the same idempotency key."
			if a.Begun {
				out.Title = fmt.Sprintf("Attempt %d cut off", a.N)
			}
		default:
			out.Icon, out.Title = icon{"done", "c-done"}, fmt.Sprintf("Attempt %d succeeded", a.N)
		}
		if a.Reset {
			out.Where += "; reset since"
		}
		for _, n := range a.Notes {
			note := noteView{Key: n.Key, Hidden: !show}
			if show {
				note.Value = outline.OneLine(h.redact(n.Value), 200)
			}
			out.Notes = append(out.Notes, note)
		}
		v.Attempts = append(v.Attempts, out)
	}
}

// fillGit shows the work tree of a command: that of the attempt that is under way,
// else of its last one. It is user data, as what it stands in.
func (h *handler) fillGit(r *http.Request, v *inspectView, o *outline.Outline, row *outline.Row, show bool) error {
	if !show {
		return nil
	}
	var before, after *outline.Git
	if n := len(row.Attempts); n > 0 {
		before, after = row.Attempts[n-1].Git()
	}
	if seq := row.Under(); seq != 0 {
		ev, err := h.eventAt(r, o.Run.ID, seq)
		if err != nil {
			return err
		}
		if ev != nil && len(ev.Payload) > 0 { // it is emptied when the step has ended
			if saved, err := h.eng.Payload(o.Run.ID, *ev); err == nil {
				before, after = outline.GitOfProgress(saved.Data), nil
			}
		}
	}
	if before != nil {
		v.Facts = append(v.Facts, metaView{Before: "Git", Value: h.redact(before.String())})
	}
	if after != nil && (before == nil || *before != *after) {
		v.Facts = append(v.Facts, metaView{Before: "Git after it", Value: h.redact(after.String())})
	}
	return nil
}

func (h *handler) fillFacts(r *http.Request, v *inspectView, o *outline.Outline, row *outline.Row, show bool) error {
	fact := func(name, value string) {
		if value != "" {
			v.Facts = append(v.Facts, metaView{Before: name, Value: value})
		}
	}
	if row.Begin != 0 {
		fact("Begun", outline.Clock(row.Begin, o.Now, zone))
	}
	if row.State == outline.Backoff || row.NextAt > o.Now {
		fact("Next attempt", outline.Clock(row.NextAt, o.Now, zone))
	}
	if row.Until != 0 {
		fact("Ends by itself", outline.Clock(row.Until, o.Now, zone))
	}
	fact("Prompt", h.redact(outline.OneLine(row.Prompt, 400)))
	if row.ChildID != "" {
		v.Facts = append(v.Facts, metaView{Before: "Child run", Value: row.ChildID, URL: h.runURL(row.ChildID)})
		fact("Its status", string(row.ChildStatus))
	}
	if row.Keyed() {
		v.Facts = append(v.Facts, metaView{Before: "Idempotency key", Value: durable.IdempotencyKeyOf(o.Run.ID, int(o.Run.Generation), row.Key), Mono: true})
	}
	if err := h.fillGit(r, v, o, row, show); err != nil {
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
		fact("Edited", "by "+by+", "+outline.Clock(e.At, o.Now, zone))
		fact("Why", h.redact(outline.OneLine(e.Reason, 200)))
	}
	if row.Copied {
		fact("Copied from", o.ForkedFrom)
	}
	return nil
}

// fillFrom offers what needs a place: to go back to it, to copy up to it, to put
// another result there.
func (h *handler) fillFrom(r *http.Request, v *inspectView, o *outline.Outline, row *outline.Row, q *runQuery, link func(url.Values) string) {
	if row.Outcome == 0 || row.State == outline.Closed || row.Kind == outline.Publish || row.Kind == outline.Attrs {
		return
	}
	id, at := o.Run.ID, strconv.FormatInt(row.Outcome, 10)
	stable := row.State == outline.Done && row.Kind != outline.Timer && row.Kind != outline.Map && row.Kind != outline.Branch && row.Kind != outline.First
	status := o.Run.Status
	if stable && status != store.Completed && status != store.Cancelled && status != store.Pending && h.may(r, ActionJump, id) == nil {
		v.Jump = link(q.with("step", row.Key, "panel", "jump", "at", at))
	}
	if status != store.Pending && h.may(r, ActionFork, id) == nil {
		v.Fork = link(q.with("step", row.Key, "panel", "fork", "at", at))
	}
	if !isEditable(row) || h.may(r, ActionEdit, id) != nil {
		return
	}
	if status != store.Completed && status != store.Cancelled && cannot("edit", o) == "" {
		v.Edit = link(q.with("step", row.Key, "panel", "edit"))
	} else if v.Fork != "" && status.Terminal() {
		// What has ended stays as it is: another result is a matter of a copy.
		v.ForkEdit = link(q.with("step", row.Key, "panel", "fork", "edit", row.Key))
	}
}

// payload reads the user data of one event; nil: it has none.
func (h *handler) payload(r *http.Request, id string, seq int64, show bool) (*payloadView, error) {
	ev, err := h.eventAt(r, id, seq)
	if err != nil || ev == nil || len(ev.Payload) == 0 {
		return nil, err
	}
	p := h.wirePayload(id, ev, show)
	v := &payloadView{Title: "Result", Redacted: p.Redacted, KeyID: p.KeyID, Error: p.Error, Truncated: p.Truncated, Text: p.Text}
	if len(p.Value) > 0 {
		var whole []byte
		if h.options.Redact != nil {
			if pay, err := h.eng.Payload(id, *ev); err == nil {
				whole = h.unredacted(pay.Data)
			}
		}
		v.Tokens = jsonTokens(payloadText(p), whole)
		v.Hidden = slices.ContainsFunc(v.Tokens, func(t token) bool { return t.Hidden })
	}
	v.Facts = size(p.Size) + ", " + p.Codec
	if p.Type != "" {
		v.Facts += ", " + p.Type
	}
	if p.KeyID == "" {
		v.Facts += ", not encrypted"
	} else {
		v.Facts += ", encrypted with key " + p.KeyID
	}
	if show {
		v.URL = fmt.Sprintf("%s/api/runs/%s/events/%d/payload", h.options.Prefix, segment(id), seq)
	}
	return v, nil
}

// eventAt reads one event, nil if there is none with that number.
func (h *handler) eventAt(r *http.Request, id string, seq int64) (*store.Event, error) {
	hist, err := h.eng.Store().Load(r.Context(), id, store.Cursor{All: true, After: seq - 1, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	for e, err := range hist.Events {
		if err != nil {
			return nil, fmt.Errorf("run %s: reading event %d: %w", id, seq, err)
		}
		if e.Seq != seq {
			return nil, nil
		}
		return &e, nil
	}
	return nil, nil
}

// payloadOf is a JSON value as a payload.
func payloadOf(value []byte) *client.Payload { return &client.Payload{Value: value} }

// payloadText is a payload for people: JSON with a line per field.
func payloadText(p *client.Payload) string {
	if len(p.Value) == 0 {
		return p.Text
	}
	var b bytes.Buffer
	if json.Indent(&b, p.Value, "", "  ") != nil {
		return string(p.Value)
	}
	return b.String()
}
