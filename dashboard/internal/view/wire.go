package view

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Wire turns rows, events and plans into what the API shows of them.
type Wire struct {
	Redact Redact
	Site   Site
	// Open opens the payload of an event.
	Open func(runID string, ev store.Event) (operate.Payload, error)
}

// maxShown is how many bytes of a payload are shown; all of it can be downloaded.
const maxShown = 64 << 10

// Run returns what the API shows of a row.
func (wi *Wire) Run(r *store.Run) client.Run {
	w := client.Run{
		ID: r.ID, Workflow: r.Workflow, Version: r.Version, InitialVersion: r.InitialVersion,
		Status: string(r.Status), Code: r.Code, Reason: wi.Redact.Text(r.Reason), Recoverable: r.Recoverable, Paused: r.Paused,
		CancelAsked: r.CancelAsked, Owner: r.Owner, Branch: int(r.Branch), Generation: int(r.Generation), Resumes: int(r.Resumes),
		Strikes: int(r.Strikes), Priority: int(r.Priority), Queue: r.Queue, Partition: r.Partition, Parent: r.Parent, ParentKey: r.ParentKey, ForkedFrom: r.ForkedFrom,
		CreatedAt: r.CreatedAt.Time(), StartedAt: r.StartedAt.Time(), UpdatedAt: r.UpdatedAt.Time(), EndedAt: r.EndedAt.Time(),
		WakeAt: r.WakeAt.Time(), DeadlineAt: r.DeadlineAt.Time(), Attributes: wi.Redact.Map(r.Attributes),
	}
	if l := r.Last; l != nil {
		w.Key, w.Attempt, w.LastSeq, w.LastType, w.LastAt, w.Steps = l.Key, int(l.Attempt), l.Seq, string(l.Type), l.At.Time(), int(l.Steps)
	}
	return w
}

// also returns the names that an event has in the designs that this product follows.
func also(ev *store.Event, prompt bool) []string {
	switch ev.Type {
	case store.RunResumed:
		return []string{"WORKFLOW_STARTED"}
	case store.StepCompleted:
		return []string{"STEP_COMPLETED", "step_complete"}
	case store.WaitRequested:
		if prompt {
			return []string{"APPROVAL_REQUIRED", "checkpoint_waiting"}
		}
	}
	return []string{strings.ToUpper(string(ev.Type))}
}

// Event is what the API shows of an event; payload says whether user data is shown.
func (wi *Wire) Event(runID string, ev *store.Event, payload bool) client.Event {
	data := wi.data(ev, payload)
	_, prompt := data["prompt"]
	w := client.Event{
		Seq: ev.Seq, Type: string(ev.Type), Also: also(ev, prompt), Branch: int(ev.Branch), Key: ev.Key, Attempt: int(ev.Attempt), Ordinal: int(ev.Ordinal),
		At: ev.At.Time(), TookMS: float64(ev.Took) / float64(time.Millisecond), Steps: int(ev.Steps),
		Text: wi.Redact.Text(operate.Describe(*ev)), Data: data,
	}
	if ev.Type == store.RunResumed {
		if w.Data == nil {
			w.Data = map[string]any{}
		}
		w.Data["resumed"] = true
	}
	if len(ev.Payload) > 0 {
		w.Payload = wi.Payload(runID, ev, payload)
	}
	return w
}

// shownData are the fields of an event's data that are shown as they are, shownText those
// that hold text of user origin. Fields in neither are bookkeeping, or not for everyone:
// headers, the environment, the seed.
var (
	shownData = []string{
		"next_at", "max", "declared", "executor", "name", "host", "pid", "resumed", "code", "kind", "items", "winner", "child", "abandon", "status", "until", "message",
		"recoverable", "attempts", "reply", "request", "generation", "once", "from_branch", "to_branch", "cutoff", "cutoff_event", "previous_branch",
		"new_branch", "by", "reset", "beside", "version", "force", "deadline", "exclusive", "uncalled", "sample",
	}
	shownText = []string{"reason", "prompt"}
)

// data is what the API shows of an event's data.
func (wi *Wire) data(ev *store.Event, payload bool) map[string]any {
	if len(ev.Data) == 0 {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(ev.Data, &raw) != nil {
		return nil // Describe says that it is not readable
	}
	shown := map[string]any{}
	for _, name := range shownData {
		if v, ok := raw[name]; ok {
			shown[name] = v
		}
	}
	for _, name := range shownText {
		var text string
		if v, ok := raw[name]; ok && json.Unmarshal(v, &text) == nil {
			shown[name] = wi.Redact.Text(text)
		}
	}
	var attributes map[string]string
	if json.Unmarshal(raw["attributes"], &attributes) == nil && attributes != nil {
		shown["attributes"] = wi.Redact.Map(attributes)
	}
	var failure struct {
		Message   string `json:"message"`
		Type      string `json:"type"`
		Permanent bool   `json:"permanent"`
	}
	if json.Unmarshal(raw["error"], &failure) == nil {
		e := map[string]any{"message": wi.Redact.Text(failure.Message)}
		if failure.Type != "" {
			e["type"] = failure.Type
		}
		if failure.Permanent {
			e["permanent"] = true
		}
		shown["error"] = e
	}
	if fork, ok := raw["fork"]; ok {
		shown["fork"] = wi.fork(fork)
	}
	if notes, ok := raw["notes"]; ok {
		shown["notes"] = wi.notes(notes, payload)
	}
	return shown
}

// fork shows where a fork comes from and which results were edited in it, without anything
// that gives the values away.
func (wi *Wire) fork(fork json.RawMessage) map[string]any {
	var f struct {
		From   string            `json:"from"`
		At     int64             `json:"at"`
		Edits  map[string]string `json:"edits"`
		Reason string            `json:"reason"`
		By     string            `json:"by"`
	}
	if json.Unmarshal(fork, &f) != nil {
		return nil
	}
	shown := map[string]any{"from": f.From}
	if f.At != 0 {
		shown["at"] = f.At
	}
	if len(f.Edits) > 0 {
		edits := map[string]bool{}
		for key := range f.Edits {
			edits[key] = true
		}
		shown["edits"], shown["by"], shown["reason"] = edits, f.By, wi.Redact.Text(f.Reason)
	}
	return shown
}

// notes shows the notes of an attempt, which are user data, or only that there are some.
func (wi *Wire) notes(notes json.RawMessage, payload bool) map[string]any {
	var values map[string]json.RawMessage
	if json.Unmarshal(notes, &values) != nil {
		return nil
	}
	shown := map[string]any{}
	for name, v := range values {
		if !payload {
			shown[name] = map[string]any{"redacted": true, "size": len(v)}
			continue
		}
		shown[name] = wi.Redact.JSON(v)
	}
	return shown
}

// Payload shows the payload of an event, or what is known about it without showing it.
func (wi *Wire) Payload(runID string, ev *store.Event, show bool) *client.Payload {
	if !show { // do not decrypt and unpack for callers that may not see it
		return hiddenPayload(ev)
	}
	p, err := wi.Open(runID, *ev)
	w := &client.Payload{Type: p.Type, Version: p.Version, Codec: p.Codec, Compression: p.Compression, KeyID: p.KeyID, Size: len(p.Data)}
	switch {
	case err != nil:
		w.Size, w.Error = len(ev.Payload), wi.Redact.Text(Message(err))
		return w
	case len(p.Data) > maxShown:
		w.Truncated, w.Text = true, headOf([]byte(wi.Redact.Text(string(p.Data))), maxShown)
		return w
	case json.Valid(p.Data):
		w.Value = wi.Redact.JSON(compact(p.Data))
		return w
	}
	w.Text = wi.Redact.Text(p.String())
	return w
}

// hiddenPayload returns what the header of a payload says. Its size is that of the stored
// form.
func hiddenPayload(ev *store.Event) *client.Payload {
	open, err := envelope.Open(ev.Payload)
	if err != nil {
		return &client.Payload{Size: len(ev.Payload), Redacted: true, Error: Message(err)}
	}
	return &client.Payload{
		Type: open.Type, Version: open.TypeVersion, Codec: open.Codec, Compression: open.Compression, KeyID: open.KeyID, Size: len(open.Payload), Redacted: true,
	}
}

// headOf returns the first n bytes of data as text, cut between characters.
func headOf(data []byte, n int) string {
	head := data[:min(n, len(data))]
	for len(head) > 0 && len(head) < len(data) && !utf8.RuneStart(data[len(head)]) {
		head = head[:len(head)-1]
	}
	return strings.ToValidUTF8(string(head), "\ufffd")
}

// Approval is what the API shows of an approval.
func (wi *Wire) Approval(a *durable.Approval) client.Approval {
	return client.Approval{
		ID: WaitID(a), RunID: a.RunID, Workflow: a.Workflow, Key: a.Key, Name: a.Name, Prompt: wi.Redact.Text(a.Prompt),
		AskedAt: a.AskedAt.Time(), Until: a.Until.Time(), Seq: a.Seq, Sample: a.Sample,
	}
}

// WaitID returns the unique id of one wait of one run.
func WaitID(a *durable.Approval) string { return a.RunID + ":" + strconv.FormatInt(a.Seq, 10) }

// RunOfWait returns the run of the wait with this id; ok is false if it cannot be the id
// of a wait. If it can, it may still be the id of a run: "deploy:5".
func RunOfWait(id string) (runID string, ok bool) {
	i := strings.LastIndexByte(id, ':')
	if i < 1 {
		return "", false
	}
	seq, err := strconv.ParseInt(id[i+1:], 10, 64)
	if err != nil || seq < 1 || strconv.FormatInt(seq, 10) != id[i+1:] {
		return "", false
	}
	return id[:i], true
}

// Plan is what the API shows of a plan.
func (wi *Wire) Plan(p *operate.Plan) client.Plan {
	w := client.Plan{
		RunID: p.RunID, Workflow: p.Workflow, Status: string(p.Status), Summary: p.String(), Details: wi.Redact.List(p.Details()),
		From: p.From, Scope: p.Scope, Branch: int(p.Branch), NewBranch: p.NewBranch, Skipped: list(p.Skipped), Again: list(p.Again), Edited: p.Edited, Reset: p.Reset,
		Warnings: wi.Redact.List(p.Warnings), Unchecked: p.Unchecked, Ends: wi.Redact.Text(p.Ends), Step: p.Step, Steps: p.Steps, Declared: p.Declared,
		Next: client.Point{Key: p.Next.Key, Kind: p.Next.Kind, Attempt: p.Next.Attempt, After: p.Next.After, Failed: p.Next.Failed, Text: p.Next.String()},
	}
	for _, l := range p.Left {
		text := l.Kind + " " + l.Key
		if l.Child != "" {
			text += " (run " + l.Child + ")"
		}
		if l.Kept {
			text += ", which goes on"
		}
		w.Left = append(w.Left, text)
	}
	return w
}

// list makes an empty list of nil: [] in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// Stuck is what the API shows of a stuck run.
func (wi *Wire) Stuck(s *durable.Stuck) client.Stuck {
	return client.Stuck{RunID: s.RunID, Workflow: s.Workflow, Version: s.Version, Code: s.Code, Reason: wi.Redact.Text(s.Reason), Next: wi.Site.InRoutes(s.Next), Since: s.Since.Time()}
}

// Branch is what the API shows of a branch.
func (wi *Wire) Branch(b *operate.BranchInfo) client.Branch {
	return client.Branch{
		N: int(b.N), Parent: int(b.Parent), Root: b.Root, Generation: b.Generation, Cutoff: b.Cutoff, Scope: b.Scope, Reason: wi.Redact.Text(b.Reason),
		CreatedAt: b.CreatedAt.Time(), Current: b.Current, InLineage: b.InLineage, Events: b.Events, Left: b.Left,
	}
}
