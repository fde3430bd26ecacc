package durable

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/payload"
)

// Codec turns values into bytes and back. The zero Options use JSON, which
// stays readable in the database. A codec must be safe for concurrent use.
type Codec interface {
	// Name is kept with every checkpoint and must never change.
	Name() string
	Encode(v any) ([]byte, error)
	// Decode sets what v, a pointer, points to. It may keep data.
	Decode(data []byte, v any) error
}

// JSON is the default codec: encoding/json.
func JSON() Codec { return payload.JSON{} }

// StrictJSON is JSON, except that it cannot read a value with a field that its
// type here lacks. With JSON, a field that was renamed silently reads as zero. It
// is for tests; package durabletest replays histories with it.
func StrictJSON() Codec { return payload.JSON{Strict: true} }

// DefaultCompressAbove is the size in bytes above which an encoded value is
// compressed, unless Options.CompressAbove says otherwise.
const DefaultCompressAbove = 32 << 10

// PayloadSizeError says that a value is too large to be kept. Nothing of it was
// written. Size is how many bytes the codec made of it; Limit is the engine's:
// Options.MaxPayload, or what the store takes. It matches store.ErrTooLarge.
type PayloadSizeError = payload.SizeError

// EncodeError says that a value cannot be kept: it has no faithful encoding,
// or it is too large.
type EncodeError struct {
	RunID string
	Key   string // of the step that made it; empty: the run's input or output
	Type  string
	Err   error
}

func (e *EncodeError) Error() string {
	where := "step " + e.Key
	if e.Key == "" {
		where = "the workflow's own value"
	}
	what := "a value of type " + e.Type
	if e.Type == "json.RawMessage" {
		what = "the value" // passed in encoded form, for a value of another type
	}
	return fmt.Sprintf("run %s: %s: %s cannot be kept: %v", e.RunID, where, what, e.Err)
}

func (e *EncodeError) Unwrap() error { return e.Err }

type encodeErrorJSON struct{ RunID, Key, Type, Err string }

// MarshalJSON encodes the error, so that a replay finds it again.
func (e *EncodeError) MarshalJSON() ([]byte, error) {
	return json.Marshal(encodeErrorJSON{e.RunID, e.Key, e.Type, fmt.Sprint(e.Err)})
}

// UnmarshalJSON reads what MarshalJSON has written; of Err it keeps the message.
func (e *EncodeError) UnmarshalJSON(b []byte) error {
	var j encodeErrorJSON
	err := json.Unmarshal(b, &j)
	*e = EncodeError{RunID: j.RunID, Key: j.Key, Type: j.Type, Err: errors.New(j.Err)}
	return err
}

// UndecodableError says that a recorded value cannot be read as the type that the
// code asks for. The run stops, stays resumable, and nothing is changed.
type UndecodableError struct {
	RunID    string
	Key      string
	Recorded string // type name in the checkpoint, with its version above 1
	Wanted   string // type that the code asks for; empty: not known
	Err      error
}

func (e *UndecodableError) Error() string {
	as := ""
	if e.Wanted != "" {
		as = " as " + e.Wanted
	}
	return fmt.Sprintf("run %s: the checkpoint of %s holds a %s and cannot be read%s: %v",
		e.RunID, e.Key, payload.OrUnknown(e.Recorded), as, e.Err)
}

func (e *UndecodableError) Unwrap() error { return e.Err }

type undecodableErrorJSON struct{ RunID, Key, Recorded, Wanted, Err string }

// MarshalJSON encodes the error, so that it is found again where it was recorded.
func (e *UndecodableError) MarshalJSON() ([]byte, error) {
	return json.Marshal(undecodableErrorJSON{e.RunID, e.Key, e.Recorded, e.Wanted, fmt.Sprint(e.Err)})
}

// UnmarshalJSON reads what MarshalJSON has written; of Err it keeps the message.
func (e *UndecodableError) UnmarshalJSON(b []byte) error {
	var j undecodableErrorJSON
	err := json.Unmarshal(b, &j)
	*e = UndecodableError{RunID: j.RunID, Key: j.Key, Recorded: j.Recorded, Wanted: j.Wanted, Err: errors.New(j.Err)}
	return err
}
