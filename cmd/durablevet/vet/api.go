package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

const durablePath = "github.com/holdfast-dev/holdfast/durable"

// A call kind is what a function of package durable is to the code that calls it.
type callKind struct {
	// marks: only workflow code makes this call, so whoever makes it is workflow code.
	marks bool
	// durable: the call is recorded, or what it does is.
	durable bool
	// bodies: its function arguments are bodies of steps. scopes: they are workflow
	// functions, branches or items.
	bodies, scopes bool
	// waits: it waits in the store, so that a deadline of the process has no meaning.
	waits bool
	// named: its second argument names a step.
	named bool
	// values are the type arguments whose values are kept.
	values []int
	// kept is the index of an argument of type any that is kept; 0: none.
	kept int
}

func body(values ...int) callKind {
	return callKind{marks: true, durable: true, bodies: true, named: true, values: values}
}

// calls has the functions of package durable, methods as "Type.Method". TestTheTableNamesTheAPI
// compares it with the package.
var calls = map[string]callKind{
	"Step":          body(0),
	"Do":            body(),
	"Retry":         body(0),
	"RetryDo":       body(),
	"Once":          body(0),
	"Seek":          body(0),
	"Transact":      body(0),
	"RetryTransact": body(0),
	"Compensate":    {marks: true, durable: true, bodies: true},
	"Reconcile":     {bodies: true},

	"Define":      {scopes: true, values: []int{0, 1}},
	"Go":          {marks: true, durable: true, scopes: true, named: true, values: []int{0}},
	"Map":         {marks: true, durable: true, scopes: true, named: true, values: []int{0, 1}},
	"MapSeq":      {marks: true, durable: true, scopes: true, named: true, values: []int{0, 1}},
	"RetryFailed": {marks: true, durable: true, scopes: true, named: true, values: []int{0, 1}},
	"First":       {marks: true, durable: true, waits: true},
	"NewGroup":    {marks: true},
	"Group.Go":    {marks: true, durable: true, scopes: true},
	"Group.Wait":  {marks: true, durable: true},
	"Future.Wait": {marks: true, durable: true, waits: true},

	"Sleep":          {marks: true, durable: true, waits: true},
	"SleepUntil":     {marks: true, durable: true, waits: true},
	"Await":          {marks: true, durable: true, waits: true, values: []int{0}},
	"AwaitRequest":   {marks: true, durable: true, waits: true, values: []int{0}},
	"Received.Reply": {durable: true, kept: 1},
	"Continue":       {marks: true, durable: true, values: []int{0}},
	"Patched":        {marks: true, durable: true},
	"DeprecatePatch": {marks: true, durable: true},
	"SetAttributes":  {marks: true, durable: true},
	"Checkpoint":     {marks: true, durable: true},

	"Signal":            {durable: true, kept: 3},
	"Publish":           {durable: true, kept: 2},
	"Request":           {durable: true, values: []int{0}, kept: 3},
	"Workflow.Start":    {durable: true},
	"Workflow.Run":      {durable: true},
	"Workflow.Enqueue":  {durable: true},
	"Workflow.StartAll": {durable: true},
	"Run.Wait":          {durable: true, waits: true},

	"SaveProgress":      {values: []int{0}},
	"SaveNamedProgress": {values: []int{0}},
}

// callee returns the function or method that is called, of whatever package, or nil.
func (c *checker) callee(call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(c.TypesInfo, call).(*types.Func)
	if fn == nil {
		return nil
	}
	return fn.Origin()
}

// durableCall returns which function of package durable is called.
func (c *checker) durableCall(call *ast.CallExpr) (name string, kind callKind, ok bool) {
	fn := c.callee(call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != durablePath {
		return "", callKind{}, false
	}
	name = nameOf(fn)
	kind, ok = calls[name]
	return name, kind, ok
}

// nameOf is "Func" or "Type.Method".
func nameOf(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return fn.Name()
	}
	t := types.Unalias(recv.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if named, ok := t.(*types.Named); ok {
		return named.Obj().Name() + "." + fn.Name()
	}
	return fn.Name()
}

// instance returns the type arguments of a call.
func (c *checker) instance(call *ast.CallExpr) *types.TypeList {
	fun := ast.Unparen(call.Fun)
	for {
		switch f := fun.(type) {
		case *ast.IndexExpr:
			fun = f.X
			continue
		case *ast.IndexListExpr:
			fun = f.X
			continue
		case *ast.SelectorExpr:
			return c.TypesInfo.Instances[f.Sel].TypeArgs
		case *ast.Ident:
			return c.TypesInfo.Instances[f].TypeArgs
		}
		return nil
	}
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Context" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context"
}

var errorType = types.Universe.Lookup("error").Type()

// passesContext reports whether a call has an argument that is a context.
func (c *checker) passesContext(call *ast.CallExpr) bool {
	for _, a := range call.Args {
		if t := c.TypesInfo.TypeOf(a); t != nil && isContext(t) {
			return true
		}
	}
	return false
}
