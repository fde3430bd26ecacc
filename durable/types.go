package durable

import "github.com/holdfast-dev/holdfast/internal/payload"

// TypeDef says under which name and version values of a Go type are recorded,
// and how those of earlier versions are read. Type makes one; give it to
// Options.Types.
type TypeDef struct{ def payload.TypeDef }

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
	d := TypeDef{payload.NewTypeDef[T](name, version)}
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
	u := payload.NewUpcast(version, up)
	return func(d *TypeDef) { d.def.AddUpcast(u) }
}

// Was names what the type's values were recorded as before it was registered, if
// that is not what the Go type is called now: "main.Order" for a type that has
// moved or was renamed since. A name that was registered can be given, too.
func Was(names ...string) TypeOption {
	return func(d *TypeDef) { d.def.AddNames(names) }
}

// FutureVersionError says that a value was recorded by a newer program: with a
// version of its type that this one does not know. To read it all the same would
// be to misread it. Type is the name in the checkpoint, Have the version there, and
// Know the newest version this program knows.
type FutureVersionError = payload.FutureVersionError

// UnregisteredTypeError says that a value was recorded under a registered name and that
// this program has no type of that name where the value goes. It may have changed since
// it was registered: to read it into whatever type is there could lose what it says.
// Type and Version are those in the checkpoint, Wanted is the Go type that the code
// asks for.
type UnregisteredTypeError = payload.UnregisteredTypeError
