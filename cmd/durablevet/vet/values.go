package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
)

// checkValues checks that the values which a call keeps survive JSON.
func (c *checker) checkValues(call *ast.CallExpr) {
	name, kind, ok := c.durableCall(call)
	if !ok {
		return
	}
	args := c.instance(call)
	for _, i := range kind.values {
		if args != nil && i < args.Len() {
			c.checkValue(call, name, args.At(i))
		}
	}
	if kind.kept > 0 && kind.kept < len(call.Args) {
		if t := c.TypesInfo.TypeOf(call.Args[kind.kept]); t != nil && !types.IsInterface(t) {
			c.checkValue(call, name, t)
		}
	}
}

func (c *checker) checkValue(call *ast.CallExpr, name string, t types.Type) {
	if why := lossy(t, typeName(c.Pkg, t), map[types.Type]bool{}); why != "" {
		c.report(ruleJSON, call.Fun, "%s does not survive the record of durable.%s: %s", typeName(c.Pkg, t), name, why)
	}
}

func typeName(here *types.Package, t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == here {
			return ""
		}
		return p.Name()
	})
}

// lossy says what of a value is lost by encoding/json, or nothing. What encodes itself
// is trusted; so are the fields that a tag leaves out, since somebody decided that.
func lossy(t types.Type, path string, seen map[types.Type]bool) string {
	if seen[t] || encodesItself(t) {
		return ""
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Chan, *types.Signature:
		return fmt.Sprintf("%s is a %s, which JSON cannot hold", path, kindOf(u))
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 || u.Kind() == types.UnsafePointer {
			return fmt.Sprintf("%s is a %s, which JSON cannot hold", path, u)
		}
	case *types.Interface:
		if _, ok := types.Unalias(t).(*types.TypeParam); !ok && u.NumMethods() > 0 {
			return fmt.Sprintf("%s is an interface, and JSON does not say which type to decode; use a concrete type", path)
		}
	case *types.Pointer:
		return lossy(u.Elem(), path, seen)
	case *types.Slice:
		return lossy(u.Elem(), path+"[]", seen)
	case *types.Array:
		return lossy(u.Elem(), path+"[]", seen)
	case *types.Map:
		if why := lossy(u.Elem(), path+"[]", seen); why != "" {
			return why
		}
		if b, ok := u.Key().Underlying().(*types.Basic); (!ok || b.Info()&(types.IsString|types.IsInteger) == 0) && !encodesItself(u.Key()) {
			return fmt.Sprintf("the keys of %s are of type %s, which JSON cannot hold", path, u.Key())
		}
	case *types.Struct:
		return lossyStruct(u, path, seen)
	}
	return ""
}

func lossyStruct(s *types.Struct, path string, seen map[types.Type]bool) string {
	for i := range s.NumFields() {
		f := s.Field(i)
		if reflect.StructTag(s.Tag(i)).Get("json") == "-" {
			continue
		}
		embedded := f.Embedded() && isStruct(f.Type())
		if !f.Exported() && !embedded {
			if f.Name() != "_" && !stateless(f.Type()) {
				return fmt.Sprintf("the field %s.%s is not exported, so it is zero in what is read back", path, f.Name())
			}
			continue
		}
		if why := lossy(f.Type(), path+"."+f.Name(), seen); why != "" {
			return why
		}
	}
	return ""
}

func isStruct(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// stateless reports whether values of a type say nothing that must be kept: an empty
// struct, or a lock.
func stateless(t types.Type) bool {
	if s, ok := t.Underlying().(*types.Struct); ok && s.NumFields() == 0 {
		return true
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "sync"
}

func kindOf(t types.Type) string {
	if _, ok := t.(*types.Chan); ok {
		return "channel"
	}
	return "function"
}

// encodesItself reports whether a type has methods by which encoding/json encodes it,
// or is generated from a protocol buffer.
func encodesItself(t types.Type) bool {
	if types.IsInterface(t) {
		return false
	}
	for _, name := range []string{"MarshalJSON", "MarshalText", "ProtoReflect"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name); obj != nil {
			if _, ok := obj.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}
