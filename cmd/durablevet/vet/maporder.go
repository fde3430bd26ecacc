package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

const sorted = "a replay has another order; range over slices.Sorted(maps.Keys(m))"

// checkRange checks a range over a map: whether it makes durable calls, or puts
// something into an order.
func (c *checker) checkRange(r *ast.RangeStmt, within *ast.BlockStmt) {
	if !c.rangesOverMap(r.X) || r.Key == nil {
		return
	}
	ast.Inspect(r.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if c.isDurable(n) {
				c.report(ruleMapOrder, r, "durable calls in the order of a map: %s", sorted)
				return false
			}
		case *ast.AssignStmt:
			c.checkOrdered(r, n, within)
		case *ast.ReturnStmt:
			if slices.ContainsFunc(n.Results, func(e ast.Expr) bool { return c.mentions(e, r.Key) || r.Value != nil && c.mentions(e, r.Value) }) && c.unconditional(n, r) {
				c.report(ruleMapOrder, n, "whichever key of a map comes first: %s", sorted)
			}
		case *ast.FuncLit:
			return c.roleOf(n) != detached
		}
		return true
	})
}

// unconditional reports whether a statement is one of the loop's body itself.
func (c *checker) unconditional(s ast.Stmt, r *ast.RangeStmt) bool {
	return c.parents[s] == ast.Node(r.Body)
}

// checkOrdered checks for an assignment whose result depends on the order of the loop:
// it appends, or adds to a string or a floating-point number, that is not of the loop.
func (c *checker) checkOrdered(r *ast.RangeStmt, a *ast.AssignStmt, within *ast.BlockStmt) {
	for i, l := range a.Lhs {
		v := c.rootOf(l)
		if v == nil || r.Pos() <= v.Pos() && v.Pos() < r.End() {
			continue
		}
		if _, isIndex := ast.Unparen(l).(*ast.IndexExpr); isIndex && c.mentions(l, r.Key) {
			continue // by key: the order does not matter
		}
		ordered := false
		switch {
		case a.Tok == token.ADD_ASSIGN:
			if b, ok := c.TypesInfo.TypeOf(l).Underlying().(*types.Basic); ok {
				ordered = b.Info()&(types.IsString|types.IsFloat) != 0
			}
		case len(a.Lhs) == len(a.Rhs):
			if call, ok := ast.Unparen(a.Rhs[i]).(*ast.CallExpr); ok {
				id, _ := ast.Unparen(call.Fun).(*ast.Ident)
				ordered = id != nil && id.Name == "append" && c.TypesInfo.Uses[id] == types.Universe.Lookup("append")
			}
		}
		if ordered && !c.sortedAfter(v, r.End(), within) {
			c.report(ruleMapOrder, a, "%s is put together in the order of a map: %s, or sort it afterwards", v.Name(), sorted)
		}
	}
}

// checkCollected checks for slices.Collect(maps.Keys(m)) that is not sorted.
func (c *checker) checkCollected(call *ast.CallExpr, within *ast.BlockStmt) {
	fn := c.callee(call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "slices" || fn.Name() != "Collect" || len(call.Args) != 1 || !c.iteratesMap(call.Args[0]) {
		return
	}
	if a, ok := c.parents[call].(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
		if v := c.rootOf(a.Lhs[0]); v != nil && c.sortedAfter(v, a.End(), within) {
			return
		}
	}
	c.report(ruleMapOrder, call, "slices.Collect in the order of a map: a replay has another order; use slices.Sorted")
}

// rangesOverMap reports whether a range over e is in the order of a map.
func (c *checker) rangesOverMap(e ast.Expr) bool {
	t := c.TypesInfo.TypeOf(e)
	if t == nil {
		return false
	}
	if _, ok := t.Underlying().(*types.Map); ok {
		return true
	}
	return c.iteratesMap(e)
}

// iteratesMap reports whether e is a call like maps.Keys(m), or a Range of a sync.Map.
func (c *checker) iteratesMap(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		fn := c.callee(e)
		return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "maps" && slices.Contains(words("Keys Values All"), fn.Name())
	case *ast.SelectorExpr:
		fn, ok := c.TypesInfo.Uses[e.Sel].(*types.Func)
		return ok && fn.FullName() == "(*sync.Map).Range"
	}
	return false
}

// sortedAfter reports whether a function of sort or slices that sorts is given the
// variable after a place.
func (c *checker) sortedAfter(v *types.Var, after token.Pos, within *ast.BlockStmt) (found bool) {
	ast.Inspect(within, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || call.Pos() < after || found {
			return !found
		}
		fn := c.callee(call)
		if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "sort" && fn.Pkg().Path() != "slices" {
			return true
		}
		if fn.Pkg().Path() == "slices" && !slices.Contains(words("Sort SortFunc SortStableFunc Sorted SortedFunc"), fn.Name()) {
			return true
		}
		for _, a := range call.Args {
			ast.Inspect(a, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && c.TypesInfo.Uses[id] == v {
					found = true
				}
				return !found
			})
		}
		return true
	})
	return found
}

// mentions reports whether an expression uses a variable.
func (c *checker) mentions(e ast.Expr, variable ast.Expr) (found bool) {
	id, ok := variable.(*ast.Ident)
	if !ok {
		return false
	}
	v := c.varOf(id)
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && v != nil && c.TypesInfo.Uses[id] == v {
			found = true
		}
		return !found
	})
	return found
}
