package payload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// A TypeDef says under which name and version values of a Go type are recorded,
// and how those of earlier versions are read; see durable.Type.
type TypeDef struct {
	name    string
	version int
	typ     reflect.Type
	ups     []Upcast
	was     []string
}

// NewTypeDef registers T under a name and version.
func NewTypeDef[T any](name string, version int) TypeDef {
	return TypeDef{name: name, version: version, typ: reflect.TypeFor[T]()}
}

// AddUpcast adds a way to read values of an earlier version.
func (d *TypeDef) AddUpcast(u Upcast) { d.ups = append(d.ups, u) }

// AddNames adds names under which values were recorded before.
func (d *TypeDef) AddNames(names []string) { d.was = append(d.was, names...) }

// NewUpcast returns an Upcast that makes a version of a type from the previous one.
func NewUpcast[Old, New any](version int, up func(Old) (New, error)) Upcast {
	u := Upcast{from: version, old: reflect.TypeFor[Old](), new: reflect.TypeFor[New]()}
	if up != nil {
		u.call = func(old reflect.Value) (reflect.Value, error) {
			n, err := up(*old.Addr().Interface().(*Old))
			return reflect.ValueOf(&n).Elem(), err
		}
	}
	return u
}

// An Upcast makes a version of a type from the previous one; see durable.From.
type Upcast struct {
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
	slices.SortStableFunc(d.ups, func(a, b Upcast) int { return a.from - b.from })
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

// Types are the types an engine knows by name. They do not change after it is
// open; nil: none.
type Types struct {
	byType map[reflect.Type]*TypeDef
	infos  sync.Map // reflect.Type -> *typeInfo
	// secret: values are encrypted, so no error may quote them.
	secret bool
}

func newTypes(list []TypeDef) (*Types, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ts := &Types{byType: map[reflect.Type]*TypeDef{}}
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
			return nil, fmt.Errorf("durable: Options.Types: %w: %w", err, store.ErrInvalid)
		}
		ts.byType[d.typ] = &d
	}
	return ts, nil
}

// info is infoOf for an engine with registered types. shape is how t is built
// from its registered type, for example "[]" for a slice of it.
func (ts *Types) info(t reflect.Type) *typeInfo {
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
		named.start = envelope.StartOf(named.header("json"))
		i = &named
	}
	ts.infos.Store(t, i)
	return i
}

// find returns the registered type that t is, points to, or is a slice or map of.
func (ts *Types) find(t reflect.Type) (def *TypeDef, shape string) {
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

// infoOf returns what this engine knows about a type.
func (s *Sealer) infoOf(t reflect.Type) *typeInfo {
	if s.Types == nil {
		return infoOf(t)
	}
	return s.Types.info(t)
}
