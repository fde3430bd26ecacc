package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// FutureVersionError says that a value was recorded by a newer program: with a
// version of its type that this one does not know. To read it all the same would
// be to misread it.
type FutureVersionError struct {
	Type string // name in the checkpoint
	Have int    // version in the checkpoint
	Know int    // newest version this program knows
}

func (e *FutureVersionError) Error() string {
	return fmt.Sprintf("it is version %d of %s, and version %d is the newest this program knows: run a program whose Options.Types has version %d, then resume",
		e.Have, e.Type, e.Know, e.Have)
}

// mismatchError is an error of the codec on a value of the right format and
// version: the code asks for another type than was recorded.
type mismatchError struct{ err error }

func (e *mismatchError) Error() string { return e.err.Error() }
func (e *mismatchError) Unwrap() error { return e.err }

func mismatch(err error) error {
	if err == nil {
		return nil
	}
	return &mismatchError{err}
}

// decodeOpen decodes an opened payload into v, a pointer.
func (e *Engine) decodeOpen(open *envelope.Envelope, v any) error {
	codec, err := e.codecOf(open.Codec)
	if err != nil {
		return err
	}
	target := reflect.ValueOf(v).Elem()
	info := e.infoOf(target.Type())
	if info.def == nil {
		if open.TypeVersion > 1 && !untyped(target.Type()) {
			return &FutureVersionError{Type: open.Type, Have: open.TypeVersion, Know: 1}
		}
		return mismatch(codec.Decode(open.Payload, v))
	}
	version, err := info.versionOf(open)
	switch {
	case err != nil:
		return err
	case version == info.version:
		return mismatch(codec.Decode(open.Payload, v))
	}
	return info.def.read(codec, open.Payload, version, target)
}

// versionOf returns which version of the registered type a payload holds.
func (i *typeInfo) versionOf(open *envelope.Envelope) (int, error) {
	recorded := strings.ReplaceAll(open.Type, "*", "")
	switch {
	case recorded == i.name || i.hadName(recorded):
	case slices.Contains(untypedNames, recorded):
		return i.version, nil
	default:
		return 0, fmt.Errorf("%s is not known to be an earlier %s: if it is one, say so with durable.Was(%q)", orUnknown(open.Type), i.def.name, strings.TrimPrefix(recorded, i.shape))
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
// before it had its present one.
func (i *typeInfo) hadName(recorded string) bool {
	name, ok := strings.CutPrefix(recorded, i.shape)
	return ok && (name == i.def.typ.String() || slices.Contains(i.def.was, name))
}

// untypedNames are what values without a type of their own are recorded as:
// nobody can have meant an earlier version with them.
var untypedNames = []string{"", "json.RawMessage", "interface {}", "map[string]interface {}", "[]interface {}"}

// untyped reports whether a value of t shows what was recorded as it is.
func untyped(t reflect.Type) bool { return slices.Contains(untypedNames, t.String()) }

// read decodes a value of an earlier version and raises it, step by step, to the
// present one.
func (d *TypeDef) read(codec Codec, data []byte, version int, target reflect.Value) error {
	from := reflect.New(d.withOld(target.Type(), d.ups[version-1].old))
	if err := codec.Decode(data, from.Interface()); err != nil {
		return fmt.Errorf("as version %d of %s, %s: %w", version, d.name, d.ups[version-1].old, err)
	}
	// A partly raised value must not be seen.
	raised := reflect.New(target.Type()).Elem()
	if err := d.raise(from.Elem(), version, raised); err != nil {
		return err
	}
	target.Set(raised)
	return nil
}

// withOld returns t with old in the place of the registered type.
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

// raise sets to, which is or is made of the registered type, from its like in an
// earlier version.
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
		old := reflect.New(from.Type().Elem()).Elem() // of a map, it has no address
		old.Set(it.Value())
		elem := reflect.New(to.Type().Elem()).Elem()
		if err := d.raise(old, version, elem); err != nil {
			return fmt.Errorf("element %v: %w", it.Key(), err)
		}
		to.SetMapIndex(it.Key(), elem)
	}
	return nil
}

// upcast runs the chain on one value.
func (d *TypeDef) upcast(from reflect.Value, version int, to reflect.Value) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the function of From(%d) of %s: %w", version, d.name, newPanicError(v))
		}
	}()
	for ; version < d.version; version++ {
		if from, err = d.ups[version-1].call(from); err != nil {
			return fmt.Errorf("the function of From(%d) of %s: %w", version, d.name, err)
		}
	}
	to.Set(from)
	return nil
}

// fingerprint marks the hash of an encoded value with the version of its type
// and the codec: hashes of different ones say nothing about whether the value is
// the same.
func (e *Engine) fingerprint(t reflect.Type, hash string) string {
	if t != nil {
		if info := e.infoOf(t); info.version > 1 {
			hash = strconv.Itoa(info.version) + ":" + hash
		}
	}
	if !e.plainJSON {
		hash = e.codec.Name() + ":" + hash
	}
	return hash
}

// otherValue reports whether two fingerprints are known to be of different
// values.
func otherValue(a, b string) bool {
	mark := func(s string) string { return s[:strings.LastIndexByte(s, ':')+1] }
	return a != b && mark(a) == mark(b)
}

// sameInput reports whether a run that exists was started with this input, of
// type t, encoded in an earlier version or with another codec.
func (e *Engine) sameInput(ctx context.Context, id string, t reflect.Type, input []byte) bool {
	if t == nil || e.plainJSON && e.infoOf(t).version < 2 {
		return false
	}
	h, err := e.store.Load(ctx, id, store.Cursor{Branch: new(int32)}) // of the first generation
	if err != nil {
		return false
	}
	for ev, err := range h.Events {
		if err != nil || ev.Type != store.WorkflowCreated {
			return false
		}
		v := reflect.New(t)
		if _, err := e.decode(placeOf(id, &ev), ev.Payload, v.Interface()); err != nil {
			return false
		}
		raised, err := encodeAny(e, v.Elem().Interface())
		return err == nil && hashInput(raised) == hashInput(input)
	}
	return false
}

// readable reports whether err, of decode, says that the value can be read and
// is of another type than was asked for.
func readable(err error) bool {
	var m *mismatchError
	return errors.As(err, &m)
}
