package flat

import (
	"fmt"
	"reflect"
)

// Hidden returns an error if values of t are, point to or are made of structs that have fields and of
// which encoding/json keeps none, because none is exported: their state would be lost without an
// error. A method with a pointer receiver counts where encoding/json can call it.
func Hidden(t reflect.Type) error {
	const deep = 8 // of types that hold themselves
	for addressable, depth := false, 0; depth < deep; t, depth = t.Elem(), depth+1 {
		if ownJSON(t) || addressable && ownJSON(reflect.PointerTo(t)) {
			return nil
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			addressable = true
		case reflect.Map:
			addressable = false
		case reflect.Array:
		case reflect.Struct:
			if t.Size() == 0 || hasExported(t, 0) {
				return nil
			}
			return hiddenError(t)
		default:
			return nil
		}
	}
	return nil
}

func hiddenError(t reflect.Type) error {
	own := "export its fields, or give it MarshalJSON and UnmarshalJSON"
	if ownJSON(reflect.PointerTo(t)) {
		own = fmt.Sprintf("use *%s, because its own encoding has a pointer receiver", t)
	}
	return fmt.Errorf("the struct %s has no exported fields, so JSON keeps nothing of it and a replay would see it empty: %s", t, own)
}

func ownJSON(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }

// hasExported reports whether a struct has an exported field, also by embedding.
func hasExported(t reflect.Type, depth int) bool {
	for f := range t.Fields() {
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.IsExported():
			return true
		case f.Anonymous && inner.Kind() == reflect.Struct && depth < 8 && hasExported(inner, depth+1):
			return true
		}
	}
	return false
}
