package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/envelope"
)

// A value may contain registered types: in fields, elements and behind pointers. The
// header of its payload names them with their versions, so that a later program knows
// which of them to raise, and a program that has not registered one does not misread
// it. A type that a header does not name was recorded before it was registered, and
// counts as version 1.
//
// Earlier versions are upgraded in the JSON, before the whole is decoded: each
// registered value is decoded as its old type, upgraded by its upcasters, and encoded as
// its current type. So the types around it stay as they are, with their own methods and
// tags.

// UnregisteredTypeError says that a value was recorded under a registered name, and that
// this program has no type of that name in that position. The type may have changed
// since it was registered, so reading the value into whatever type is there could lose
// data.
type UnregisteredTypeError struct {
	Type    string // registered name in the checkpoint
	Version int
	Wanted  string // Go type that the code asks for
}

func (e *UnregisteredTypeError) Error() string {
	return fmt.Sprintf("it holds version %d of the registered type %s, and %s is not registered under that name: add it to Options.Types, or run a program that has it there, then resume",
		e.Version, e.Type, e.Wanted)
}

// partsIn returns the registered types that values of t contain, in fields and elements
// at any depth, sorted by name; t itself is included only if it contains itself.
func (ts *Types) partsIn(t reflect.Type) []*TypeDef {
	set := map[*TypeDef]bool{}
	ts.collect(t, set, map[reflect.Type]bool{})
	parts := make([]*TypeDef, 0, len(set))
	for d := range set {
		parts = append(parts, d)
	}
	slices.SortFunc(parts, func(a, b *TypeDef) int { return strings.Compare(a.name, b.name) })
	return parts
}

func (ts *Types) collect(t reflect.Type, set map[*TypeDef]bool, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	each := func(t reflect.Type) {
		if d := ts.byType[t]; d != nil {
			set[d] = true
		}
		ts.collect(t, set, seen)
	}
	switch t.Kind() {
	case reflect.Map:
		each(t.Key())
		each(t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.Array:
		each(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			// A type with its own methods may store fields that no codec sees.
			if f.IsExported() && f.Tag.Get("json") != "-" || f.Anonymous || ownJSON(t) {
				each(f.Type)
			}
		}
	}
}

// ownJSON reports whether a type decodes its own JSON.
func ownJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// withinOf returns the header field that names the registered types in a value.
func (ts *Types) withinOf(i *typeInfo) string {
	var parts []envelope.Part
	for _, d := range i.parts {
		if d != i.def {
			parts = append(parts, envelope.Part{Name: d.name, Version: d.version})
		}
	}
	if i.def != nil && i.version == 1 && !surelyRegistered(i.name) {
		parts = append([]envelope.Part{{Name: i.def.name, Version: 1}}, parts...)
	}
	within := envelope.WithinOf(parts)
	if len(within) > maxWithin {
		// An unnamed type counts as version 1.
		parts = slices.DeleteFunc(parts, func(p envelope.Part) bool { return p.Version == 1 })
		within = envelope.WithinOf(parts)
	}
	return within
}

// maxWithin bounds the names of the types in a value, in bytes, so that the whole header
// fits into envelope.MaxHeader.
const maxWithin = 512

// surelyRegistered reports whether a recorded type has a name that cannot be a Go
// type's.
func surelyRegistered(recorded string) bool {
	name := baseName(recorded)
	return name != "" && !strings.ContainsAny(name, ". {}()[]*") && !slices.Contains(plainNames, name)
}

// plainNames lists the Go types without a package.
var plainNames = []string{"bool", "string", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr",
	"byte", "rune", "float32", "float64", "complex64", "complex128", "error", "any"}

// baseName returns the name of the element type of a recorded pointer, slice, array or
// map.
func baseName(recorded string) string {
	for {
		switch {
		case strings.HasPrefix(recorded, "*"):
			recorded = recorded[1:]
		case strings.HasPrefix(recorded, "map["), strings.HasPrefix(recorded, "["):
			depth, end := 0, -1
			for i, c := range recorded {
				if c == '[' {
					depth++
				} else if c == ']' {
					if depth--; depth == 0 {
						end = i
						break
					}
				}
			}
			if end < 0 {
				return recorded
			}
			recorded = recorded[end+1:]
		default:
			return recorded
		}
	}
}

// named returns the type that is registered under a name, or was recorded under it
// earlier; nil: none.
func (ts *Types) named(name string) *TypeDef {
	if ts == nil {
		return nil
	}
	for _, d := range ts.byType {
		if d.name == name || d.typ.String() == name || slices.Contains(d.was, name) {
			return d
		}
	}
	return nil
}

// recordedParts returns the registered types of a payload: those that its header names,
// and its own.
func recordedParts(open *envelope.Envelope) []envelope.Part {
	parts := open.Parts()
	if surelyRegistered(open.Type) || open.TypeVersion > 1 {
		parts = append(parts, envelope.Part{Name: baseName(open.Type), Version: open.TypeVersion})
	}
	return parts
}

// A raising holds what must be upgraded in a payload before it can be decoded as its
// current type.
type raising struct {
	types *Types
	from  map[*TypeDef]recordedVersion
}

type recordedVersion struct {
	version int
	// unnamed: the header does not name the type. A program that did not name contained
	// types may have written it; then the version is inferred from the value.
	unnamed bool
}

// raising returns what must be upgraded in a payload that is to be decoded into t.
func (ts *Types) raising(open *envelope.Envelope, t reflect.Type, info *typeInfo) (*raising, error) {
	r := &raising{types: ts, from: map[*TypeDef]recordedVersion{}}
	named := map[*TypeDef]bool{}
	for _, p := range recordedParts(open) {
		d := ts.named(p.Name)
		switch {
		case d == nil && p.Version > 1:
			return nil, &FutureVersionError{Type: p.Name, Have: p.Version, Know: 1}
		case d == nil, p.Name == baseName(open.Type) && info.def != d && !slices.Contains(info.parts, d):
			return nil, &UnregisteredTypeError{Type: p.Name, Version: p.Version, Wanted: t.String()}
		case p.Version > d.version:
			return nil, &FutureVersionError{Type: p.Name, Have: p.Version, Know: d.version}
		}
		named[d] = true
		if p.Version < d.version {
			r.from[d] = recordedVersion{version: p.Version}
		}
	}
	if untypedName(open.Type) {
		return r, nil // in the current version, whichever program wrote it
	}
	for _, d := range info.parts {
		if !named[d] && d != info.def && d.version > 1 {
			r.from[d] = recordedVersion{version: 1, unnamed: true}
		}
	}
	return r, nil
}

// concerns reports whether anything must be upgraded in values of t.
func (r *raising) concerns(t reflect.Type) bool {
	if len(r.from) == 0 {
		return false
	}
	if _, ok := r.from[r.types.byType[t]]; ok {
		return true
	}
	return slices.ContainsFunc(r.types.info(t).parts, func(d *TypeDef) bool { _, ok := r.from[d]; return ok })
}

// json returns the JSON of a value of t with everything in it upgraded.
func (r *raising) json(data []byte, t reflect.Type) ([]byte, error) {
	if !r.concerns(t) || string(bytes.TrimSpace(data)) == "null" {
		return data, nil
	}
	if d := r.types.byType[t]; d != nil {
		if was, ok := r.from[d]; ok {
			if from := d.fitting(data, was); from < d.version {
				return r.raised(data, d, from)
			}
		}
	}
	if t.Kind() != reflect.Pointer && ownJSON(t) {
		return nil, fmt.Errorf("%s reads its JSON itself, so the registered types in it cannot be raised: register %s, too", t, t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.json(data, t.Elem())
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, mismatch(r.types.unquoted(err))
		}
		for i := range list {
			elem, err := r.json(list[i], t.Elem())
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			list[i] = elem
		}
		return json.Marshal(list)
	case reflect.Map:
		if r.concerns(t.Key()) {
			return nil, fmt.Errorf("the keys of %s are of a registered type of an earlier version, and keys cannot be raised", t)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, mismatch(r.types.unquoted(err))
		}
		for k := range m {
			elem, err := r.json(m[k], t.Elem())
			if err != nil {
				return nil, fmt.Errorf("an element: %w", err) // its key is user data
			}
			m[k] = elem
		}
		return json.Marshal(m)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, mismatch(r.types.unquoted(err))
	}
	if err := r.fields(m, t); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// fields upgrades what the fields of a struct contain, in its JSON object.
func (r *raising) fields(m map[string]json.RawMessage, t reflect.Type) error {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous || !r.concerns(f.Type) {
			continue
		}
		if f.Anonymous && name == "" {
			if err := r.embedded(m, f); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		key, ok := keyOf(m, name)
		if !ok {
			continue
		}
		if slices.Contains(strings.Split(options, ","), "string") {
			return fmt.Errorf("field %s is kept as a string, so it cannot be raised", f.Name)
		}
		value, err := r.json(m[key], f.Type)
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		m[key] = value
	}
	return nil
}

// embedded upgrades an embedded struct, whose fields are mixed with those around it.
func (r *raising) embedded(m map[string]json.RawMessage, f reflect.StructField) error {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		if key, ok := keyOf(m, f.Name); ok {
			value, err := r.json(m[key], f.Type)
			if err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
			m[key] = value
		}
		return nil
	}
	d := r.types.byType[t]
	was, older := r.from[d]
	if d == nil || !older {
		return r.fields(m, t)
	}
	whole, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if f.Type.Kind() == reflect.Pointer {
		// A nil one has no fields.
		v := reflect.New(d.ups[was.version-1].old)
		if json.Unmarshal(whole, v.Interface()) == nil && v.Elem().IsZero() {
			return nil
		}
	}
	// Strict decoding is no help here: it would reject the fields around the struct.
	raised, err := r.raised(whole, d, was.version)
	if err != nil {
		return fmt.Errorf("field %s: %w", f.Name, err)
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(raised, &own); err != nil {
		return fmt.Errorf("field %s: it is no object any more: %w", f.Name, r.types.unquoted(err))
	}
	for k, v := range own {
		m[k] = v
	}
	return nil
}

// keyOf finds the member of an object that encoding/json would use for a field.
func keyOf(m map[string]json.RawMessage, name string) (string, bool) {
	if _, ok := m[name]; ok {
		return name, true
	}
	for k := range m {
		if strings.EqualFold(k, name) {
			return k, true
		}
	}
	return "", false
}

// raised returns the JSON of the current type for that of an earlier version.
func (r *raising) raised(data []byte, d *TypeDef, version int) ([]byte, error) {
	old := d.ups[version-1].old
	data, err := r.json(data, old)
	if err != nil {
		return nil, err
	}
	from := reflect.New(old)
	if err := json.Unmarshal(data, from.Interface()); err != nil {
		return nil, fmt.Errorf("as version %d of %s, %s: %w", version, d.name, old, r.types.unquoted(err))
	}
	now := reflect.New(d.typ)
	if err := d.upcast(from.Elem(), version, now.Elem()); err != nil {
		return nil, err
	}
	data, err = json.Marshal(now.Interface())
	if err != nil {
		return nil, fmt.Errorf("what the upcasters of %s made cannot be encoded: %w", d.name, r.types.unquoted(err))
	}
	return data, nil
}

// fitting returns the version of a value. A value whose header does not name it has
// version 1, unless it has fields that only the current type has: then a program wrote
// it that did not name contained types.
func (d *TypeDef) fitting(data []byte, was recordedVersion) int {
	if was.unnamed && !fitsStrictly(data, d.ups[0].old) && fitsStrictly(data, d.typ) {
		return d.version
	}
	return was.version
}

// fitsAs returns in which version of a registered type the JSON of a value of t is
// written; t is that type or is built from it. It is the recorded version if the JSON
// fits that, otherwise the current one; ok is false if it fits neither.
func (d *TypeDef) fitsAs(data []byte, t reflect.Type, recorded int) (version int, ok bool) {
	if recorded < d.version && fitsStrictly(data, d.withOld(t, d.ups[recorded-1].old)) {
		return recorded, true
	}
	return d.version, fitsStrictly(data, t)
}

// shaped returns the type for a recorded name like "[]order" or "map[string]order"; nil
// for any other name.
func (d *TypeDef) shaped(recorded string) reflect.Type {
	shape := strings.TrimSuffix(strings.ReplaceAll(recorded, "*", ""), baseName(recorded))
	t := d.typ
	for shape != "" {
		switch {
		case strings.HasSuffix(shape, "map[string]"):
			t, shape = reflect.MapOf(reflect.TypeFor[string](), t), strings.TrimSuffix(shape, "map[string]")
		case strings.HasSuffix(shape, "[]"):
			t, shape = reflect.SliceOf(t), strings.TrimSuffix(shape, "[]")
		default:
			return nil
		}
	}
	return t
}

// newFields returns the path of a member that the JSON has but a sample of the same kind
// lacks; empty: there is none.
func newFields(sample, data []byte, path string) string {
	var was, is any
	if json.Unmarshal(sample, &was) != nil || json.Unmarshal(data, &is) != nil {
		return path
	}
	return strange(was, is, path)
}

func strange(was, is any, path string) string {
	switch is := is.(type) {
	case map[string]any:
		m, ok := was.(map[string]any)
		if !ok {
			return ""
		}
		for _, k := range slices.Sorted(maps.Keys(is)) {
			if _, ok := m[k]; !ok {
				return path + k
			}
			if s := strange(m[k], is[k], path+k+"."); s != "" {
				return s
			}
		}
	case []any:
		list, ok := was.([]any)
		if !ok || len(list) == 0 {
			return ""
		}
		for i := range is {
			if s := strange(list[min(i, len(list)-1)], is[i], path); s != "" {
				return s
			}
		}
	}
	return ""
}

// fitsStrictly reports whether JSON decodes into a type without leftover fields.
func fitsStrictly(data []byte, t reflect.Type) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(reflect.New(t).Interface()) == nil
}

// errNotRaised: the codec has no format in which a part of a value can be upgraded.
var errNotRaised = errors.New("registered types within other types are raised in JSON only: register the type around them, too, or use durable.JSON")

// WithinError returns the field that names the registered types in a recorded error of
// type t.
func (ts *Types) WithinError(t reflect.Type) string {
	if ts == nil {
		return ""
	}
	return ts.info(t).within
}

// RaiseError returns the recorded JSON of an error of type t, upgraded for the
// registered types that within names.
func (ts *Types) RaiseError(data []byte, t reflect.Type, within string) ([]byte, error) {
	info := infoOf(t)
	if ts != nil {
		info = ts.info(t)
	}
	r, err := ts.raising(&envelope.Envelope{Type: info.name, TypeVersion: 1, Within: within}, t, info)
	if err != nil {
		return nil, err
	}
	return r.json(data, t)
}

// knowsVersion returns an error if a payload holds a later version of a type than this
// engine has, or a registered type that it does not have.
func (s *Sealer) knowsVersion(open *envelope.Envelope) error {
	for _, p := range recordedParts(open) {
		d := s.Types.named(p.Name)
		switch {
		case d == nil && p.Version > 1:
			return &FutureVersionError{Type: p.Name, Have: p.Version, Know: 1}
		case d == nil:
			return &UnregisteredTypeError{Type: p.Name, Version: p.Version, Wanted: "this program"}
		case p.Version > d.version:
			return &FutureVersionError{Type: p.Name, Have: p.Version, Know: d.version}
		}
	}
	return nil
}
