// Package runfile is the file format of a run, for example for moving it to
// another store: JSON, one value per line.
//
//	{"holdfast":"run","format":1,"run":{"id":"order-42","workflow":"checkout",…}}
//	{"branch":{"n":1,"parent":0,"cutoff":5,…}}
//	{"message":{"seq":1,"kind":"signal",…}}
//	{"event":{"seq":1,"type":"workflow_created","payload":"hf1 json int@1 …\n7",…}}
//	{"end":{"branches":1,"messages":1,"events":12,"sha256":"…"}}
//
// The last line counts the others and has the SHA-256 of every byte before it, so
// that a truncated or changed file is detected. A line with an unknown kind or
// field comes from a newer program and is refused.
package runfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// Format is the newest format this program writes and reads.
const Format = 1

// Kind is what the first line of every file says it is.
const Kind = "run"

// Errors about a file that is incomplete, or not a run file, wrap ErrDamaged.
var ErrDamaged = errors.New("damaged run file")

// FutureError reports a format newer than this program knows.
type FutureError struct{ Have, Know int }

func (e *FutureError) Error() string {
	return fmt.Sprintf("run file format %d is newer than format %d, the newest this program knows: use a newer program", e.Have, e.Know)
}

// File is a run as a file holds it.
type File struct {
	Run      store.Run
	Branches []store.Branch
	Inbox    []store.Message
	Events   []store.Event // without Epoch, which is not part of a history
}

// A Writer writes one run, part by part: NewWriter, Branch, Message, Event, Close.
type Writer struct {
	w   *bufio.Writer
	sum hash.Hash
	end end
}

type line struct {
	Holdfast string   `json:"holdfast,omitempty"`
	Format   int      `json:"format,omitempty"`
	Run      *row     `json:"run,omitempty"`
	Branch   *branch  `json:"branch,omitempty"`
	Message  *message `json:"message,omitempty"`
	Event    *event   `json:"event,omitempty"`
	End      *end     `json:"end,omitempty"`
}

type row struct {
	ID             string            `json:"id"`
	Workflow       string            `json:"workflow"`
	InitialVersion string            `json:"initial_version,omitempty"`
	Version        string            `json:"version,omitempty"`
	Parent         string            `json:"parent,omitempty"`
	ParentKey      string            `json:"parent_key,omitempty"`
	ForkedFrom     string            `json:"forked_from,omitempty"`
	InputHash      string            `json:"input_hash"`
	Queue          string            `json:"queue,omitempty"`
	Partition      string            `json:"partition,omitempty"`
	Dedup          string            `json:"dedup,omitempty"`
	Trace          string            `json:"trace,omitempty"`
	Status         store.Status      `json:"status"`
	Code           string            `json:"code,omitempty"`
	Reason         string            `json:"reason,omitempty"`
	Recoverable    bool              `json:"recoverable,omitempty"`
	Branch         int32             `json:"branch,omitempty"`
	Generation     int32             `json:"generation,omitempty"`
	Resumes        int32             `json:"resumes,omitempty"`
	Priority       int32             `json:"priority,omitempty"`
	Seen           int64             `json:"seen,omitempty"`
	CancelAsked    bool              `json:"cancel_asked,omitempty"`
	Paused         bool              `json:"paused,omitempty"`
	CreatedAt      store.Time        `json:"created_at"`
	StartedAt      store.Time        `json:"started_at,omitempty"`
	UpdatedAt      store.Time        `json:"updated_at,omitempty"`
	EndedAt        store.Time        `json:"ended_at,omitempty"`
	WakeAt         store.Time        `json:"wake_at,omitempty"`
	DeadlineAt     store.Time        `json:"deadline_at,omitempty"`
	Attributes     map[string]string `json:"attributes,omitempty"`
}

type branch struct {
	N          int32      `json:"n"`
	Parent     int32      `json:"parent"`
	Generation int32      `json:"generation,omitempty"`
	Cutoff     int64      `json:"cutoff"`
	CutScope   string     `json:"cut_scope,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	CreatedAt  store.Time `json:"created_at"`
}

// content is bytes that are usually readable text and are then written as text.
type content struct {
	Data       string `json:"data,omitempty"`
	DataBytes  []byte `json:"data_base64,omitempty"`
	Payload    string `json:"payload,omitempty"`
	PayloadRaw []byte `json:"payload_base64,omitempty"`
}

type message struct {
	Seq  int64      `json:"seq"`
	Kind store.Kind `json:"kind"`
	Name string     `json:"name,omitempty"`
	ID   string     `json:"id"`
	At   store.Time `json:"at"`
	content
}

type event struct {
	Seq      int64      `json:"seq"`
	Branch   int32      `json:"branch,omitempty"`
	Type     store.Type `json:"type"`
	Key      string     `json:"key,omitempty"`
	Attempt  int32      `json:"attempt,omitempty"`
	Ordinal  int32      `json:"ordinal,omitempty"`
	At       store.Time `json:"at"`
	TookUS   int64      `json:"took_us,omitempty"`
	ActiveUS int64      `json:"active_us,omitempty"`
	Steps    int32      `json:"steps,omitempty"`
	Sum      uint32     `json:"sum"`
	content
}

type end struct {
	Branches int    `json:"branches"`
	Messages int    `json:"messages"`
	Events   int    `json:"events"`
	SHA256   string `json:"sha256"`
}

// String returns what the last line says, for people.
func (e *end) String() string {
	return fmt.Sprintf("%s, %s and %s with the SHA-256 %q", count.Of(e.Branches, "branch"), count.Of(e.Messages, "message"), count.Of(e.Events, "event"), e.SHA256)
}

// NewWriter starts a file with the row of its run.
func NewWriter(w io.Writer, r *store.Run) (*Writer, error) {
	f := &Writer{sum: sha256.New()}
	f.w = bufio.NewWriterSize(w, 64<<10)
	return f, f.write(&line{Holdfast: Kind, Format: Format, Run: rowOf(r)}, true)
}

func (f *Writer) write(l *line, summed bool) error {
	b, err := encode(l)
	if err != nil {
		return err
	}
	if summed {
		_, _ = f.sum.Write(b) // never fails, says its documentation
	}
	_, err = f.w.Write(b)
	return err
}

// encode returns a line with its newline.
func encode(l *line) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	return b.Bytes(), err
}

// Branch adds a branch record.
func (f *Writer) Branch(b *store.Branch) error {
	f.end.Branches++
	l := branch(*b)
	return f.write(&line{Branch: &l}, true)
}

// Message adds a message of the inbox.
func (f *Writer) Message(m *store.Message) error {
	f.end.Messages++
	return f.write(&line{Message: &message{Seq: m.Seq, Kind: m.Kind, Name: m.Name, ID: m.ID, At: m.At, content: contentOf(m.Data, m.Payload)}}, true)
}

// Event adds an event. Its epoch is left out.
func (f *Writer) Event(e *store.Event) error {
	f.end.Events++
	return f.write(&line{Event: &event{
		Seq: e.Seq, Branch: e.Branch, Type: e.Type, Key: e.Key, Attempt: e.Attempt, Ordinal: e.Ordinal, At: e.At,
		TookUS: e.Took.Microseconds(), ActiveUS: e.Active.Microseconds(), Steps: e.Steps, Sum: e.Sum, content: contentOf(e.Data, e.Payload),
	}}, true)
}

// Close ends the file. Without it the file counts as incomplete.
func (f *Writer) Close() error {
	f.end.SHA256 = hex.EncodeToString(f.sum.Sum(nil))
	if err := f.write(&line{End: &f.end}, false); err != nil {
		return err
	}
	return f.w.Flush()
}

// Read reads a file that holds at most limit bytes, and returns it only if it is
// whole. Errors wrap ErrDamaged, are a *FutureError or store.ErrTooLarge, or are
// those of r.
func Read(r io.Reader, limit int64) (*File, error) {
	left := &io.LimitedReader{R: r, N: limit + 1}
	in := bufio.NewReaderSize(left, 64<<10)
	f, sum, got := &File{}, sha256.New(), end{}
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if left.N <= 0 {
			return nil, fmt.Errorf("the file has more than %d bytes: %w", limit, store.ErrTooLarge)
		}
		if err == io.EOF {
			return nil, fmt.Errorf("%w: line %d is not the last one, and the file ends there", ErrDamaged, n)
		}
		if err != nil {
			return nil, err
		}
		l, err := parse(text, n == 1)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if l.End != nil {
			got.SHA256 = hex.EncodeToString(sum.Sum(nil))
			// Compare the line byte for byte with what a Writer writes, because
			// the sum does not cover it.
			if want, err := encode(&line{End: &got}); err != nil || !bytes.Equal(text, want) {
				return nil, fmt.Errorf("%w: it is not what was written: its last line says %s, and there are %s", ErrDamaged, l.End, &got)
			}
			if rest, err := in.ReadByte(); err != io.EOF {
				return nil, fmt.Errorf("%w: something (%q) stands behind its last line", ErrDamaged, rest)
			}
			return f, nil
		}
		if err := f.take(l, n == 1, &got); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		_, _ = sum.Write(text) // never fails, says its documentation
	}
}

// parse reads a line. For the first one it checks the format before the fields.
func parse(text []byte, first bool) (*line, error) {
	if first {
		var head struct {
			Holdfast string `json:"holdfast"`
			Format   int    `json:"format"`
		}
		if err := json.Unmarshal(text, &head); err != nil || head.Holdfast != Kind || head.Format < 1 {
			return nil, fmt.Errorf("%w: it does not begin as a run file", ErrDamaged)
		}
		if head.Format > Format {
			return nil, &FutureError{Have: head.Format, Know: Format}
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var l line
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return &l, nil
}

// take adds the content of a line.
func (f *File) take(l *line, first bool, got *end) error {
	switch {
	case first != (l.Run != nil):
		return fmt.Errorf("%w: the row of the run stands in the first line, and only there", ErrDamaged)
	case l.Run != nil:
		r, err := l.Run.run()
		f.Run = r
		return err
	case l.Branch != nil:
		got.Branches++
		f.Branches = append(f.Branches, store.Branch(*l.Branch))
	case l.Message != nil:
		got.Messages++
		m := l.Message
		f.Inbox = append(f.Inbox, store.Message{Seq: m.Seq, Kind: m.Kind, Name: m.Name, ID: m.ID, At: m.At, Data: m.data(), Payload: m.payload()})
	case l.Event != nil:
		got.Events++
		e := l.Event
		f.Events = append(f.Events, store.Event{
			Seq: e.Seq, Branch: e.Branch, Type: e.Type, Key: e.Key, Attempt: e.Attempt, Ordinal: e.Ordinal, At: e.At,
			Took: time.Duration(e.TookUS) * time.Microsecond, Active: time.Duration(e.ActiveUS) * time.Microsecond,
			Steps: e.Steps, Sum: e.Sum, Data: e.data(), Payload: e.payload(),
		})
	default:
		return fmt.Errorf("%w: it says nothing", ErrDamaged)
	}
	return nil
}

func rowOf(r *store.Run) *row {
	return &row{
		ID: r.ID, Workflow: r.Workflow, InitialVersion: r.InitialVersion, Version: r.Version, Parent: r.Parent, ParentKey: r.ParentKey,
		ForkedFrom: r.ForkedFrom, InputHash: hex.EncodeToString(r.InputHash[:]), Queue: r.Queue, Partition: r.Partition, Dedup: r.Dedup, Trace: r.Trace,
		Status: r.Status, Code: r.Code, Reason: r.Reason, Recoverable: r.Recoverable, Branch: r.Branch, Generation: r.Generation, Resumes: r.Resumes,
		Priority: r.Priority, Seen: r.Seen, CancelAsked: r.CancelAsked, Paused: r.Paused, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt,
		UpdatedAt: r.UpdatedAt, EndedAt: r.EndedAt, WakeAt: r.WakeAt, DeadlineAt: r.DeadlineAt, Attributes: r.Attributes,
	}
}

func (r *row) run() (store.Run, error) {
	run := store.Run{
		ID: r.ID, Workflow: r.Workflow, InitialVersion: r.InitialVersion, Version: r.Version, Parent: r.Parent, ParentKey: r.ParentKey,
		ForkedFrom: r.ForkedFrom, Queue: r.Queue, Partition: r.Partition, Dedup: r.Dedup, Trace: r.Trace,
		Status: r.Status, Code: r.Code, Reason: r.Reason, Recoverable: r.Recoverable, Branch: r.Branch, Generation: r.Generation, Resumes: r.Resumes,
		Priority: r.Priority, Seen: r.Seen, CancelAsked: r.CancelAsked, Paused: r.Paused, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt,
		UpdatedAt: r.UpdatedAt, EndedAt: r.EndedAt, WakeAt: r.WakeAt, DeadlineAt: r.DeadlineAt, Attributes: r.Attributes,
	}
	if n, err := hex.Decode(run.InputHash[:], []byte(r.InputHash[:min(len(r.InputHash), 32)])); err != nil || n != len(run.InputHash) || len(r.InputHash) != 32 {
		return run, fmt.Errorf("%w: the hash of the input is not one", ErrDamaged)
	}
	return run, nil
}

func contentOf(data, payload []byte) (c content) {
	if isText(data) {
		c.Data = string(data)
	} else {
		c.DataBytes = data
	}
	if isText(payload) {
		c.Payload = string(payload)
	} else {
		c.PayloadRaw = payload
	}
	return c
}

// isText reports whether b is written as text: JSON must preserve it byte for
// byte, without many escapes.
func isText(b []byte) bool {
	return utf8.Valid(b) && !strings.ContainsFunc(string(b), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' })
}

func (c *content) data() []byte    { return bytesOf(c.Data, c.DataBytes) }
func (c *content) payload() []byte { return bytesOf(c.Payload, c.PayloadRaw) }

func bytesOf(text string, raw []byte) []byte {
	if text != "" {
		return []byte(text)
	}
	return raw
}
