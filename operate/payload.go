package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Payload is the user data of an event as a program can show it: decrypted and
// decompressed, not decoded.
type Payload struct {
	// Type and Version of the value, as recorded: a registered name (see durable.Type),
	// or the name of its Go type and 1. Type is empty when it is not known.
	Type    string
	Version int
	// Codec that made Data; empty when the event has no payload.
	Codec string
	// Compression and KeyID say how it is kept; empty: not compressed, not
	// encrypted.
	Compression, KeyID string
	// Data is what the codec made of the value.
	Data []byte
}

// String returns the value for people: its JSON on one line where the codec made
// that, else its text where it is text, else how large it is. It is user data:
// escape it where it is shown.
func (p Payload) String() string {
	var line bytes.Buffer
	switch {
	case p.Codec == "":
		return ""
	case json.Compact(&line, p.Data) == nil:
		return line.String()
	case utf8.Valid(p.Data) && bytes.IndexFunc(p.Data, unicode.IsControl) < 0:
		return string(p.Data)
	}
	return fmt.Sprintf("(%s of %s)", count.Of(len(p.Data), "byte"), p.Codec)
}

// Payload opens what an event of a run carries, such as one that History or
// Watch has yielded: the result of a step, an input, a signal. For an event
// without a payload it is the zero Payload. The error is a
// *durable.UndecodableError when the payload is damaged, or this engine lacks the key
// to it.
func (op *Operator) Payload(runID string, ev store.Event) (Payload, error) {
	if len(ev.Payload) == 0 {
		return Payload{}, nil
	}
	open, err := op.sealer.Open(payload.PlaceOf(runID, &ev), ev.Payload)
	p := Payload{Type: open.Type, Version: open.TypeVersion, Codec: open.Codec, Compression: open.Compression, KeyID: open.KeyID}
	if err != nil {
		return p, &durable.UndecodableError{RunID: runID, Key: history.NameOf(&ev), Recorded: open.Type, Err: err}
	}
	p.Data = open.Payload
	return p, nil
}

// Decode reads what an event of a run carries into v, a pointer, as the run's own
// code would: earlier versions of a registered type are raised to the present
// one. An event without a payload leaves v as it is. The error is a
// *durable.UndecodableError when the value does not decode into v; durable.ErrInvalid when
// v is no pointer.
func (op *Operator) Decode(runID string, ev store.Event, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("durable: Decode needs a pointer that is not nil, and got a %T: %w", v, durable.ErrInvalid)
	}
	if recorded, err := op.sealer.Decode(payload.PlaceOf(runID, &ev), ev.Payload, v); err != nil {
		return &durable.UndecodableError{RunID: runID, Key: history.NameOf(&ev), Recorded: recorded, Wanted: target.Type().Elem().String(), Err: err}
	}
	return nil
}

// Describe returns the one line a person needs of an event: what happened, to
// which call, and the error if there was one.
func Describe(ev store.Event) string {
	var b strings.Builder
	b.WriteString(string(ev.Type))
	if ev.Key != "" {
		b.WriteString(" " + ev.Key)
	}
	if ev.Attempt > 0 && (ev.Type == store.AttemptFailed || ev.Attempt > 1) {
		fmt.Fprintf(&b, " attempt %d", ev.Attempt)
	}
	why, err := history.WhyOf(&ev)
	switch {
	case err != nil:
		b.WriteString(" (its data is not readable)")
	case why.Error != nil:
		b.WriteString(": " + why.Error.Message)
	case why.Reason != "":
		b.WriteString(": " + why.Reason)
	}
	return b.String()
}
