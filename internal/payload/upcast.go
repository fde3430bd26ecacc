package payload

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
)

// FutureVersionError says that a newer program recorded a value, with a version of its
// type that this program does not know. Reading it anyway would misread it.
type FutureVersionError struct {
	Type string // name in the checkpoint
	Have int    // version in the checkpoint
	Know int    // newest version this program knows
}

func (e *FutureVersionError) Error() string {
	return fmt.Sprintf("it is version %d of %s, and version %d is the newest this program knows: run a program whose Options.Types has version %d, then resume",
		e.Have, e.Type, e.Know, e.Have)
}

// MismatchError is an error of the codec on a value of the right format and
// version: the code asks for a type other than the recorded one.
type MismatchError struct{ err error }

func (e *MismatchError) Error() string { return e.err.Error() }
func (e *MismatchError) Unwrap() error { return e.err }

func mismatch(err error) error {
	if err == nil {
		return nil
	}
	return &MismatchError{err}
}

// decodeOpen decodes an opened payload into v, a pointer. Every value that is read
// passes through here.
func (s *Sealer) decodeOpen(open *envelope.Envelope, v any) error {
	codec, err := s.codecOf(open.Codec)
	if err != nil {
		return err
	}
	target := reflect.ValueOf(v).Elem()
	info := s.infoOf(target.Type())
	plain := info.def == nil && len(info.parts) == 0
	if plain && open.Within == "" && open.TypeVersion == 1 && open.Type == info.name || untyped(target.Type()) {
		return mismatch(unmarshal(codec, info, open.Payload, v))
	}
	version := info.version
	if info.def != nil {
		if version, err = info.versionOf(open); err != nil {
			return err
		}
	}
	within, err := s.Types.raising(open, target.Type(), info)
	if err != nil {
		return err
	}
	data, now := open.Payload, target.Type()
	if version < info.version {
		now = info.def.withOld(now, info.def.ups[version-1].old)
		within.from[info.def] = recordedVersion{version: version} // in case it contains itself
	}
	if within.concerns(now) && open.Codec != (JSON{}).Name() {
		return errNotRaised
	}
	raise := func() error {
		data, err := within.json(data, now)
		switch {
		case err != nil:
			return err
		case version < info.version:
			// The type itself is upgraded last, by its own upcasters.
			return info.read(codec, data, version, target)
		}
		return mismatch(unmarshal(codec, info, data, v))
	}
	if version == info.version && !within.concerns(now) {
		return raise()
	}
	if fault := guard.Call(func() { err = raise() }); fault != nil {
		return fault
	}
	return err
}

// versionOf returns which version of the registered type a payload holds.
func (i *typeInfo) versionOf(open *envelope.Envelope) (int, error) {
	recorded := strings.ReplaceAll(open.Type, "*", "")
	switch {
	case recorded == i.name || i.hadName(recorded):
	case untypedName(recorded):
		return i.version, nil
	default:
		for _, p := range open.Parts() { // it was inside a type of another name
			if p.Name == i.def.name && p.Version <= i.version {
				return p.Version, nil
			}
		}
		return 0, fmt.Errorf("%s is not known to be an earlier %s: if it is one, say so with durable.Was(%q)", OrUnknown(open.Type), i.def.name, strings.TrimPrefix(recorded, i.shape))
	}
	if open.TypeVersion > i.version {
		return 0, &FutureVersionError{Type: i.def.name, Have: open.TypeVersion, Know: i.version}
	}
	if open.TypeVersion < 1 {
		return 0, fmt.Errorf("there is no version %d of %s", open.TypeVersion, i.def.name)
	}
	return open.TypeVersion, nil
}

// hadName reports whether values of the type were recorded under this name
// before it got its current one.
func (i *typeInfo) hadName(recorded string) bool {
	name, ok := strings.CutPrefix(recorded, i.shape)
	return ok && (name == i.def.typ.String() || slices.Contains(i.def.was, name))
}

// untypedNames are the recorded type names of values without a type of their own. They
// cannot mean an earlier version.
var untypedNames = []string{"", "json.RawMessage", "interface {}"}

// untypedName reports whether values of this name, or their elements, have no type of
// their own.
func untypedName(recorded string) bool { return slices.Contains(untypedNames, baseName(recorded)) }

// untyped reports whether a value of t shows the recorded data unchanged.
func untyped(t reflect.Type) bool { return t.Kind() != reflect.Struct && untypedName(t.String()) }

// read decodes a value of an earlier version and upgrades it, step by step, to the
// current one.
func (i *typeInfo) read(codec Codec, data []byte, version int, target reflect.Value) error {
	d := i.def
	from := reflect.New(d.withOld(target.Type(), d.ups[version-1].old))
	if err := unmarshal(codec, infoOf(from.Elem().Type()), data, from.Interface()); err != nil {
		return fmt.Errorf("as version %d of %s, %s: %w", version, d.name, d.ups[version-1].old, err)
	}
	// A partly upgraded value must not become visible.
	raised := reflect.New(target.Type()).Elem()
	if err := d.raise(from.Elem(), version, raised); err != nil {
		return err
	}
	target.Set(raised)
	return nil
}

// withOld returns t with old in place of the registered type.
func (d *TypeDef) withOld(t, old reflect.Type) reflect.Type {
	switch {
	case t == d.typ:
		return old
	case t.Kind() == reflect.Pointer:
		return reflect.PointerTo(d.withOld(t.Elem(), old))
	case t.Kind() == reflect.Slice:
		return reflect.SliceOf(d.withOld(t.Elem(), old))
	}
	return reflect.MapOf(t.Key(), d.withOld(t.Elem(), old))
}

// raise sets to, which is or is built from the registered type, from its counterpart in
// an earlier version.
func (d *TypeDef) raise(from reflect.Value, version int, to reflect.Value) error {
	switch {
	case to.Type() == d.typ:
		return d.upcast(from, version, to)
	case from.IsNil():
		return nil
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return d.raise(from.Elem(), version, to.Elem())
	case to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if err := d.raise(from.Index(i), version, to.Index(i)); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
	for it := from.MapRange(); it.Next(); {
		old := reflect.New(from.Type().Elem()).Elem() // a map element has no address
		old.Set(it.Value())
		elem := reflect.New(to.Type().Elem()).Elem()
		if err := d.raise(old, version, elem); err != nil {
			return fmt.Errorf("an element: %w", err) // its key is user data
		}
		to.SetMapIndex(it.Key(), elem)
	}
	return nil
}

// upcast runs the chain on one value.
func (d *TypeDef) upcast(from reflect.Value, version int, to reflect.Value) error {
	for ; version < d.version; version++ {
		var err error
		fault := guard.Call(func() { from, err = d.ups[version-1].call(from) })
		if err = cmp.Or(fault, err); err != nil {
			return fmt.Errorf("the function of From(%d) of %s: %w", version, d.name, err)
		}
	}
	to.Set(from)
	return nil
}

// IsMismatch reports whether err, from Decode, means that the value can be read but has
// another type than was requested.
func IsMismatch(err error) bool {
	var m *MismatchError
	return errors.As(err, &m)
}

// OrUnknown returns the name of a recorded type for use in a message.
func OrUnknown(s string) string {
	if s == "" {
		return "value of unknown type"
	}
	return s
}
