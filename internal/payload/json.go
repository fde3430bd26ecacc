package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// EncodeJSON encodes the value of type t that the JSON represents, as Encode does. The error
// matches store.ErrInvalid if the JSON represents no such value.
func (s *Sealer) EncodeJSON(t reflect.Type, data json.RawMessage) ([]byte, error) {
	v := reflect.New(t)
	if err := guard.JSON(data); err != nil {
		return nil, fmt.Errorf("%w: it %w", store.ErrInvalid, err)
	}
	if len(data) > 0 {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		var err error
		if fault := guard.Call(func() { err = dec.Decode(v.Interface()) }); fault != nil {
			err = fault
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: something follows the value", store.ErrInvalid)
		}
	}
	if t.Size() == 0 && t.Kind() == reflect.Struct {
		return nil, nil
	}
	if err := s.Ready(); err != nil {
		return nil, err
	}
	info := s.infoOf(t)
	encoded, err := s.encoded(info, v.Elem().Interface(), s.maxPayload)
	if err != nil {
		return nil, err
	}
	return envelope.Seal(s.prefixOf(info), encoded), nil
}

// EncodeEdited encodes the value that replaces an outcome of a run. A json.RawMessage
// represents a value of the recorded type, and is stored as one: a person who edits by hand
// has no Go type. It must be the same kind of JSON, unless force is set.
func (s *Sealer) EncodeEdited(id string, old *store.Event, value any, force bool) ([]byte, error) {
	raw, ok := value.(json.RawMessage)
	if !ok || old.Type == store.StepFailed || old.Type == store.ItemFailed || len(old.Payload) == 0 {
		return s.EncodeAny(s.maxPayload, value)
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is no JSON")
	}
	was, err := s.Open(PlaceOf(id, old), old.Payload)
	if err != nil || was.Codec != (JSON{}).Name() {
		return s.EncodeAny(s.maxPayload, value) // of another type than is known
	}
	if a, b := KindOfJSON(was.Payload), KindOfJSON(raw); a != b && a != "null" && b != "null" && !force && (was.Type != typeOfRaw || old.Type == store.SignalReceived || old.Type == store.ChildFinished) {
		return nil, fmt.Errorf("it is recorded as %s, %s, and the value is %s. Force replaces it all the same", OrUnknown(was.Type), a, b)
	} else if b == "null" && a != "null" && !force && !s.mayBeNull(&was, old.Type) {
		return nil, fmt.Errorf("it is recorded as %s, %s, and null is none: the code would read its zero value. Force replaces it all the same", OrUnknown(was.Type), a)
	}
	if len(raw) > s.maxPayload {
		return nil, &SizeError{Size: len(raw), Limit: s.maxPayload}
	}
	if err := s.Ready(); err != nil {
		return nil, err
	}
	header, err := s.editedHeader(&was, raw, force)
	if err != nil {
		return nil, err
	}
	return envelope.Seal(header, raw), nil
}

// mayBeNull is MayBeNothing of a recorded type, as far as its name and the recorded value tell:
// a named type with an object is taken for a struct, and one with an array for a slice.
func (s *Sealer) mayBeNull(was *envelope.Envelope, of store.Type) bool {
	if d := s.Types.named(baseName(was.Type)); d != nil {
		if t := d.shaped(was.Type); t != nil {
			return MayBeNothing(t)
		}
	}
	switch name := was.Type; {
	case name == typeOfRaw:
		return of != store.SignalReceived && of != store.ChildFinished || KindOfJSON(was.Payload) == "an array"
	case strings.HasPrefix(name, "*"), strings.HasPrefix(name, "[]"), strings.HasPrefix(name, "map["), strings.HasPrefix(name, "interface {"):
		return true
	case strings.HasPrefix(name, "["):
		return false
	}
	return KindOfJSON(was.Payload) == "an array"
}

// editedHeader returns the header of JSON that replaces what was recorded. The JSON is in
// the recorded version, or in the current one of a registered type that has changed since;
// the header says which, so that it is decoded correctly.
func (s *Sealer) editedHeader(was *envelope.Envelope, raw json.RawMessage, force bool) (string, error) {
	recorded := envelope.Envelope{Codec: was.Codec, Type: was.Type, TypeVersion: was.TypeVersion, Within: was.Within}
	changed := "" // a type that this program knows in another version, or not at all
	for _, p := range recordedParts(was) {
		if d := s.Types.named(p.Name); d == nil || d.version != p.Version {
			changed = p.Name
		}
	}
	d := s.Types.named(baseName(was.Type))
	if d != nil && was.TypeVersion < d.version && was.TypeVersion > 0 {
		if t := d.shaped(was.Type); t != nil {
			version, ok := d.fitsAs(raw, t, was.TypeVersion)
			if !ok && !force {
				return "", fmt.Errorf("it is neither version %d of %s, which is recorded, nor version %d, which this program has. Force records it as version %d", was.TypeVersion, d.name, d.version, was.TypeVersion)
			}
			if ok && version == d.version {
				return s.infoOf(t).header(was.Codec), nil
			}
			return recorded.Header(), nil
		}
	}
	if field := newFields(was.Payload, raw, ""); changed != "" && field != "" && !force {
		return "", fmt.Errorf("it has the field %q, which the recorded value has not, and that holds another version of %s than this program knows: write it as it is recorded. Force records it all the same", field, changed)
	}
	return recorded.Header(), nil
}

// typeOfRaw is the recorded type where JSON has replaced the failure of a step. The type
// that the code expects there was unknown, so it does not constrain the next replacement.
var typeOfRaw = reflect.TypeFor[json.RawMessage]().String()

// KindOfJSON names the kind of a JSON text by its beginning.
func KindOfJSON(data []byte) string {
	data = bytes.TrimLeft(data, " \t\r\n")
	if len(data) == 0 {
		return "nothing"
	}
	switch data[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// NotNothing returns an error that IsMismatch reports if a value that was sent, in this envelope, is
// nothing, or JSON's null, and a t cannot be nothing. Decode would read it as the zero value: as a
// no, where a yes or a no was asked for.
func NotNothing(env []byte, t reflect.Type) error {
	if MayBeNothing(t) {
		return nil
	}
	if len(env) > 0 {
		open, err := envelope.Open(env)
		if err != nil || open.Codec != (JSON{}).Name() || KindOfJSON(open.Payload) != "null" {
			return nil // another codec has its own rules
		}
	}
	return mismatch(errors.New("it is null"))
}

// MayBeNothing reports whether null is a value of t, or t decides for itself what null is.
func MayBeNothing(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	case reflect.Struct:
		if t.NumField() == 0 {
			return true
		}
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// Sample returns the JSON of the zero value of t, which shows what a value looks like; nil if
// that says nothing. It depends on the code alone, and has at most 4 KiB, as it is kept with waits.
func Sample(t reflect.Type) (b json.RawMessage) {
	var err error
	// A user's MarshalJSON may not expect a zero value.
	fault := guard.Call(func() { b, err = json.Marshal(reflect.Zero(t).Interface()) })
	if fault != nil || err != nil || len(b) > 4<<10 || string(b) == "null" {
		return nil
	}
	return b
}
