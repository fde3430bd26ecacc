package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// format is the version of the readable records; the run file has its own.
const format = 1

// maxFile bounds the size of a run file, in bytes.
const maxFile = 1 << 30

// readEntry makes the readable records of a run file. It derives them from the
// file alone, without a key: what is encrypted in the store is encrypted here.
func readEntry(runID string, file []byte) (*Entry, error) {
	f, err := runfile.Read(bytes.NewReader(file), maxFile)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	case runID != "" && f.Run.ID != runID:
		return nil, fmt.Errorf("%w: it is of run %q, not %q", ErrBadFile, f.Run.ID, runID)
	case len(f.Events) == 0:
		return nil, fmt.Errorf("%w: it has no events", ErrBadFile)
	}
	e := &Entry{File: file, Run: runOf(f), Trace: make([]Event, 0, len(f.Events))}
	line := store.LineageOf(f.Branches, f.Run.Branch)
	for i := range f.Events {
		ev := &f.Events[i]
		here := eventOf(ev)
		here.Abandoned = !line.Has(ev) && !earlier(f, ev)
		e.Trace = append(e.Trace, here)
		e.observe(ev, &here)
	}
	return e, nil
}

// earlier reports whether an event is in an earlier generation, which is closed
// but not left behind.
func earlier(f *runfile.File, ev *store.Event) bool {
	generation := int32(0)
	for i := range f.Branches {
		if f.Branches[i].N == ev.Branch {
			generation = f.Branches[i].Generation
		}
	}
	return generation < f.Run.Generation
}

// runOf returns the Run for a run's row.
func runOf(f *runfile.File) Run {
	r, last := &f.Run, &f.Events[len(f.Events)-1]
	out := Run{
		ID: r.ID, Workflow: r.Workflow, Version: r.Version, Status: r.Status, Code: r.Code, Reason: r.Reason, Recoverable: r.Recoverable,
		CreatedAt: r.CreatedAt.Time(), StartedAt: r.StartedAt.Time(), EndedAt: r.EndedAt.Time(),
		Parent: r.Parent, ForkedFrom: r.ForkedFrom, Attributes: r.Attributes, Seq: last.Seq, Sum: last.Sum, Format: format,
	}
	begin, end := r.StartedAt, r.EndedAt
	if begin == 0 {
		begin = r.CreatedAt
	}
	if end == 0 {
		end = last.At
	}
	out.DurationMS = max(end.Sub(begin), 0).Milliseconds()
	return out
}

// said is the part of an event's data that this package reads.
type said struct {
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
	Prompt string `json:"prompt"`
	Slot   string `json:"slot"`
}

// observe updates the record of a run from an event.
func (e *Entry) observe(ev *store.Event, shown *Event) {
	if shown.Abandoned {
		return
	}
	var d said
	_ = json.Unmarshal(ev.Data, &d) // unreadable data counts as empty here
	switch ev.Type {
	case store.WorkflowCreated, store.InputReplaced:
		e.Input = shown.Value
		if shown.Hidden != "" {
			e.Hidden = shown.Hidden
		}
	case store.WorkflowCompleted:
		e.Output = shown.Value
		if shown.Hidden != "" {
			e.Hidden = shown.Hidden
		}
	case store.WorkflowFailed, store.WorkflowCancelled:
		e.Error = e.Reason
		if d.Error != nil {
			e.Error = d.Error.Message
		}
	case store.WaitRequested:
		e.ResumeAt, e.Prompt = ev.Key, d.Prompt
	case store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		if e.ResumeAt == ev.Key {
			e.ResumeAt, e.Prompt = "", ""
		}
	}
	if ev.Seq == e.Seq && e.Status.Terminal() {
		e.ResumeAt, e.Prompt = "", ""
	}
	if e.Status != store.Failed && e.Status != store.Cancelled {
		e.Error = "" // the error of an end after which the run was resumed
	}
	if e.Status != store.Completed {
		e.Output = nil
	}
}

// names maps some types of events to the names that other programs use.
var names = map[store.Type]string{
	store.WaitRequested: "checkpoint_waiting",
	store.StepCompleted: "step_complete",
}

func eventOf(ev *store.Event) Event {
	out := Event{
		Seq: ev.Seq, Branch: ev.Branch, Type: ev.Type, Name: string(ev.Type), Key: ev.Key, Attempt: ev.Attempt,
		At: ev.At.Time(), TookMS: float64(ev.Took.Microseconds()) / 1000,
	}
	if name := names[ev.Type]; name != "" {
		out.Name = name
	}
	if json.Valid(ev.Data) {
		out.Data = ev.Data
	}
	var err error
	if out.Value, err = reveal(ev.Payload); err != nil {
		out.Hidden = err.Error()
	}
	return out
}

var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(4*store.DefaultLimits().Payload)), zstd.WithDecoderLowmem(true))
})

// reveal returns the value in an envelope as JSON, or why it is not shown.
func reveal(payload []byte) (json.RawMessage, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	open, err := envelope.Open(payload)
	switch {
	case err != nil:
		return nil, err
	case open.KeyID != "":
		return nil, fmt.Errorf("encrypted with key %s", open.KeyID)
	case open.Compression != "" && open.Compression != "zstd":
		return nil, fmt.Errorf("compressed with %s", open.Compression)
	}
	data := open.Payload
	if open.Compression != "" {
		dec, err := decoder()
		if err == nil {
			data, err = dec.DecodeAll(data, nil)
		}
		if err != nil {
			return nil, errors.New("cannot be decompressed")
		}
	}
	if !json.Valid(data) {
		return nil, fmt.Errorf("%d bytes of %s", len(data), open.Codec)
	}
	return json.RawMessage(data), nil
}

// A standing is the relation of a state of a run to the archived copy.
type standing int

const (
	replaces standing = iota // it replaces the copy
	held                     // the copy contains it
	foreign                  // the copy is of a later run with the same id
)

// compare returns the relation of a state of a run to the existing copy. The
// copy must have its file if needsFile says so.
func compare(have, ours *Entry) standing {
	if !needsFile(have, ours) {
		return replaces
	}
	there, err := runfile.Read(bytes.NewReader(have.File), maxFile)
	switch {
	case err != nil:
		return replaces // damaged
	case !have.CreatedAt.Equal(ours.CreatedAt):
		return foreign
	case bytes.Equal(have.File, ours.File):
		return held
	}
	given, err := runfile.Read(bytes.NewReader(ours.File), maxFile)
	if err == nil && len(there.Events)+len(there.Inbox) > len(given.Events)+len(given.Inbox) && contains(there, given) {
		return held
	}
	// A store that was restored to an earlier moment may have continued
	// differently: then our state is the truth, even if it is shorter.
	return replaces
}

// needsFile reports whether the records of two states are not enough to compare
// them: the copy is neither of an earlier run with that id nor of an earlier state.
func needsFile(have, ours *Entry) bool {
	if !have.CreatedAt.Equal(ours.CreatedAt) {
		return have.CreatedAt.After(ours.CreatedAt)
	}
	return have.Seq >= ours.Seq
}

// contains reports whether one state of a run has the events and the messages of
// another: the sum of an event covers all earlier events.
func contains(there, given *runfile.File) bool {
	last := len(given.Events) - 1
	if len(there.Events) < len(given.Events) || len(there.Inbox) < len(given.Inbox) || there.Events[last].Sum != given.Events[last].Sum {
		return false
	}
	for i := range given.Inbox {
		a, b := &there.Inbox[i], &given.Inbox[i]
		if a.Kind != b.Kind || a.ID != b.ID || a.Name != b.Name || !bytes.Equal(a.Payload, b.Payload) {
			return false
		}
	}
	return true
}

// marshal encodes a record for people: indented, with a final newline.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// readRun reads a record that marshal has written.
func readRun(b []byte) (Run, error) {
	var r Run
	if err := json.Unmarshal(b, &r); err != nil {
		return r, err
	}
	switch {
	case r.Format > format:
		return r, fmt.Errorf("its record has format %d, and this program knows %d: use a newer one", r.Format, format)
	case r.Format < 1 || store.CheckRunID(r.ID) != nil:
		return r, errors.New("it is not the record of a run")
	}
	return r, nil
}
