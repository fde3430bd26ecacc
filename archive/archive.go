package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Archive keeps the latest copy of each run that was stored in it. All methods
// may be called concurrently, by many processes on the same archive.
type Archive interface {
	// Store replaces the copy of a run. file is the run as operate.Operator.Export
	// writes it. When Store returns nil the copy survives a crash of the machine;
	// however the process ends, the archive holds the previous copy or this one,
	// never a part of it. A file that is an earlier state of the existing copy
	// changes nothing, so a late writer does no harm. Store returns nil only if
	// the archived copy then contains what was given: of two runs with the same
	// id, the archive keeps the one created later and refuses the other.
	//
	// Errors: ErrBadFile; *CollisionError; *ReusedIDError; ErrUnavailable. Then
	// nothing has changed.
	Store(ctx context.Context, runID string, file []byte) error

	// List yields what is archived, in no particular order. An error that
	// matches ErrUnreadable is about one run, and the listing goes on; any other
	// error ends it.
	List(ctx context.Context) iter.Seq2[Run, error]

	// Trace returns the events of an archived run, on all branches, in order.
	// ErrNotFound; ErrUnreadable; ErrUnavailable.
	Trace(ctx context.Context, runID string) ([]Event, error)

	// Get returns everything that is archived of a run. Errors as with Trace.
	Get(ctx context.Context, runID string) (*Entry, error)
}

// The errors of an archive; compare with errors.Is.
var (
	// ErrNotFound: no such run is archived.
	ErrNotFound = errors.New("archive: the run is not archived")
	// ErrBadFile: the given file is not the file of that run.
	ErrBadFile = errors.New("archive: not the file of this run")
	// ErrUnreadable: *UnreadableError matches it.
	ErrUnreadable = errors.New("archive: unreadable entry")
	// ErrUnavailable: the archive could not be reached or written: no git, no
	// repository, no permission, no space.
	ErrUnavailable = errors.New("archive: not available")
)

// UnreadableError says that the copy of one run is damaged, or from a newer
// program.
type UnreadableError struct {
	RunID string // empty when the name of the entry is not that of a run
	Where string // the ref or file
	Err   error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("archive: the entry %s (run %q) cannot be read: %v", e.Where, e.RunID, e.Err)
}

// Is matches ErrUnreadable.
func (e *UnreadableError) Is(target error) bool { return target == ErrUnreadable }

func (e *UnreadableError) Unwrap() error { return e.Err }

// CollisionError says that the place of a run's copy holds the copy of another
// run, which happens on a file system that ignores case. Nothing was overwritten.
type CollisionError struct{ RunID, Other, Where string }

func (e *CollisionError) Error() string {
	return fmt.Sprintf("archive: run %q cannot be archived: its place %s holds run %q. Give the runs ids that differ in more than case, or use a file system that tells case apart", e.RunID, e.Where, e.Other)
}

// ReusedIDError says that a run cannot be archived because the archive holds
// another run, which was given the same id later. Nothing was overwritten.
type ReusedIDError struct {
	RunID       string
	Given, Held time.Time // when the two were created
	Where       string    // the ref or file that holds the later one
}

func (e *ReusedIDError) Error() string {
	return fmt.Sprintf("archive: run %q, created at %s, cannot be archived: its place %s holds another run with this id, created at %s. Import it under another id, or remove that copy if nobody needs it",
		e.RunID, e.Given.UTC().Format(time.RFC3339), e.Where, e.Held.UTC().Format(time.RFC3339))
}

// Run is what is archived of a run, without its events.
type Run struct {
	ID       string       `json:"run_id"`
	Workflow string       `json:"workflow_id"`
	Version  string       `json:"version,omitempty"`
	Status   store.Status `json:"status"`
	Code     string       `json:"code,omitempty"`
	Reason   string       `json:"reason,omitempty"`

	// Input and Output are the values as JSON; Output is absent unless the run has
	// completed. A value that this package cannot show without a key or codec of
	// the program is absent too, and Hidden says so; the run file still has it.
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Hidden string          `json:"hidden,omitempty"`
	// Error is the error of a failed run.
	Error       string `json:"error,omitempty"`
	Recoverable bool   `json:"recoverable,omitempty"`
	// Prompt and ResumeAt are set while the run waits: what a person is asked,
	// and the key of the wait.
	Prompt   string `json:"checkpoint_prompt,omitempty"`
	ResumeAt string `json:"resume_at,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// DurationMS is the time from its start to its end, or to its last event, in
	// milliseconds.
	DurationMS int64 `json:"duration_ms"`

	Parent     string            `json:"parent,omitempty"`
	ForkedFrom string            `json:"forked_from,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`

	// Seq and Sum are those of the last event: they identify a state of the run.
	Seq int64  `json:"seq"`
	Sum uint32 `json:"sum"`
	// Format is the version of this record's format, from 1.
	Format int `json:"format"`
	// Live says that the store also has the run, and that the status, reason and
	// times come from the store. It is not archived.
	Live bool `json:"live,omitempty"`
}

// Event is one archived event.
type Event struct {
	Seq    int64      `json:"seq"`
	Branch int32      `json:"branch,omitempty"`
	Type   store.Type `json:"type"`
	// Name is the event's name in traces that other programs read:
	// checkpoint_waiting, step_complete; otherwise the type.
	Name    string    `json:"name"`
	Key     string    `json:"key,omitempty"` // of the durable call
	Attempt int32     `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
	TookMS  float64   `json:"took_ms,omitempty"`
	// Data is the event's own data, Value the user's value. If Value cannot be
	// shown, Hidden says why.
	Data   json.RawMessage `json:"data,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Hidden string          `json:"hidden,omitempty"`
	// Abandoned: it is on a branch that was left.
	Abandoned bool `json:"abandoned,omitempty"`
}

// Entry is everything that is archived of a run.
type Entry struct {
	Run
	Trace []Event
	// File is the run exactly as it was exported: what
	// operate.Operator.Import reads.
	File []byte
}
