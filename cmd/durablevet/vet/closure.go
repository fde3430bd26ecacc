package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// checkClosure checks what crosses the border of a body, branch or item: contexts
// that come in, variables that it sets for others, and durable calls in bodies.
func (c *checker) checkClosure(lit *ast.FuncLit, r role) {
	root, define := c.rootAround(lit)
	if define {
		return // the workflow function itself: it is executed each time
	}
	c.checkForeignContexts(lit, r)
	if r == bodyRole {
		c.own(lit.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, kind, ok := c.durableCall(call); ok && kind.marks {
					c.report(ruleContext, call, "durable.%s in the body of a step is refused: a body makes no durable calls", name)
				}
			}
			return true
		})
	}
	if !c.isWorkflow(root) {
		return // a test that looks at what its steps did
	}
	for _, w := range c.writesOut(lit) {
		if read := c.readAfter(w, lit, root); read != nil {
			c.report(ruleCapture, w.at, "%s is set here and read at %s: a replay does not run this again once it is recorded, and %s stays as it was; return the value from the step", w.name(), c.place(read.Pos()), w.name())
		}
	}
}

// isWorkflow reports whether a function is workflow code.
func (c *checker) isWorkflow(root ast.Node) bool {
	switch root := root.(type) {
	case *ast.FuncDecl:
		fn, ok := c.TypesInfo.Defs[root.Name].(*types.Func)
		return ok && c.workflow[fn]
	case *ast.FuncLit:
		return c.isRoot(root)
	}
	return false
}

// rootAround returns the outermost function around a closure that is part of the same
// execution: a declaration, or a literal that is kept or given to Define. define
// reports that the closure itself is given to Define.
func (c *checker) rootAround(lit *ast.FuncLit) (root ast.Node, define bool) {
	isDefined := func(lit *ast.FuncLit) bool {
		call, ok := c.parents[lit].(*ast.CallExpr)
		if !ok {
			return false
		}
		name, _, ok := c.durableCall(call)
		return ok && name == "Define"
	}
	if isDefined(lit) {
		return lit, true
	}
	root = lit
	for p := c.parents[lit]; p != nil; p = c.parents[p] {
		switch p := p.(type) {
		case *ast.FuncDecl:
			return p, false
		case *ast.FuncLit:
			root = p
			if isDefined(p) || c.roleOf(p) == detached {
				return p, false
			}
		}
	}
	return root, false
}

// checkForeignContexts checks for contexts from around a closure.
func (c *checker) checkForeignContexts(lit *ast.FuncLit, r role) {
	if lit.Type.Params == nil || !slices.ContainsFunc(lit.Type.Params.List, func(f *ast.Field) bool { return isContext(c.TypesInfo.TypeOf(f.Type)) }) {
		return
	}
	where := "the body of a step"
	if r == scopeRole {
		where = "a branch or item"
	}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, ok := c.TypesInfo.Uses[id].(*types.Var)
			if ok && !v.IsField() && !isGlobal(v) && isContext(v.Type()) && (v.Pos() < lit.Pos() || v.Pos() > lit.End()) {
				c.report(ruleContext, id, "%s uses the context %s from around it: it does not end with the attempt, and its durable calls are refused; use the one that the function is given", where, id.Name)
			}
		}
		return true
	})
}

// An outward write sets a variable that is declared outside of a closure.
type outward struct {
	at ast.Node
	v  *types.Var
	// fields is the path to what is written, if v leads to it: x.f.g.
	fields []string
}

func (w outward) name() string { return strings.Join(append([]string{w.v.Name()}, w.fields...), ".") }

// writesOut returns the writes of a closure to variables around it.
func (c *checker) writesOut(lit *ast.FuncLit) (found []outward) {
	add := func(e ast.Expr) {
		v := c.rootOf(e)
		if v == nil || v.IsField() || lit.Pos() <= v.Pos() && v.Pos() < lit.End() && !isGlobal(v) {
			return
		}
		found = append(found, outward{e, v, fieldsOf(e)})
	}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if r := c.roleOf(n); r == bodyRole || r == scopeRole {
				return false // checked by itself
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if id, ok := l.(*ast.Ident); !ok || c.TypesInfo.Defs[id] == nil && id.Name != "_" {
					add(l)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND && !c.isSynchronization(n.X) {
				add(n.X)
			}
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if e != nil {
						add(e)
					}
				}
			}
		case *ast.CallExpr:
			if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
				if fn := c.callee(n); fn != nil && fn.Pkg() != nil && fn.Signature().Recv() != nil && (writes(fn) || changes(fn)) {
					add(sel.X)
				}
			}
		}
		return true
	})
	return found
}

// isSynchronization reports whether e is a mutex or the like, whose address says nothing.
func (c *checker) isSynchronization(e ast.Expr) bool {
	named, ok := types.Unalias(c.TypesInfo.TypeOf(e)).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "sync" && named.Obj().Name() != "Map"
}

// writes reports whether a method of a buffer changes it.
func writes(fn *types.Func) bool {
	typ, method, _ := strings.Cut(nameOf(fn), ".")
	return (fn.Pkg().Path() == "strings" && typ == "Builder" || fn.Pkg().Path() == "bytes" && typ == "Buffer") &&
		(strings.HasPrefix(method, "Write") || strings.HasPrefix(method, "Read") || method == "Reset")
}

func fieldsOf(e ast.Expr) (fields []string) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			fields = append([]string{x.Sel.Name}, fields...)
			e = x.X
		case *ast.IndexExpr:
			fields, e = nil, x.X
		case *ast.SliceExpr:
			fields, e = nil, x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return fields
		}
	}
}

// readAfter returns where a variable is read that a closure has set, or nil.
func (c *checker) readAfter(w outward, lit *ast.FuncLit, root ast.Node) ast.Node {
	// A statement that sets the variable itself, from the result, mends it.
	if s := c.statement(lit); s != nil && c.sets(s, w.v) {
		return nil
	}
	loop := c.loopAround(lit, w.v)
	for _, use := range c.usesOf(w.v) {
		if use.Pos() < root.Pos() || use.Pos() >= root.End() || lit.Pos() <= use.Pos() && use.Pos() < lit.End() {
			continue
		}
		after := use.Pos() > lit.End()
		again := loop != nil && loop.Pos() <= use.Pos() && use.Pos() < loop.End()
		if !after && !again || !c.samePath(use, w) {
			continue
		}
		if c.isOnlySet(use) {
			if after && c.dominates(use, lit) {
				return nil // it is set anew before anyone reads it
			}
			continue
		}
		return use
	}
	return nil
}

// statement returns the statement in which a closure is an argument.
func (c *checker) statement(lit *ast.FuncLit) ast.Stmt {
	for p := c.parents[lit]; p != nil; p = c.parents[p] {
		if s, ok := p.(ast.Stmt); ok {
			return s
		}
	}
	return nil
}

func (c *checker) sets(s ast.Stmt, v *types.Var) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && c.varOf(id) == v
	})
}

// loopAround returns the outermost loop around a closure in which a variable lives on.
func (c *checker) loopAround(lit *ast.FuncLit, v *types.Var) (loop ast.Node) {
	for p := c.parents[lit]; p != nil; p = c.parents[p] {
		switch p.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			if v.Pos() < p.Pos() || v.Pos() > p.End() {
				loop = p
			}
		case *ast.FuncDecl:
			return loop
		}
	}
	return loop
}

// samePath reports whether a use of a variable may see what was written. A body that
// writes a field of a parameter or receiver is only taken to change that field.
func (c *checker) samePath(use *ast.Ident, w outward) bool {
	if len(w.fields) == 0 {
		return true
	}
	var at ast.Node = use
	for i, field := range w.fields {
		sel, ok := c.parents[at].(*ast.SelectorExpr)
		if !ok {
			return i > 0 || !c.isParameter(w.v)
		}
		if sel.Sel.Name != field {
			return false
		}
		at = sel
	}
	return true
}

// isParameter reports whether a variable is a parameter or receiver.
func (c *checker) isParameter(v *types.Var) bool {
	for fn, d := range c.decls {
		if d.Pos() <= v.Pos() && v.Pos() < d.End() {
			sig := fn.Signature()
			if sig.Recv() == v {
				return true
			}
			for i := range sig.Params().Len() {
				if sig.Params().At(i) == v {
					return true
				}
			}
		}
	}
	return false
}

// isOnlySet reports whether a use is the left side of a plain assignment, or a "_ =".
func (c *checker) isOnlySet(use *ast.Ident) bool {
	a, ok := c.parents[use].(*ast.AssignStmt)
	if !ok {
		return false
	}
	if slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { return e == use }) {
		return a.Tok == token.ASSIGN || a.Tok == token.DEFINE
	}
	return false
}

// dominates reports whether a statement after a closure is always executed when what
// follows it is: it is in a block around the closure.
func (c *checker) dominates(use ast.Node, lit *ast.FuncLit) bool {
	block := c.blockOf(use)
	for p := c.parents[ast.Node(lit)]; p != nil; p = c.parents[p] {
		if p == block {
			return true
		}
	}
	return false
}

func (c *checker) blockOf(n ast.Node) ast.Node {
	for p := c.parents[n]; p != nil; p = c.parents[p] {
		switch p.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			return p
		}
	}
	return nil
}
