package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// fields are the values that some fields of a struct should have.
type fields map[string]any

func (f fields) difference(got any) string {
	rv := reflect.Indirect(reflect.ValueOf(got))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if d := differ(rv.Type().Name()+"."+name, reflect.ValueOf(f[name]), rv.FieldByName(name)); d != "" {
			return d
		}
	}
	return ""
}

// difference describes where got first differs from want; empty if nowhere. For
// example "Run.Owner is "b", want "a"", or "[2].Payload differs at byte 7".
func difference(want, got any) string {
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	root := "the value"
	if g.IsValid() && reflect.Indirect(g).Kind() == reflect.Struct {
		root = reflect.Indirect(g).Type().Name()
	}
	return differ(root, w, g)
}

func differ(at string, want, got reflect.Value) string {
	is := func() string { return fmt.Sprintf("%s is %s, want %s", at, showValue(got), showValue(want)) }
	switch {
	case !want.IsValid() || !got.IsValid():
		if want.IsValid() != got.IsValid() {
			return is()
		}
		return ""
	case want.Type() != got.Type():
		return fmt.Sprintf("%s is a %s, want a %s", at, got.Type(), want.Type())
	}
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface:
		if want.IsNil() || got.IsNil() {
			if want.IsNil() != got.IsNil() {
				return is()
			}
			return ""
		}
		return differ(at, want.Elem(), got.Elem())
	case reflect.Struct:
		for i := range want.NumField() {
			if d := differ(at+"."+want.Type().Field(i).Name, want.Field(i), got.Field(i)); d != "" {
				return d
			}
		}
	case reflect.Slice:
		if want.Type().Elem().Kind() == reflect.Uint8 {
			return differBytes(at, want.Bytes(), got.Bytes())
		}
		return differLists(at, want, got)
	case reflect.Array:
		if !reflect.DeepEqual(want.Interface(), got.Interface()) {
			return is()
		}
	case reflect.Map:
		return differMaps(at, want, got)
	default:
		if !want.Equal(got) {
			return is()
		}
	}
	return ""
}

func differBytes(at string, want, got []byte) string {
	if bytes.Equal(want, got) {
		return ""
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	return fmt.Sprintf("%s has %d bytes, want %d, and differs from byte %d on: %s, want %s", at, len(got), len(want), i, quote(got[i:]), quote(want[i:]))
}

func differLists(at string, want, got reflect.Value) string {
	for i := range min(want.Len(), got.Len()) {
		if d := differ(fmt.Sprintf("%s[%d]", at, i), want.Index(i), got.Index(i)); d != "" {
			if want.Len() != got.Len() {
				d += fmt.Sprintf(" (it has %d elements, want %d)", got.Len(), want.Len())
			}
			return d
		}
	}
	switch {
	case want.Len() > got.Len():
		return fmt.Sprintf("%s has %d elements, want %d: the first that is missing is %s", at, got.Len(), want.Len(), showValue(want.Index(got.Len())))
	case want.Len() < got.Len():
		return fmt.Sprintf("%s has %d elements, want %d: the first too many is %s", at, got.Len(), want.Len(), showValue(got.Index(want.Len())))
	}
	return ""
}

func differMaps(at string, want, got reflect.Value) string {
	for _, m := range []reflect.Value{want, got} {
		keys := m.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			w, g := want.MapIndex(k), got.MapIndex(k)
			name := fmt.Sprintf("%s[%q]", at, fmt.Sprint(k))
			switch {
			case !g.IsValid():
				return fmt.Sprintf("%s is missing, want %s", name, showValue(w))
			case !w.IsValid():
				return fmt.Sprintf("%s is %s and should not be there", name, showValue(g))
			}
			if d := differ(name, w, g); d != "" {
				return d
			}
		}
	}
	return ""
}

func show(v any) string { return showValue(reflect.ValueOf(v)) }

// showValue shows a value to people: for a struct the fields that are set, with their
// names.
func showValue(v reflect.Value) string {
	if !v.IsValid() {
		return "nothing"
	}
	if t, ok := v.Interface().(store.Time); ok {
		if t == 0 {
			return "0 (not set)"
		}
		return strconv.FormatInt(int64(t), 10)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return showValue(v.Elem())
	case reflect.String:
		return quote([]byte(v.String()))
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && f.CanInterface() {
				parts = append(parts, v.Type().Field(i).Name+": "+showValue(f))
			}
		}
		return v.Type().Name() + "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return quote(v.Bytes())
		}
		var parts []string
		for i := range v.Len() {
			if i == shown {
				parts = append(parts, fmt.Sprintf("… %d more", v.Len()-shown))
				break
			}
			parts = append(parts, showValue(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return fmt.Sprint(v.Interface())
	}
}

// How much of a list and of a text is shown.
const (
	shown      = 10
	shownBytes = 80
)

func quote(b []byte) string {
	if len(b) > shownBytes {
		return fmt.Sprintf("%q… (%d bytes)", b[:shownBytes], len(b))
	}
	return fmt.Sprintf("%q", b)
}
