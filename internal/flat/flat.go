// Package flat writes the JSON of flat values as encoding/json does, byte for byte, without
// its detours.
package flat

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Type writes values of one type: a boolean, a number, a string, or a struct of these and of
// such structs. It does not know everything that encoding/json does: Of returns none for other
// types, and Append refuses the values that it leaves to encoding/json.
type Type struct {
	kind   reflect.Kind
	fields []field // of a struct
}

type field struct {
	index     int
	name      string // as it is written: "name":
	omitEmpty bool   // what is zero is left out
	of        *Type
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonNumber    = reflect.TypeFor[json.Number]()
)

// Of returns nil for a type that is left to encoding/json.
func Of(t reflect.Type) *Type { return of(t, 0) }

func of(t reflect.Type, depth int) *Type {
	for _, own := range []reflect.Type{jsonMarshaler, textMarshaler} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return nil
		}
	}
	f := &Type{kind: t.Kind()}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return f
	case reflect.String:
		if t == jsonNumber {
			return nil
		}
		return f
	case reflect.Struct:
		if depth > 4 {
			return nil
		}
		return f.withFields(t, depth)
	}
	return nil
}

// withFields returns f with the fields of the struct t; nil if one is left to encoding/json.
func (f *Type) withFields(t reflect.Type, depth int) *Type {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, plain := Name(&sf)
		plain = plain && plainName(name) // one that is not from a tag too
		inner := of(sf.Type, depth+1)
		name = `"` + name + `":`
		twin := slices.ContainsFunc(f.fields, func(o field) bool { return o.name == name })
		if inner == nil || !plain || twin {
			return nil
		}
		empty := strings.HasSuffix(sf.Tag.Get("json"), ",omitempty") && inner.kind != reflect.Struct
		f.fields = append(f.fields, field{index: i, name: name, omitEmpty: empty, of: inner})
	}
	return f
}

// Name returns the name of a field in JSON. plain is false for a field that JSON may
// not keep, or not in its own form.
func Name(f *reflect.StructField) (name string, plain bool) {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	// The tag "-" leaves the field out; "-," is the name "-". No plain name is "-".
	plain = !f.Anonymous && f.IsExported() && name != "-" && plainName(name)
	if name == "" {
		name = f.Name
	}
	if option == "omitempty" {
		// A zero that is negative is left out too, and decodes to the positive one.
		return name, plain && f.Type.Kind() != reflect.Float32 && f.Type.Kind() != reflect.Float64
	}
	return name, plain && option == ""
}

// plainName reports whether encoding/json takes a name from a tag, and writes it, as it is.
func plainName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
	})
}

// Append appends the JSON of v to b; ok is false if v is left to encoding/json.
func (f *Type) Append(b []byte, v reflect.Value) (_ []byte, ok bool) {
	switch f.kind {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10), true
	case reflect.Float32:
		return appendFloat(b, v.Float(), 32)
	case reflect.Float64:
		return appendFloat(b, v.Float(), 64)
	case reflect.String:
		return appendString(b, v.String())
	}
	sep := byte('{')
	for i := range f.fields {
		field := &f.fields[i]
		value := v.Field(field.index)
		if field.omitEmpty && value.IsZero() {
			continue
		}
		b = append(append(b, sep), field.name...)
		if b, ok = field.of.Append(b, value); !ok {
			return b, false
		}
		sep = ','
	}
	if sep == '{' {
		b = append(b, '{')
	}
	return append(b, '}'), true
}

func appendFloat(b []byte, f float64, bits int) (_ []byte, ok bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return b, false
	}
	abs := math.Abs(f)
	small, large := abs < 1e-6, abs >= 1e21
	if bits == 32 {
		small, large = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if abs == 0 || !small && !large {
		return strconv.AppendFloat(b, f, 'f', -1, bits), true
	}
	b = strconv.AppendFloat(b, f, 'e', -1, bits)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 is written e-9
		b = b[:n-1]
	}
	return b, true
}

// appendString refuses text that is not valid UTF-8, which encoding/json changes.
func appendString(b []byte, s string) (_ []byte, ok bool) {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			if unescaped[c] {
				continue
			}
			b = append(b, s[done:i-1]...)
			done = i
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return b, false
		}
		i += n
		if r == '\u2028' || r == '\u2029' {
			b = append(b, s[done:i-n]...)
			b = append(b, '\\', 'u', '2', '0', '2', hex[r&15])
			done = i
		}
	}
	return append(append(b, s[done:]...), '"'), true
}

// unescaped has the ASCII characters that encoding/json writes as they are.
var unescaped = func() (as [utf8.RuneSelf]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		as[c] = strings.IndexByte("\"\\<>&", c) < 0
	}
	return as
}()
