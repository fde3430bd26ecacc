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

// A Fingerprint tells a value from others. The zero Fingerprint is that of no value.
type Fingerprint struct {
	// Hash is what is recorded.
	Hash string
	// before is what was recorded before times were hashed in UTC; it is Hash where the
	// value holds no times.
	before string
}

// Fingerprint returns the hash, of size bytes, of a value of type t: of what the codec
// makes of it. It is marked with the version of its type and the codec, since hashes of
// different ones do not say whether the value is the same.
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

// utcMark stands before the hash of a value whose times were taken in UTC.
const utcMark = "utc:"

// Differs reports whether a recorded hash is known to be that of another value.
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
// zone. It is for comparing: a text that reads like a time is taken for one.
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

// InputHash returns what tells two inputs of a workflow apart: their encoding,
// without the names of types, which may change.
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

// EncodesAlike reports whether equal values of type t have one encoding: it depends on
// no version of a type, no codec and no time zone.
func (s *Sealer) EncodesAlike(t reflect.Type) bool {
	info := s.infoOf(t)
	return s.plainJSON && info.version < 2 && len(info.parts) == 0 && !info.times
}

// CreatedWith reports whether the first event of a run holds this input, of type t,
// once it is raised and encoded as it is now.
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

// PlainInput hashes the input of a run where it is in clear; ok is false for one that is
// encrypted.
func PlainInput(_ string, ev *store.Event) (hash [16]byte, ok bool) {
	if len(ev.Payload) > 0 && !envelope.IsPlain(ev.Payload) {
		return hash, false
	}
	return InputHash(ev.Payload), true
}
