package payload

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/flat"
)

// typeInfo caches what is known about a type.
type typeInfo struct {
	name    string // in an envelope
	version int
	start   envelope.Start // of its envelope with JSON
	// def is the registered type that it is, or is built from; shape says how.
	def   *TypeDef
	shape string
	// parts lists the registered types it contains; within names them in a header.
	parts  []*TypeDef
	within string
	// exact: a value of this type decodes from its JSON to itself, so a live
	// value need not be decoded. exactText: only if every string is UTF-8.
	exact, exactText bool
	// flat writes its JSON without encoding/json; nil: it is left to that.
	flat *flat.Type
	room *atomic.Int64 // bytes of the longest small one so far
	// times: it may hold times, whose encoding includes their zone.
	times bool
	// ownEncode, ownDecode: JSON calls user methods on it.
	ownEncode, ownDecode bool
	// hidden says that JSON keeps nothing of it; see flat.Hidden.
	hidden error
	// inside: it is an interface, and what is kept is for the type within to say.
	inside bool
}

// header returns the beginning of the envelopes of a type with a codec.
func (i *typeInfo) header(codec string) string {
	return (&envelope.Envelope{Codec: codec, Type: i.name, TypeVersion: i.version, Within: i.within}).Header()
}

var typeInfos sync.Map // reflect.Type -> *typeInfo

func infoOf(t reflect.Type) *typeInfo {
	if i, ok := typeInfos.Load(t); ok {
		return i.(*typeInfo)
	}
	i := &typeInfo{name: typeName(t), version: 1}
	i.start = envelope.StartOf(envelope.Prefix("json", i.name, 1))
	i.exact, i.exactText = roundTripsExactly(t, 0)
	if i.exact {
		i.flat, i.room = flat.Of(t), new(atomic.Int64)
	}
	i.times = mayHoldTimes(t, map[reflect.Type]bool{})
	i.ownEncode, i.ownDecode = ownCode(t, map[reflect.Type]bool{})
	i.hidden, i.inside = flat.Hidden(t), t.Kind() == reflect.Interface
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
	jsonNumber      = reflect.TypeFor[json.Number]()
)

// roundTripsExactly reports whether encoding/json is provably the identity for
// values of t, and whether that needs their strings to be valid UTF-8. Whatever
// is not plainly so (pointers, slices, maps, own methods, unexported or
// unkept fields) is not. A field may have another name in JSON, and may be left out if
// it is empty: it decodes to what it was.
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
	case reflect.Float32, reflect.Float64:
		return true, false // the shortest digits that make the same number are written
	case reflect.String:
		return t != jsonNumber, true
	case reflect.Struct:
		if depth > 4 {
			return false, false
		}
		for f := range t.Fields() {
			if _, plain := flat.Name(&f); !plain {
				return false, false
			}
			e, s := roundTripsExactly(f.Type, depth+1)
			if !e {
				return false, false
			}
			text = text || s
		}
		// Names that differ only in case decode into one another.
		return !foldedTwins(t), text
	}
	return false, false
}

func foldedTwins(t reflect.Type) bool {
	seen := map[string]bool{}
	for f := range t.Fields() {
		name, _ := flat.Name(&f)
		folded := string(bytes.ToLower([]byte(name)))
		if seen[folded] {
			return true
		}
		seen[folded] = true
	}
	return false
}

// ownCode reports whether encoding/json calls user methods when it encodes a value of
// type t, or decodes into one. Types of the standard library are trusted. The content of
// an interface is unknown when it is encoded; JSON decodes its own types into it.
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
