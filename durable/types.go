package durable

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// TypeDef says under which name and version values of a Go type are recorded,
// and how those of earlier versions are read. Type makes one; give it to
// Options.Types.
type TypeDef struct {
	name    string
	version int
	typ     reflect.Type
	ups     []upcast
	was     []string
}

// Type registers the defined type T. From then on its values, and those of *T,
// []T and map[K]T, are recorded under the name, which must never change, whatever
// the Go type is called or moved to; a value of another type that contains T records
// name and version beside its own. version is that of T as it is now, from 1:
// raise it by one whenever T changes in a way that values recorded before do not
// decode into by themselves, keep the type as it was under another Go name, and
// add a From that makes the new one of it:
//
//	durable.Type[Order]("order", 3,
//		durable.From(1, func(o orderV1) (orderV2, error) { ... }),
//		durable.From(2, func(o orderV2) (Order, error) { ... }))
//
// There must be a From for each version before the present one; Open says what
// is missing. What was recorded before the type was registered counts as version
// 1 if it bears the Go type's name ("main.Order") or one given to Was, or stands in
// a value of another type. Untyped values (json.RawMessage, map[string]any, any) are
// taken for the present one. With another codec than JSON a T in a struct or array
// is not raised: register the type around it.
//
// A value of a later version than the registered one, one that was recorded under a
// name that this program has not registered, and any other that cannot be read, stops
// its run, which stays resumable: see UndecodableError. So a type stays registered as
// long as a run is kept that has recorded it.
func Type[T any](name string, version int, o ...TypeOption) TypeDef {
	d := TypeDef{name: name, version: version, typ: reflect.TypeFor[T]()}
	for _, f := range o {
		f(&d)
	}
	return d
}

// TypeOption is From or Was.
type TypeOption func(*TypeDef)

// From reads values that were recorded with a version of the type: up makes of
// them what the next version was, and so on up to the present type. It must give
// the same for the same value, for ever, and have no effect elsewhere. An error
// or a panic of it stops the run, resumable.
func From[Old, New any](version int, up func(Old) (New, error)) TypeOption {
	return func(d *TypeDef) {
		u := upcast{from: version, old: reflect.TypeFor[Old](), new: reflect.TypeFor[New]()}
		if up != nil {
			u.call = func(old reflect.Value) (reflect.Value, error) {
				n, err := up(*old.Addr().Interface().(*Old))
				return reflect.ValueOf(&n).Elem(), err
			}
		}
		d.ups = append(d.ups, u)
	}
}

// Was names what the type's values were recorded as before it was registered, if
// that is not what the Go type is called now: "main.Order" for a type that has
// moved or was renamed since. A name that was registered can be given, too.
func Was(names ...string) TypeOption {
	return func(d *TypeDef) { d.was = append(d.was, names...) }
}

// upcast is one From.
type upcast struct {
	from     int
	old, new reflect.Type
	call     func(old reflect.Value) (reflect.Value, error) // old is addressable
}

// maxTypeName bounds a registered name, so that a header holds it.
const maxTypeName = 128

// check returns why d cannot be used.
func (d *TypeDef) check() error {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/-", r)
	}
	switch {
	case d.typ == nil:
		return fmt.Errorf("an entry is empty: use durable.Type")
	case d.name == "" || len(d.name) > maxTypeName || strings.ContainsFunc(d.name, odd):
		return fmt.Errorf("the name %q of %s is not 1 to %d bytes of letters, digits and . _ / -", d.name, d.typ, maxTypeName)
	case d.typ.Name() == "" || d.typ.PkgPath() == "" || d.typ.Kind() == reflect.Interface:
		return fmt.Errorf("%q: %s is not a defined type: only one that is declared with a name, and no interface, can have versions", d.name, d.typ)
	case d.version < 1:
		return fmt.Errorf("%q: version %d: versions begin with 1", d.name, d.version)
	}
	slices.SortStableFunc(d.ups, func(a, b upcast) int { return a.from - b.from })
	for i, u := range d.ups {
		switch {
		case u.call == nil:
			return fmt.Errorf("%q: the function of From(%d) is nil", d.name, u.from)
		case i > 0 && d.ups[i-1].from == u.from:
			return fmt.Errorf("%q: there are two From(%d)", d.name, u.from)
		case u.from < 1 || u.from >= d.version:
			return fmt.Errorf("%q: From(%d) leads nowhere: version %d is the present one, and only 1 to %d come before it", d.name, u.from, d.version, d.version-1)
		case u.from != i+1:
			return fmt.Errorf("%q: From(%d) is missing: what was recorded with version %d could not be read", d.name, i+1, i+1)
		}
	}
	if len(d.ups) != d.version-1 {
		return fmt.Errorf("%q: From(%d) is missing: what was recorded with version %d could not be read", d.name, len(d.ups)+1, len(d.ups)+1)
	}
	for i, u := range d.ups {
		next, what := d.typ, fmt.Sprintf("the present type is %s", d.typ)
		if i+1 < len(d.ups) {
			next, what = d.ups[i+1].old, fmt.Sprintf("From(%d) takes %s", i+2, d.ups[i+1].old)
		}
		if u.new != next {
			return fmt.Errorf("%q: From(%d) makes %s and %s", d.name, u.from, u.new, what)
		}
	}
	return nil
}

// typeDefs are the types an engine knows by name. They do not change once it is
// open; nil: none.
type typeDefs struct {
	byType map[reflect.Type]*TypeDef
	infos  sync.Map // reflect.Type -> *typeInfo
	// secret: values are encrypted, so no error may quote them.
	secret bool
}

func newTypeDefs(list []TypeDef) (*typeDefs, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ts := &typeDefs{byType: map[reflect.Type]*TypeDef{}}
	names := map[string]reflect.Type{}
	for _, d := range list {
		d.ups = slices.Clone(d.ups)
		err := d.check()
		for _, name := range append([]string{d.name}, d.was...) {
			if other, taken := names[name]; taken && err == nil {
				err = fmt.Errorf("the name %q is given to %s and to %s", name, other, d.typ)
			}
			names[name] = d.typ
		}
		if err == nil && ts.byType[d.typ] != nil {
			err = fmt.Errorf("%s is registered as %q and as %q", d.typ, ts.byType[d.typ].name, d.name)
		}
		if err != nil {
			return nil, fmt.Errorf("durable: Options.Types: %w: %w", err, ErrInvalid)
		}
		ts.byType[d.typ] = &d
	}
	return ts, nil
}

// info is infoOf for an engine with registered types. shape is how t is made of
// its registered type, "[]" for a slice of it.
func (ts *typeDefs) info(t reflect.Type) *typeInfo {
	if i, ok := ts.infos.Load(t); ok {
		return i.(*typeInfo)
	}
	i := infoOf(t)
	def, shape := ts.find(t)
	parts := ts.partsIn(t)
	if def != nil || len(parts) > 0 {
		named := *i
		named.parts = parts
		if def != nil {
			named.def, named.shape, named.name, named.version = def, shape, shape+def.name, def.version
		}
		named.within = ts.withinOf(&named)
		named.prefix = named.header("json")
		i = &named
	}
	ts.infos.Store(t, i)
	return i
}

// find returns the registered type that t is, points to, or is a slice or map of.
func (ts *typeDefs) find(t reflect.Type) (def *TypeDef, shape string) {
	for {
		if d := ts.byType[t]; d != nil {
			return d, shape
		}
		switch {
		case t.Kind() == reflect.Pointer:
		case t.Kind() == reflect.Slice && t.Name() == "":
			shape += "[]"
		case t.Kind() == reflect.Map && t.Name() == "":
			shape += "map[" + t.Key().String() + "]"
		default:
			return nil, ""
		}
		t = t.Elem()
	}
}

// infoOf returns what this engine knows of a type.
func (s *sealer) infoOf(t reflect.Type) *typeInfo {
	if s.types == nil {
		return infoOf(t)
	}
	return s.types.info(t)
}
