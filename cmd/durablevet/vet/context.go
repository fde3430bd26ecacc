package vet

import (
	"go/ast"
	"go/types"
	"slices"
)

// checkContexts checks that workflow code passes on the context that it was given.
func (c *checker) checkContexts(n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		if fn := c.callee(n); fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "context" && (fn.Name() == "Background" || fn.Name() == "TODO") {
			c.report(ruleContext, n, "context.%s in workflow code: durable calls with it belong to no run, and it does not end with the run; pass on the context that the function was given", fn.Name())
		}
		if name, kind, ok := c.durableCall(n); ok && kind.waits {
			for _, a := range n.Args {
				if made := c.deadlineOf(a); made != nil {
					c.report(ruleContext, a, "durable.%s with a deadline of this process (%s): it would start over in every process, so the run is parked; use durable.Timeout, durable.Deadline, or durable.First beside a durable.Sleep", name, c.place(made.Pos()))
				}
			}
		}
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			if t := c.TypesInfo.TypeOf(l); t == nil || !isContext(t) || len(n.Lhs) != len(n.Rhs) && i > 0 {
				continue
			}
			switch l := ast.Unparen(l).(type) {
			case *ast.SelectorExpr:
				c.kept(n)
			case *ast.Ident:
				if v := c.varOf(l); v != nil && isGlobal(v) {
					c.kept(n)
				}
			}
		}
	case *ast.CompositeLit:
		if _, ok := c.TypesInfo.TypeOf(n).Underlying().(*types.Struct); !ok {
			return
		}
		for _, e := range n.Elts {
			v := e
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				v = kv.Value
			}
			if t := c.TypesInfo.TypeOf(v); t != nil && isContext(t) {
				c.kept(e)
			}
		}
	}
}

func (c *checker) kept(n ast.Node) {
	c.report(ruleContext, n, "a context of workflow code is kept: a branch or item that finds it there makes its calls in the wrong scope, and after a replay it is that of an execution that has ended; pass it as an argument")
}

// deadlineOf returns the call of context.WithTimeout or WithDeadline that made a context.
func (c *checker) deadlineOf(e ast.Expr) *ast.CallExpr {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v := c.varOf(id)
	if v == nil || !isContext(v.Type()) {
		return nil
	}
	a := c.assigned(v, e)
	if a == nil || len(a.Rhs) != 1 {
		return nil
	}
	call, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return nil
	}
	fn := c.callee(call)
	if fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "context" {
		switch fn.Name() {
		case "WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause":
			return call
		}
	}
	return nil
}

// assigned returns the last assignment to v before e in a block around e, which may be that of a
// parameter: ctx, cancel := context.WithTimeout(ctx, d) at the top of a function makes no new ctx.
func (c *checker) assigned(v *types.Var, e ast.Expr) (last *ast.AssignStmt) {
	for _, id := range slices.Concat(c.uses[v], []*ast.Ident{c.defs[v]}) {
		if id == nil || id.Pos() >= e.Pos() || last != nil && id.Pos() < last.Pos() {
			continue
		}
		a, ok := c.parents[id].(*ast.AssignStmt)
		if !ok || !slices.Contains(a.Lhs, ast.Expr(id)) {
			continue
		}
		if around := c.parents[a]; around.Pos() <= e.Pos() && e.Pos() < around.End() {
			last = a
		}
	}
	return last
}
