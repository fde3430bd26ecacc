package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// A Fingerprint distinguishes a value from others. The zero Fingerprint belongs to no
// value.
type Fingerprint struct {
	// Hash is what is recorded.
	Hash string
	// before is the hash as recorded before times were hashed in UTC; it equals Hash if
	// the value holds no times.
	before string
}

// Fingerprint returns a hash of size bytes of the encoding of a value of type t. It is
// marked with the version of the type and with the codec, because hashes with different
// ones do not show whether the value is the same.
func (s *Sealer) Fingerprint(v any, t reflect.Type, size int) (Fingerprint, error) {
	info := s.infoOf(t)
	encoded, err := s.marshal(info, v)
	if err != nil {
		return Fingerprint{}, s.Unquoted(err)
	}
	mark := ""
	if !s.plainJSON {
		mark = s.codecName + ":"
	}
	for _, d := range slices.Backward(info.parts) {
		if d != info.def && d.version > 1 {
			mark += d.name + "@" + strconv.Itoa(d.version) + ":"
		}
	}
	if info.version > 1 {
		mark += strconv.Itoa(info.version) + ":"
	}
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:size])
	}
	f := Fingerprint{before: mark + hash(encoded)}
	f.Hash = f.before
	if !info.times {
		return f, nil
	}
	if !s.plainJSON {
		if fault := guard.Call(func() { encoded, err = json.Marshal(v) }); fault != nil || err != nil {
			return f, nil
		}
	}
	f.Hash = utcMark + mark + hash(inUTC(encoded))
	return f, nil
}

// utcMark precedes the hash of a value whose times were taken in UTC.
const utcMark = "utc:"

// Differs reports whether a recorded hash certainly belongs to another value.
func (f Fingerprint) Differs(recorded string) bool {
	mark := func(s string) string { return s[:strings.LastIndexByte(s, ':')+1] }
	have := f.Hash
	if !strings.HasPrefix(recorded, utcMark) {
		have = f.before
	}
	return recorded != have && mark(recorded) == mark(have)
}

// mayHoldTimes reports whether a value of t may hold times: an interface may.
func mayHoldTimes(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == reflect.TypeFor[time.Time]() || t.Kind() == reflect.Interface {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map:
		return mayHoldTimes(t.Key(), seen) || mayHoldTimes(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mayHoldTimes(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if mayHoldTimes(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// inUTC returns JSON with the times in it in UTC, so that a value is the same in every
// zone. It is only for comparing: a text that looks like a time counts as one.
func inUTC(data []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(data) && data[end] != '"' {
			if data[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(data) {
			break
		}
		text := data[i+1 : end]
		if len(text) > len("2006-01-02T15:04:05") && text[4] == '-' && text[10] == 'T' && text[len(text)-1] != 'Z' {
			if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
				out = append(append(out, data[done:i+1]...), at.UTC().Format(time.RFC3339Nano)...)
				done = end
			}
		}
		i = end
	}
	if out == nil {
		return data
	}
	return append(out, data[done:]...)
}

// InputHash returns a hash that distinguishes inputs of a workflow: that of the
// encoding, without the names of types, which may change.
func InputHash(env []byte) (h [16]byte) {
	if open, err := envelope.Open(env); err == nil {
		env = open.Payload
	}
	sum := sha256.Sum256(env)
	copy(h[:], sum[:])
	return h
}

// inputHash is InputHash for comparing an input, of type t, with one that was encoded
// elsewhere.
func (s *Sealer) inputHash(t reflect.Type, env []byte) [16]byte {
	open, err := envelope.Open(env)
	if err != nil || !s.infoOf(t).times {
		return InputHash(env)
	}
	data := open.Payload
	if open.Codec != (JSON{}).Name() {
		v := reflect.New(t)
		codec, err := s.codecOf(open.Codec)
		if err == nil {
			err = unmarshal(codec, s.infoOf(t), open.Payload, v.Interface())
		}
		fault := err
		if err == nil {
			fault = guard.Call(func() { data, err = json.Marshal(v.Interface()) })
		}
		if fault != nil || err != nil {
			return InputHash(env)
		}
	}
	return InputHash(inUTC(data))
}

// EncodesAlike reports whether equal values of type t always have the same encoding,
// which then depends on no type version, codec or time zone.
func (s *Sealer) EncodesAlike(t reflect.Type) bool {
	info := s.infoOf(t)
	return s.plainJSON && info.version < 2 && len(info.parts) == 0 && !info.times
}

// CreatedWith reports whether the first event of a run holds this input, of type t,
// once that is upgraded and encoded as today.
func (s *Sealer) CreatedWith(id string, ev *store.Event, t reflect.Type, input []byte) bool {
	if t == nil || ev.Type != store.WorkflowCreated {
		return false
	}
	v := reflect.New(t)
	if _, err := s.Decode(PlaceOf(id, ev), ev.Payload, v.Interface()); err != nil {
		return false
	}
	raised, err := s.EncodeAny(math.MaxInt, v.Elem().Interface())
	return err == nil && s.inputHash(t, raised) == s.inputHash(t, input)
}

// PlainInput hashes the input of a run if it is stored in clear; ok is false if it is
// encrypted.
func PlainInput(_ string, ev *store.Event) (hash [16]byte, ok bool) {
	if len(ev.Payload) > 0 && !envelope.IsPlain(ev.Payload) {
		return hash, false
	}
	return InputHash(ev.Payload), true
}
