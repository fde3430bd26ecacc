package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
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

// codecNameOf returns the name of a codec, and refuses one that no header could hold.
func codecNameOf(c Codec) (name string, err error) {
	if fault := guard.Call(func() { name = c.Name() }); fault != nil {
		return "", fmt.Errorf("durable: Options.Codec: its name cannot be had: %w: %w", fault, ErrInvalid)
	}
	if err := store.CheckName("codec name", name); err != nil {
		return "", err
	}
	if len(name) > 64 {
		return "", fmt.Errorf("durable: Options.Codec: the name %q is longer than 64 bytes: %w", name, ErrInvalid)
	}
	return name, nil
}

// JSON is the default codec: encoding/json.
func JSON() Codec { return jsonCodec{} }

// StrictJSON is JSON, but a value with a field that its type here has no place for
// cannot be read: a field that was renamed reads zero with JSON, in silence. It is
// for tests; package durabletest replays histories with it.
func StrictJSON() Codec { return jsonCodec{strict: true} }

type jsonCodec struct{ strict bool }

func (jsonCodec) Name() string { return "json" }

func (jsonCodec) Encode(v any) ([]byte, error) { return json.Marshal(v) }

func (c jsonCodec) Decode(data []byte, v any) error {
	if !c.strict {
		return json.Unmarshal(data, v)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// typeInfo is what is known of a type once.
type typeInfo struct {
	name    string // in an envelope
	version int
	prefix  string // of its envelope with JSON
	// def is the registered type it is, or is made of; shape says how.
	def   *TypeDef
	shape string
	// parts are the registered types it contains; within names them in a header.
	parts  []*TypeDef
	within string
	// exact: a value of this type decodes from its JSON to itself, so a live
	// value need not be decoded. exactText: only if every string is UTF-8.
	exact, exactText bool
	// times: it may hold times, of which the encoding says in which zone they were
	// made.
	times bool
	// ownEncode, ownDecode: JSON calls methods of the user's on it.
	ownEncode, ownDecode bool
}

var typeInfos sync.Map // reflect.Type -> *typeInfo

func infoOf(t reflect.Type) *typeInfo {
	if i, ok := typeInfos.Load(t); ok {
		return i.(*typeInfo)
	}
	i := &typeInfo{name: typeName(t), version: 1}
	i.prefix = envelope.Prefix("json", i.name, 1)
	i.exact, i.exactText = roundTripsExactly(t, 0)
	i.times = mayHoldTimes(t, map[reflect.Type]bool{})
	i.ownEncode, i.ownDecode = ownCode(t, map[reflect.Type]bool{})
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

// encode returns the envelope of v, of at most limit bytes, and the value as a replay will see it: the
// same one where the round trip is provably the identity, else decoded anew.
func encode[T any](s *sealer, limit int, v T) (env []byte, seen T, err error) {
	return encodeAt(s, limit, &v)
}

// encodeAt is encode for a value that stands somewhere already. It does not
// change it.
func encodeAt[T any](s *sealer, limit int, v *T) (env []byte, seen T, err error) {
	if err := s.sealable(); err != nil {
		return nil, seen, err
	}
	t := reflect.TypeFor[T]()
	if t.Size() == 0 && t.Kind() == reflect.Struct {
		return nil, *v, nil // no result: nothing to keep
	}
	// By its address, so that an int in an interface is not taken for one.
	if n, ok := any(v).(*int); ok && s.plainJSON {
		// The most common small result, without reflection.
		return envelope.SealInt(intPrefix, int64(*n)), *v, nil
	}
	info := s.infoOf(t)
	data, err := s.encoded(info, *v, limit)
	if err != nil {
		return nil, seen, err
	}
	env = envelope.Seal(s.prefixOf(info), data)
	if s.plainJSON && info.exact && !(info.exactText && bytes.Contains(data, []byte(`\ufffd`))) {
		return env, *v, nil
	}
	if err := unmarshal(s.reader.own, info, data, &seen); err != nil {
		return nil, seen, fmt.Errorf("it is encoded but cannot be decoded again: %w", err)
	}
	return env, seen, nil
}

// encodeAny is encode for a value whose static type is not known, such as that of
// a signal.
func encodeAny(s *sealer, limit int, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	if err := s.sealable(); err != nil {
		return nil, err
	}
	info := s.infoOf(reflect.TypeOf(v))
	data, err := s.encoded(info, v, limit)
	if err != nil {
		return nil, err
	}
	return envelope.Seal(s.prefixOf(info), data), nil
}

// encoded returns what the codec makes of v, unless that is too large.
func (s *sealer) encoded(info *typeInfo, v any, limit int) ([]byte, error) {
	data, err := s.marshal(info, v)
	if err != nil {
		return nil, fmt.Errorf("the codec %s refuses it: %w", s.codecName, s.unquoted(err))
	}
	if len(data) > limit {
		return nil, &PayloadSizeError{Size: len(data), Limit: limit}
	}
	return data, nil
}

// marshal is Codec.Encode, guarded where that calls code of the user's.
func (s *sealer) marshal(info *typeInfo, v any) (data []byte, err error) {
	if s.plainJSON && !info.ownEncode {
		return s.codec.Encode(v)
	}
	if fault := guard.Call(func() { data, err = s.codec.Encode(v) }); fault != nil {
		return nil, fault
	}
	return data, err
}

// unmarshal is Codec.Decode, likewise. What v points to is of the type info
// describes, or of an earlier version of it. With a discreetCodec its error does not
// say what is in data.
func unmarshal(codec Codec, info *typeInfo, data []byte, v any) (err error) {
	hide := func(err error) error { return err }
	if c, ok := codec.(discreetCodec); ok {
		codec, hide = c.Codec, unquoted
	}
	own, plain := codec.(jsonCodec)
	if plain && !info.ownDecode {
		err = codec.Decode(data, v)
	} else if fault := guard.Call(func() { err = codec.Decode(data, v) }); fault != nil {
		return hide(fault)
	}
	if err != nil && own.strict && strings.HasPrefix(err.Error(), unknownField) {
		return err // the name of a field, for a test
	}
	return hide(err)
}

// discreetCodec is the codec of an engine that encrypts.
type discreetCodec struct{ Codec }

// A reader decodes values. Its errors do not quote them where they are encrypted. Where
// they are not, the text of an error tells no more than the store does, and whoever
// mends the run needs it. All that reads or encodes values holds to this one rule:
// through a reader's codecs, sealer.unquoted or typeDefs.unquoted.
type reader struct {
	secret    bool
	own, json Codec // the engine's, and JSON, which every engine reads
}

func newReader(own Codec, secret bool) reader {
	r := reader{secret: secret, own: own, json: jsonCodec{}}
	if secret {
		r.own, r.json = discreetCodec{r.own}, discreetCodec{r.json}
	}
	return r
}

// unquoted is err without what it may quote of a value, where values are encrypted.
func (s *sealer) unquoted(err error) error {
	if !s.reader.secret {
		return err
	}
	return unquoted(err)
}

// unquoted is sealer.unquoted for values that are raised.
func (ts *typeDefs) unquoted(err error) error {
	if !ts.secret {
		return err
	}
	return unquoted(err)
}

// unknownField is how encoding/json begins to say that there is no place for a field.
const unknownField = "json: unknown field "

// An unquotedError stands for one that a codec, or a method of the user's that a codec
// calls, has made of a value. Such an error may quote the value (a time.ParseError
// does), which is encrypted where it is kept, and its text goes into the history, the
// log and answers. So the text of an unquotedError has types and names of fields alone; the
// other one is there for errors.As, in the memory of this process.
type unquotedError struct {
	text string
	err  error
}

func unquoted(err error) error {
	if err == nil {
		return nil
	}
	return &unquotedError{text: withoutValue(err), err: err}
}

func (e *unquotedError) Error() string { return e.text }
func (e *unquotedError) Unwrap() error { return e.err }

// withoutValue is the text of an error as far as no value can be in it.
func withoutValue(err error) string {
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		kind, _, _ := strings.Cut(e.Value, " ") // "number 300"
		if !slices.Contains([]string{"object", "array", "string", "number", "bool", "null"}, kind) {
			kind = "value"
		}
		of := *e
		of.Value = kind
		return of.Error()
	case *json.SyntaxError:
		return fmt.Sprintf("it is no valid JSON from byte %d on", e.Offset)
	case *json.MarshalerError:
		return fmt.Sprintf("json: the method of %s that encodes it fails: %s", e.Type, withoutValue(e.Err))
	case *json.UnsupportedTypeError, *json.UnsupportedValueError, *json.InvalidUnmarshalError: // NaN, a cycle
		return err.Error()
	case *PanicError:
		return "the code that was given the value has panicked; what it said is not told, since it may quote the value"
	case *unquotedError:
		return e.text
	}
	if err == ErrGoexit || err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // the values, not what wraps them
		return err.Error()
	}
	return fmt.Sprintf("the code that was given the value returned a %T; what it said is not told, since it may quote the value", err)
}

func (s *sealer) prefixOf(i *typeInfo) string {
	if s.plainJSON {
		return i.prefix
	}
	return i.header(s.codecName)
}

// header returns the beginning of the envelopes of a type with a codec.
func (i *typeInfo) header(codec string) string {
	return (&envelope.Envelope{Codec: codec, Type: i.name, TypeVersion: i.version, Within: i.within}).Header()
}

// PayloadSizeError says that a value is too large to be kept. Nothing of it was
// written.
type PayloadSizeError struct {
	Size  int // bytes that the codec made of it
	Limit int // of the engine: Options.MaxPayload, or what the store takes
}

func (e *PayloadSizeError) Error() string {
	return fmt.Sprintf("it takes %d bytes and the limit is %d: keep it elsewhere and record a reference", e.Size, e.Limit)
}

// Is matches store.ErrTooLarge.
func (e *PayloadSizeError) Is(target error) bool { return target == store.ErrTooLarge }

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

// decode reads an envelope that stands at p into v, a pointer. An empty one
// leaves v as it is. recorded is the type in the envelope, for messages.
func (s *sealer) decode(p place, env []byte, v any) (recorded string, err error) {
	if len(env) == 0 {
		return "", nil
	}
	open, err := s.open(p, env)
	if err == nil {
		err = s.decodeOpen(&open, v)
	}
	if recorded = open.Type; open.TypeVersion > 1 {
		recorded += "@" + strconv.Itoa(open.TypeVersion)
	}
	return recorded, err
}

// codecOf returns the codec of this name: the engine's, or JSON, which every
// engine reads.
func (s *sealer) codecOf(name string) (Codec, error) {
	switch name {
	case s.codecName:
		return s.reader.own, nil
	case jsonCodec{}.Name():
		return s.reader.json, nil
	}
	return nil, fmt.Errorf("%w %q: open the engine with Options.Codec set to it", errNoCodec, name)
}

// ownCode reports whether encoding/json calls methods of the user's when it
// encodes a value of type t, or decodes into one. Types of the standard library
// are trusted. What an interface holds is not known when it is encoded; JSON
// decodes values of its own into it.
func ownCode(t reflect.Type, seen map[reflect.Type]bool) (encoding, decoding bool) {
	if seen[t] || trusted(t) {
		return false, false
	}
	seen[t] = true
	for _, own := range []reflect.Type{jsonMarshaler, jsonUnmarshaler, textMarshaler, textUnmarshaler} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return true, true
		}
	}
	look := func(inner reflect.Type) {
		e, d := ownCode(inner, seen)
		encoding, decoding = encoding || e, decoding || d
	}
	switch t.Kind() {
	case reflect.Interface:
		return true, t.NumMethod() > 0
	case reflect.Pointer, reflect.Slice, reflect.Array:
		look(t.Elem())
	case reflect.Map:
		look(t.Key())
		look(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() || f.Anonymous {
				look(f.Type)
			}
		}
	}
	return encoding, decoding
}

// trusted reports whether t is declared in a package of the standard library
// whose types have methods that encoding/json calls.
func trusted(t reflect.Type) bool {
	root, _, _ := strings.Cut(t.PkgPath(), "/")
	switch root {
	case "time", "math", "net", "encoding", "regexp", "log", "crypto":
		return t.Kind() != reflect.Interface
	}
	return false
}
