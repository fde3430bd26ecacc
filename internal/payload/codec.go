package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// A Codec turns values into bytes and back; see durable.Codec.
type Codec interface {
	Name() string
	Encode(v any) ([]byte, error)
	Decode(data []byte, v any) error
}

// JSON is the default codec: encoding/json. A strict one refuses a value with a field
// that the local type lacks.
type JSON struct{ Strict bool }

// NameOf returns the name of a codec, and refuses a name that a header cannot hold.
func NameOf(c Codec) (name string, err error) {
	if fault := guard.Call(func() { name = c.Name() }); fault != nil {
		return "", fmt.Errorf("durable: Options.Codec: its name cannot be had: %w: %w", fault, store.ErrInvalid)
	}
	if err := store.CheckName("codec name", name); err != nil {
		return "", err
	}
	if len(name) > 64 {
		return "", fmt.Errorf("durable: Options.Codec: the name %q is longer than 64 bytes: %w", name, store.ErrInvalid)
	}
	return name, nil
}

func (JSON) Name() string { return "json" }

func (JSON) Encode(v any) ([]byte, error) { return json.Marshal(v) }

func (c JSON) Decode(data []byte, v any) error {
	if !c.Strict {
		return json.Unmarshal(data, v)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// intStart begins the envelopes of the most common small result.
var intStart = envelope.StartOf(envelope.Prefix("json", "int", 1))

// Results is the memory for the results of one scope, which are encoded one after the other by one
// Sealer, most of them of one type. The zero value is ready for use.
type Results struct {
	Space envelope.Space
	of    any // a nil pointer to the last type
	info  *typeInfo
}

// Encode returns the envelope of v, whose encoding may have up to limit bytes, and the
// value as a replay will see it: v itself if the round trip is provably the identity,
// otherwise the decoded encoding. A value of an empty struct type has no envelope. The
// error is a *SizeError for a value that is too large.
func Encode[T any](s *Sealer, limit int, v T) (env []byte, seen T, err error) {
	if env, err = EncodeAt(s, limit, &v, nil); err != nil {
		return nil, seen, err
	}
	return env, v, nil
}

// EncodeAt is Encode for a value behind a pointer, which it makes what a replay will see. r may be
// nil.
func EncodeAt[T any](s *Sealer, limit int, v *T, r *Results) (env []byte, err error) {
	if err := s.Ready(); err != nil {
		return nil, err
	}
	if r == nil {
		r = &Results{}
	}
	// By its address, so that an int in an interface does not match.
	if n, ok := any(v).(*int); ok && s.plainJSON {
		// The most common small result, without reflection.
		return r.Space.Took(intStart.AppendInt(r.Space.Take(intStart.Len()+envelope.IntRoom), int64(*n))), nil
	}
	if of := any((*T)(nil)); r.of != of {
		t := reflect.TypeFor[T]()
		if t.Size() == 0 && t.Kind() == reflect.Struct {
			return nil, nil // no result: nothing to keep
		}
		r.of, r.info = of, s.infoOf(t)
	}
	if s.plainJSON && r.info.flat != nil {
		if env, ok := r.info.sealFlat(reflect.ValueOf(v).Elem(), limit, &r.Space); ok {
			return env, nil
		}
	}
	return encode(s, r.info, limit, v)
}

// encode is EncodeAt by the codec. It is apart because what it decodes into has memory of its own.
func encode[T any](s *Sealer, info *typeInfo, limit int, v *T) (env []byte, err error) {
	data, err := s.encoded(info, *v, limit)
	if err != nil {
		return nil, err
	}
	env = envelope.Seal(s.prefixOf(info), data)
	if s.plainJSON && info.exact && !(info.exactText && bytes.Contains(data, []byte(`\ufffd`))) {
		return env, nil
	}
	var seen T
	if err := unmarshal(s.reader.own, info, data, &seen); err != nil {
		return nil, fmt.Errorf("it is encoded but cannot be decoded again: %w", err)
	}
	*v = seen
	return env, nil
}

// sealFlat returns the envelope of v, which is plain JSON and decodes to v; ok is false if that
// is left to encoding/json, or too large.
func (i *typeInfo) sealFlat(v reflect.Value, limit int, space *envelope.Space) (env []byte, ok bool) {
	room := int(i.room.Load())
	env, ok = i.flat.Append(i.start.Begin(space.Take(i.start.Len()+envelope.SealRoom+room)), v)
	size := len(env) - i.start.Len() - envelope.SealRoom
	if !ok || size > limit {
		return nil, false
	}
	if size > room && size <= envelope.Small {
		i.room.Store(int64(size)) // so that the next one of this size is not moved
	}
	return space.Took(i.start.Finish(env)), true
}

// EncodeAny is Encode for a value whose static type is unknown, such as that of a
// signal. It does not say how a replay will see the value. nil has no envelope.
func (s *Sealer) EncodeAny(limit int, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	if err := s.Ready(); err != nil {
		return nil, err
	}
	info := s.infoOf(reflect.TypeOf(v))
	data, err := s.encoded(info, v, limit)
	if err != nil {
		return nil, err
	}
	return envelope.Seal(s.prefixOf(info), data), nil
}

// encoded returns the encoding of v, unless that is too large.
func (s *Sealer) encoded(info *typeInfo, v any, limit int) ([]byte, error) {
	hidden := info.hidden
	if info.inside && v != nil {
		hidden = infoOf(reflect.TypeOf(v)).hidden
	}
	if hidden != nil && s.plainJSON {
		return nil, hidden
	}
	data, err := s.marshal(info, v)
	if err != nil {
		return nil, fmt.Errorf("the codec %s refuses it: %w", s.codecName, s.Unquoted(err))
	}
	if len(data) > limit {
		return nil, &SizeError{Size: len(data), Limit: limit}
	}
	return data, nil
}

// marshal is Codec.Encode, guarded if that calls user code.
func (s *Sealer) marshal(info *typeInfo, v any) (data []byte, err error) {
	if s.plainJSON && !info.ownEncode {
		return s.codec.Encode(v)
	}
	if fault := guard.Call(func() { data, err = s.codec.Encode(v) }); fault != nil {
		return nil, fault
	}
	return data, err
}

// unmarshal is Codec.Decode, guarded likewise. v points to a value of the type that info
// describes, or of an earlier version of it. With a discreetCodec the error does not
// reveal the content of data.
func unmarshal(codec Codec, info *typeInfo, data []byte, v any) (err error) {
	hide := func(err error) error { return err }
	if c, ok := codec.(discreetCodec); ok {
		codec, hide = c.Codec, unquoted
	}
	own, plain := codec.(JSON)
	if plain && !info.ownDecode {
		err = codec.Decode(data, v)
	} else if fault := guard.Call(func() {
		given := data
		if !plain {
			given = bytes.Clone(data) // a value that keeps it may be changed, and the record may not
		}
		err = codec.Decode(given, v)
	}); fault != nil {
		return hide(fault)
	}
	if err != nil && own.Strict && strings.HasPrefix(err.Error(), unknownField) {
		return err // the name of a field, for a test
	}
	return hide(err)
}

// discreetCodec is the codec of an engine that encrypts.
type discreetCodec struct{ Codec }

// A reader has the codecs that decode values. If values are encrypted, errors do not
// quote them. If they are not, an error reveals no more than the store does, and the
// person who repairs the run needs its text. Everything that encodes or decodes a value
// follows this rule, through a reader's codecs, Sealer.Unquoted or Types.unquoted.
type reader struct {
	secret    bool
	own, json Codec // the engine's, and JSON, which every engine reads
}

func newReader(own Codec, secret bool) reader {
	r := reader{secret: secret, own: own, json: JSON{}}
	if secret {
		r.own, r.json = discreetCodec{r.own}, discreetCodec{r.json}
	}
	return r
}

// prefixOf returns the beginning of the envelopes of a type.
func (s *Sealer) prefixOf(i *typeInfo) string {
	if s.plainJSON {
		return i.start.Prefix()
	}
	return i.header(s.codecName)
}

// DecodeInt decodes an int, the most common small result, without reflection. It reports
// whether v points to one and the envelope holds one; if not, Decode reads it.
func DecodeInt[T any](env []byte, v *T) bool {
	n, ok := any(v).(*int)
	if !ok {
		return false
	}
	payload, ok := intStart.Open(env)
	if !ok {
		return false
	}
	i, err := strconv.Atoi(string(payload))
	*n = i
	return err == nil
}

// errNoCodec reports a checkpoint written with a codec the engine does not have.
var errNoCodec = errors.New("unknown codec")

// Decode reads the envelope at place p into v, a pointer, and upgrades values of earlier
// versions. An empty envelope leaves v as it is. recorded is the type in the envelope,
// for messages. IsMismatch classifies the error.
func (s *Sealer) Decode(p Place, env []byte, v any) (recorded string, err error) {
	if len(env) == 0 {
		return "", nil
	}
	open, err := s.Open(p, env)
	if err == nil {
		err = s.decodeOpen(&open, v)
	}
	if recorded = open.Type; open.TypeVersion > 1 {
		recorded += "@" + strconv.Itoa(open.TypeVersion)
	}
	return recorded, err
}

// DecodeOutcome is Decode for what a function has returned. Only a function without a result has left no
// envelope: where it has one now, its zero value is not what was recorded.
func (s *Sealer) DecodeOutcome(p Place, env []byte, v any) (recorded string, err error) {
	if t := reflect.TypeOf(v).Elem(); len(env) == 0 && t.Size() > 0 && !slices.Contains(nilable, t.Kind()) {
		return "struct {}", mismatch(errors.New("it was recorded without a value"))
	}
	return s.Decode(p, env, v)
}

// nilable are the kinds of which no value at all is one.
var nilable = []reflect.Kind{reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice}

// codecOf returns the codec of this name: the engine's, or JSON, which every
// engine reads.
func (s *Sealer) codecOf(name string) (Codec, error) {
	switch name {
	case s.codecName:
		return s.reader.own, nil
	case JSON{}.Name():
		return s.reader.json, nil
	}
	return nil, fmt.Errorf("%w %q: open the engine with Options.Codec set to it", errNoCodec, name)
}

// SizeError says that a value is too large to be stored. Nothing of it was written.
type SizeError struct {
	Size  int // of its encoding, in bytes
	Limit int // of the engine: Options.MaxPayload, or the store's limit
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("it takes %d bytes and the limit is %d: keep it elsewhere and record a reference", e.Size, e.Limit)
}

// Is matches store.ErrTooLarge.
func (e *SizeError) Is(target error) bool { return target == store.ErrTooLarge }
