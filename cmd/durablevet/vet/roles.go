package vet

import (
	"go/ast"
	"go/types"
	"slices"
)

// A role is what a function literal is to the function around it.
type role int

const (
	// detached: it is kept or returned, and runs who knows where.
	detached role = iota
	// inline: it runs as a part of the function around it.
	inline
	// bodyRole: it is the body of a step.
	bodyRole
	// scopeRole: it is a workflow function, a branch or an item.
	scopeRole
)

// roleOf says what a function literal is.
func (c *checker) roleOf(lit *ast.FuncLit) role {
	var at ast.Node = lit
	for {
		p, ok := c.parents[at].(*ast.ParenExpr)
		if !ok {
			break
		}
		at = p
	}
	switch p := c.parents[at].(type) {
	case *ast.CallExpr:
		if ast.Unparen(p.Fun) == lit {
			return inline
		}
		return c.roleAsArgument(p, at.(ast.Expr))
	case *ast.AssignStmt:
		for i, r := range p.Rhs {
			if r == at && len(p.Lhs) == len(p.Rhs) {
				return c.roleOfVariable(p.Lhs[i])
			}
		}
	case *ast.ValueSpec:
		for i, r := range p.Values {
			if r == at && len(p.Names) == len(p.Values) {
				return c.roleOfVariable(p.Names[i])
			}
		}
	}
	return detached
}

// roleAsArgument says what a function is that is passed to a call.
func (c *checker) roleAsArgument(call *ast.CallExpr, arg ast.Expr) role {
	if name, kind, ok := c.durableCall(call); ok {
		switch {
		case kind.bodies:
			return bodyRole
		case name == "MapSeq" && len(call.Args) > 0 && call.Args[len(call.Args)-1] == arg:
			return inline // the fold
		case kind.scopes:
			return scopeRole
		}
		return inline
	}
	if tv, ok := c.TypesInfo.Types[call.Fun]; ok && tv.IsType() {
		return detached // a conversion
	}
	if fn := c.callee(call); fn != nil {
		f := c.factOf(fn)
		for i, a := range call.Args {
			if a == arg && slices.Contains(f.Bodies, min(i, fn.Signature().Params().Len()-1)) {
				return bodyRole
			}
		}
	}
	if c.takesContext(arg) {
		return detached
	}
	return inline
}

// takesContext reports whether a function is given a context of its own. Then it is a
// piece of code of its own: a test that passes a workflow to a helper is no workflow.
func (c *checker) takesContext(fn ast.Expr) bool {
	sig, ok := c.TypesInfo.TypeOf(fn).(*types.Signature)
	return ok && sig.Params().Len() > 0 && isContext(sig.Params().At(0).Type())
}

// roleOfVariable says what the function in a local variable is, by what is done
// with the variable.
func (c *checker) roleOfVariable(e ast.Expr) role {
	id, ok := e.(*ast.Ident)
	if !ok {
		return detached
	}
	v := c.varOf(id)
	if v == nil || isGlobal(v) {
		return detached
	}
	found := detached
	for _, use := range c.usesOf(v) {
		r := detached
		if call, ok := c.parents[use].(*ast.CallExpr); ok {
			switch {
			case ast.Unparen(call.Fun) != use:
				r = c.roleAsArgument(call, use)
			case !c.takesContext(use):
				r = inline
			}
		}
		switch {
		case r == inline && !c.inBody(use): // called: the strictest reading
			return inline
		case r == inline: // called in a body, it is a part of that
			r = bodyRole
		}
		found = max(found, r)
	}
	return found
}

// inBody reports whether a node is within the body of a step, inside the function
// declaration around it.
func (c *checker) inBody(n ast.Node) bool {
	for p := c.parents[n]; p != nil; p = c.parents[p] {
		if lit, ok := p.(*ast.FuncLit); ok {
			switch c.directRole(lit) {
			case bodyRole:
				return true
			case scopeRole:
				return false
			}
		}
	}
	return false
}

// directRole is roleOf for a literal that is an argument; others are inline. It does
// not look at variables, which could lead back to where it began.
func (c *checker) directRole(lit *ast.FuncLit) role {
	if call, ok := c.parents[lit].(*ast.CallExpr); ok && ast.Unparen(call.Fun) != lit {
		return c.roleAsArgument(call, lit)
	}
	return inline
}

// varOf returns the variable that an identifier defines or uses.
func (c *checker) varOf(id *ast.Ident) *types.Var {
	if v, ok := c.TypesInfo.Defs[id].(*types.Var); ok {
		return v
	}
	v, _ := c.TypesInfo.Uses[id].(*types.Var)
	return v
}

// usesOf returns the identifiers that use a variable, in the order of the source.
func (c *checker) usesOf(v *types.Var) []*ast.Ident { return c.uses[v] }

// isGlobal reports whether a variable is one of a package.
func isGlobal(v *types.Var) bool {
	return !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

// function is a declaration or a literal.
type function struct {
	node ast.Node
	typ  *ast.FuncType
	body *ast.BlockStmt
}

func functionOf(n ast.Node) (function, bool) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return function{n, n.Type, n.Body}, n.Body != nil
	case *ast.FuncLit:
		return function{n, n.Type, n.Body}, true
	}
	return function{}, false
}

// own visits what runs as a part of a function itself: not the bodies of steps, nor
// branches, nor functions that are kept for later.
func (c *checker) own(body ast.Node, visit func(n ast.Node) bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if lit, ok := n.(*ast.FuncLit); ok && ast.Node(lit) != body {
			switch c.roleOf(lit) {
			case inline:
			default:
				return false
			}
		}
		return visit(n)
	})
}

// makesDurableCalls reports whether the code itself makes durable calls, directly or
// through a function that does.
func (c *checker) makesDurableCalls(body ast.Node) (found bool) {
	if c.looking[body] {
		return false // it calls itself
	}
	c.looking[body] = true
	defer delete(c.looking, body)
	c.own(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && c.marks(call) {
			found = true
		}
		return !found
	})
	return found
}

// marks reports whether only workflow code makes this call.
func (c *checker) marks(call *ast.CallExpr) bool {
	if _, kind, ok := c.durableCall(call); ok {
		return kind.marks
	}
	if !c.passesContext(call) {
		return false
	}
	if lit := c.localFunction(call); lit != nil {
		return c.makesDurableCalls(lit.Body)
	}
	fn := c.callee(call)
	return fn != nil && c.factOf(fn).Durable
}

// localFunction returns the literal that is called through a local variable.
func (c *checker) localFunction(call *ast.CallExpr) *ast.FuncLit {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return nil
	}
	v := c.varOf(id)
	if v == nil {
		return nil
	}
	if lit, known := c.locals[v]; known {
		return lit
	}
	c.locals[v] = nil
	def := c.defs[v]
	switch p := c.parents[def].(type) {
	case *ast.AssignStmt:
		if i := slices.Index(p.Lhs, ast.Expr(def)); i >= 0 && len(p.Lhs) == len(p.Rhs) {
			c.locals[v], _ = ast.Unparen(p.Rhs[i]).(*ast.FuncLit)
		}
	case *ast.ValueSpec:
		if i := slices.Index(p.Names, def); i >= 0 && len(p.Names) == len(p.Values) {
			c.locals[v], _ = ast.Unparen(p.Values[i]).(*ast.FuncLit)
		}
	}
	return c.locals[v]
}

// isDurable reports whether a call is recorded, or makes calls that are.
func (c *checker) isDurable(call *ast.CallExpr) bool {
	if _, kind, ok := c.durableCall(call); ok {
		return kind.durable
	}
	return c.marks(call)
}
