package durable

import (
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/payload"
)

// TypeDef says under which name and version values of a Go type are recorded,
// and how those of earlier versions are read. Type makes one, for Options.Types.
type TypeDef struct {
	def payload.TypeDef
	err error // why it cannot be used; reported by Open
}

// Type registers the defined type T. From then on its values, and those of *T,
// []T and map[K]T, are recorded under the name, which must never change, whatever
// the Go type is called and wherever it moves; a value of another type that contains T
// records T's name and version beside its own. version is the current version of T,
// from 1. Whenever T changes so that values recorded before do not decode into it by
// themselves, raise the version by one, keep the type as it was under another Go name,
// and add a From that makes the new one of it:
//
//	durable.Type[Order]("order", 3,
//		durable.From(1, func(o orderV1) (orderV2, error) { ... }),
//		durable.From(2, func(o orderV2) (Order, error) { ... }))
//
// There must be a From for each version before the current one; Open says which is
// missing. A value that was recorded before the type was registered counts as version 1
// if it has the Go type's name ("main.Order") or one given to Was, or is in a value of
// another type. Untyped values (json.RawMessage, map[string]any, any) count as the
// current version. With a codec other than JSON, a T in a struct or array is not
// upcast: register the type around it.
//
// A value of a later version than the registered one, one that was recorded under a
// name that this program has not registered, and any other that cannot be read stop
// their run, which stays resumable: see UndecodableError. So keep a type registered as
// long as a run is kept that has recorded it.
func Type[T any](name string, version int, o ...TypeOption) TypeDef {
	d := TypeDef{def: payload.NewTypeDef[T](name, version)}
	d.err = guard.Options(&d, o)
	return d
}

// TypeOption is From or Was.
type TypeOption func(*TypeDef)

// From reads values that were recorded with a version of the type: up turns them into
// values of the next version, and so on up to the current type. up must return the same
// for the same value, for ever, and have no side effects. An error or a panic in it
// stops the run, which stays resumable.
func From[Old, New any](version int, up func(Old) (New, error)) TypeOption {
	u := payload.NewUpcast(version, up)
	return func(d *TypeDef) { d.def.AddUpcast(u) }
}

// Was gives the names under which the type's values were recorded before it was
// registered, if they are not what the Go type is called now: "main.Order" for a type
// that has moved or was renamed since. A name that was registered can be given, too.
func Was(names ...string) TypeOption {
	return func(d *TypeDef) { d.def.AddNames(names) }
}

// FutureVersionError says that a value was recorded by a newer program: with a
// version of its type that this one does not know. Reading it nevertheless would be
// misreading it. Type is the name in the checkpoint, Have the version there, and Know
// the newest version this program knows.
type FutureVersionError = payload.FutureVersionError

// UnregisteredTypeError says that a value was recorded under a registered name, and
// that this program has no type of that name where the value goes. The type may have
// changed since it was registered: reading the value into whatever type is there could
// lose what it says. Type and Version are those in the checkpoint, Wanted is the Go
// type that the code asks for.
type UnregisteredTypeError = payload.UnregisteredTypeError
