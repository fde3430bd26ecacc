package faults

import (
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
)

// KindOf returns what an error is called where its message must not stand: the
// name it is registered under or, of what is not, its type. An error that was
// read back from the history without a name is "error", like one of package
// errors.
func (r *Registry) KindOf(err error) string {
	if err == nil {
		return "error"
	}
	if name := r.nameIn(r.Record(err)); name != "" {
		return name
	}
	name := "error"
	if fault := guard.Call(func() { name = r.typeOf(err, 0) }); fault != nil {
		return fmt.Sprintf("%T", err)
	}
	return name
}

// nameIn returns the first registered name in rec, outermost first.
func (r *Registry) nameIn(rec *history.Error) string {
	if rec.Sentinel != "" {
		return rec.Sentinel
	}
	if rec.Type != "" && !r.wraps(rec.Type) {
		return rec.Type
	}
	for _, c := range rec.Causes {
		if name := r.nameIn(c); name != "" {
			return name
		}
	}
	return ""
}

// typeOf returns the type of the outermost error that is more than a wrapper.
func (r *Registry) typeOf(err error, depth int) string {
	name := shortType(err)
	_, wraps := r.wrappers[reflect.TypeOf(err)]
	_, marked := r.marks.Off(err)
	if _, readBack := err.(*recordedError); readBack || wraps || marked {
		name = "error"
	}
	switch name {
	case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors":
		name = "error"
	}
	if name != "error" || depth == maxDepth {
		return name
	}
	for _, inner := range unwrap(err) {
		if inner == nil {
			continue
		}
		if t := r.typeOf(inner, depth+1); t != "error" {
			return t
		}
	}
	return name
}

// wraps reports whether errors that are kept under a name wrap others.
func (r *Registry) wraps(name string) bool {
	w, ok := r.wrappers[r.names[name]]
	return ok && w.Name == name
}
