package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// StartJSON is Workflow.Start for a caller that has a name and JSON instead of
// Go types, such as an HTTP handler, and returns the id of the run. When this
// engine has the workflow's code the input must be what the function takes: no
// unknown field, nothing behind the value. It is then recorded as Start records
// it, so that starting the run either way is the same start. Else the input is
// recorded as it is, for whoever serves the workflow. An empty input is the zero
// value.
//
// Errors: ErrNotRegistered when nobody alive serves the workflow; ErrInvalid for
// an input that is none; those of Start.
func (e *Engine) StartJSON(ctx context.Context, workflow, id string, input json.RawMessage, o ...StartOption) (string, error) {
	def := e.program.defs.find(workflow, "")
	if def == nil {
		def = &definition{name: workflow, input: reflect.TypeFor[json.RawMessage]()}
		if err := def.check(); err != nil {
			return "", err
		}
		if !e.somebodyServes(ctx, &store.Run{Workflow: workflow}) {
			return "", fmt.Errorf("durable: starting run %q: nobody alive serves workflow %q: %w", id, workflow, ErrNotRegistered)
		}
	}
	env, err := e.sealer.encodeJSON(def.input, input)
	if err != nil {
		return "", fmt.Errorf("durable: starting run %q of workflow %s: the input is no %s: %w", id, workflow, def.input, err)
	}
	var opts startOptions
	if err := opts.take(ctx, e, id, o); err != nil {
		return "", fmt.Errorf("durable: starting run %q of workflow %s: %w", id, workflow, err)
	}
	opts.input = def.input
	if id != AutoID {
		_, _, _, err := e.start(ctx, def, id, env, &opts)
		return id, err
	}
	for tries := 0; ; tries++ {
		_, created, err := e.create(ctx, def, generateID(workflow, e.now().Time(), tries), env, &opts)
		if errors.Is(err, store.ErrExists) && tries < 8 {
			continue // somebody has this suffix: a longer one
		}
		return created, err
	}
}

// encodeJSON makes of JSON what encode makes of the value of type t it stands for.
func (s *sealer) encodeJSON(t reflect.Type, data json.RawMessage) ([]byte, error) {
	v := reflect.New(t)
	if len(data) > 0 {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		var err error
		if fault := guard.Call(func() { err = dec.Decode(v.Interface()) }); fault != nil {
			err = fault
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: something follows the value", ErrInvalid)
		}
	}
	if t.Size() == 0 && t.Kind() == reflect.Struct {
		return nil, nil
	}
	if err := s.sealable(); err != nil {
		return nil, err
	}
	info := s.infoOf(t)
	encoded, err := s.encoded(info, v.Elem().Interface(), s.maxPayload)
	if err != nil {
		return nil, err
	}
	return envelope.Seal(s.prefixOf(info), encoded), nil
}

// encodeEdited encodes the value that replaces an outcome. A json.RawMessage
// stands for a value of the type that is recorded, and is kept as one: whoever
// edits by hand has no Go type. It must be the same kind of JSON.
func (s *sealer) encodeEdited(id string, old *store.Event, value any, force bool) ([]byte, error) {
	raw, ok := value.(json.RawMessage)
	if !ok || old.Type == store.StepFailed || old.Type == store.ItemFailed || len(old.Payload) == 0 {
		return encodeAny(s, s.maxPayload, value)
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is no JSON")
	}
	was, err := s.open(placeOf(id, old), old.Payload)
	if err != nil || was.Codec != (jsonCodec{}).Name() {
		return encodeAny(s, s.maxPayload, value) // of another type than is known
	}
	if a, b := kindOfJSON(was.Payload), kindOfJSON(raw); a != b && a != "null" && b != "null" && !force && (was.Type != typeOfRaw || old.Type == store.SignalReceived || old.Type == store.ChildFinished) {
		return nil, fmt.Errorf("it is recorded as %s, %s, and the value is %s. Force replaces it all the same", orUnknown(was.Type), a, b)
	}
	if len(raw) > s.maxPayload {
		return nil, &PayloadSizeError{Size: len(raw), Limit: s.maxPayload}
	}
	if err := s.sealable(); err != nil {
		return nil, err
	}
	header, err := s.editedHeader(&was, raw, force)
	if err != nil {
		return nil, err
	}
	return envelope.Seal(header, raw), nil
}

// editedHeader returns the header of JSON that replaces what was recorded. It is
// written in the version that is recorded, or in the present one of a registered type
// that has changed since: the header says which, so that it is read as what it is.
func (s *sealer) editedHeader(was *envelope.Envelope, raw json.RawMessage, force bool) (string, error) {
	recorded := envelope.Envelope{Codec: was.Codec, Type: was.Type, TypeVersion: was.TypeVersion, Within: was.Within}
	changed := "" // a type that this program knows otherwise, or not at all
	for _, p := range recordedParts(was) {
		if d := s.types.named(p.Name); d == nil || d.version != p.Version {
			changed = p.Name
		}
	}
	d := s.types.named(baseName(was.Type))
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

// typeOfRaw is the type that is recorded of a step with JSON which took the place of its
// failure: nobody knew then what the code expects there, so it says nothing of what comes next.
var typeOfRaw = reflect.TypeFor[json.RawMessage]().String()

// kindOfJSON names what a JSON text begins to be.
func kindOfJSON(data []byte) string {
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
