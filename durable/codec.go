package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// Codec turns values into bytes and back. The zero Options use JSON, which
// stays readable in the database. A codec must be safe for concurrent use.
type Codec interface {
	// Name is kept with every checkpoint and must never change.
	Name() string
	Encode(v any) ([]byte, error)
	// Decode sets what v, a pointer, points to.
	Decode(data []byte, v any) error
}

// JSON is the default codec: encoding/json.
func JSON() Codec { return jsonCodec{} }

type jsonCodec struct{}

func (jsonCodec) Name() string { return "json" }

func (jsonCodec) Encode(v any) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec) Decode(data []byte, v any) error { return json.Unmarshal(data, v) }

// typeInfo is what is known of a type once.
type typeInfo struct {
	name   string
	prefix string // of its envelope with JSON
	// exact: a value of this type decodes from its JSON to itself, so a live
	// value need not be decoded. exactText: only if every string is UTF-8.
	exact, exactText bool
}

var typeInfos sync.Map // reflect.Type -> *typeInfo

func infoOf(t reflect.Type) *typeInfo {
	if i, ok := typeInfos.Load(t); ok {
		return i.(*typeInfo)
	}
	i := &typeInfo{name: typeName(t)}
	i.prefix = envelope.Prefix("json", i.name, 1)
	i.exact, i.exactText = roundTripsExactly(t, 0)
	typeInfos.Store(t, i)
	return i
}

func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Struct && t.NumField() == 0 && t.Name() == "" {
		return ""
	}
	return t.String()
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
	textUnmarshaler = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

// roundTripsExactly reports whether encoding/json is provably the identity for
// values of t, and whether that needs their strings to be valid UTF-8. Whatever
// is not plainly so (pointers, slices, maps, own methods, unexported or
// unkept fields) is not.
func roundTripsExactly(t reflect.Type, depth int) (exact, text bool) {
	for _, own := range []reflect.Type{jsonMarshaler, jsonUnmarshaler, textMarshaler, textUnmarshaler} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return false, false
		}
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true, false
	case reflect.String:
		return t != reflect.TypeFor[json.Number](), true
	case reflect.Struct:
		if depth > 4 {
			return false, false
		}
		for f := range t.Fields() {
			if f.Anonymous || !f.IsExported() || f.Tag.Get("json") != "" {
				return false, false
			}
			e, s := roundTripsExactly(f.Type, depth+1)
			if !e {
				return false, false
			}
			text = text || s
		}
		// Names that differ by case only decode into one another.
		return !foldedTwins(t), text
	}
	return false, false
}

func foldedTwins(t reflect.Type) bool {
	seen := map[string]bool{}
	for f := range t.Fields() {
		folded := string(bytes.ToLower([]byte(f.Name)))
		if seen[folded] {
			return true
		}
		seen[folded] = true
	}
	return false
}

var intPrefix = envelope.Prefix("json", "int", 1)

// encode returns the envelope of v, and the value as a replay will see it: the
// same one where the round trip is provably the identity, else decoded anew.
func encode[T any](e *Engine, v T) (env []byte, seen T, err error) { return encodeAt(e, &v) }

// encodeAt is encode for a value that stands somewhere already. It does not
// change it.
func encodeAt[T any](e *Engine, v *T) (env []byte, seen T, err error) {
	t := reflect.TypeFor[T]()
	if t.Size() == 0 && t.Kind() == reflect.Struct {
		return nil, *v, nil // no result: nothing to keep
	}
	// By its address, so that an int in an interface is not taken for one.
	if n, ok := any(v).(*int); ok && e.plainJSON {
		// The most common small result, without reflection.
		return envelope.SealInt(intPrefix, int64(*n)), *v, nil
	}
	info := infoOf(t)
	data, err := e.codec.Encode(*v)
	if err != nil {
		return nil, seen, fmt.Errorf("the codec %s refuses it: %w", e.codec.Name(), err)
	}
	if limit := e.limits.Payload - envelope.MaxHeader; len(data) > limit {
		return nil, seen, fmt.Errorf("it takes %d bytes and the limit is %d: keep it elsewhere and return a reference: %w", len(data), limit, store.ErrTooLarge)
	}
	prefix := info.prefix
	if !e.plainJSON {
		prefix = envelope.Prefix(e.codec.Name(), info.name, 1)
	}
	env = envelope.Seal(prefix, data)
	if e.plainJSON && info.exact && !(info.exactText && bytes.Contains(data, []byte(`\ufffd`))) {
		return env, *v, nil
	}
	if err := e.codec.Decode(data, &seen); err != nil {
		return nil, seen, fmt.Errorf("it is encoded but cannot be decoded again: %w", err)
	}
	return env, seen, nil
}

// encodeAny is encode for a value whose static type is not known, such as that of
// a signal.
func encodeAny(e *Engine, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	data, err := e.codec.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("the codec %s refuses it: %w", e.codec.Name(), err)
	}
	if limit := e.limits.Payload - envelope.MaxHeader; len(data) > limit {
		return nil, fmt.Errorf("it takes %d bytes and the limit is %d: keep it elsewhere and send a reference: %w", len(data), limit, store.ErrTooLarge)
	}
	return envelope.Seal(envelope.Prefix(e.codec.Name(), infoOf(reflect.TypeOf(v)).name, 1), data), nil
}

// fastDecode is decode for the most common small result, without reflection. It
// reports whether it knew what to do.
func fastDecode[T any](env []byte, v *T) bool {
	n, ok := any(v).(*int)
	if !ok {
		return false
	}
	payload, ok := envelope.OpenAs(intPrefix, env)
	if !ok {
		return false
	}
	i, err := strconv.Atoi(string(payload))
	*n = i
	return err == nil
}

// errNoCodec reports a checkpoint written with a codec the engine does not have.
var errNoCodec = errors.New("unknown codec")

// decode reads an envelope into v, a pointer. An empty one leaves v as it is.
func (e *Engine) decode(env []byte, v any) (recorded string, err error) {
	if len(env) == 0 {
		return "", nil
	}
	open, err := envelope.Open(env)
	if err != nil {
		return "", err
	}
	switch {
	case open.Compression != "" || open.KeyID != "":
		return open.Type, fmt.Errorf("it is compressed (%q) or encrypted (key %q), which this engine is not set up for", open.Compression, open.KeyID)
	case open.Codec == e.codec.Name():
		return open.Type, e.codec.Decode(open.Payload, v)
	case open.Codec == "json":
		return open.Type, json.Unmarshal(open.Payload, v)
	}
	return open.Type, fmt.Errorf("%w %q", errNoCodec, open.Codec)
}
