package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A funcFact is what is known of a function by those who call it.
type funcFact struct {
	// Durable: it makes durable calls with the context it is given.
	Durable bool
	// Bodies are the parameters that are functions and run only as bodies of steps.
	Bodies []int
	// Effects are what it does that workflow code must not, at most one of each rule.
	// Workflow code has none here: there, the findings are its own.
	Effects []effect
}

// An effect is what a function does, and where. By names the function that was called,
// if it is not the code's own.
type effect struct{ Rule, What, Where, By string }

// AFact marks it as a fact.
func (*funcFact) AFact() {}

func (f *funcFact) String() string {
	var parts []string
	if f.Durable {
		parts = append(parts, "durable")
	}
	for _, i := range f.Bodies {
		parts = append(parts, fmt.Sprintf("body(%d)", i))
	}
	for _, e := range f.Effects {
		parts = append(parts, e.Rule)
	}
	return strings.Join(parts, " ")
}

func (f *funcFact) empty() bool { return !f.Durable && len(f.Bodies) == 0 && len(f.Effects) == 0 }

func (f *funcFact) add(e effect) bool {
	if slices.ContainsFunc(f.Effects, func(o effect) bool { return o.Rule == e.Rule }) {
		return false
	}
	f.Effects = append(f.Effects, e)
	return true
}

var nothing = &funcFact{}

// factOf returns what is known of a function. What functions of other modules do
// beside durable calls is their own affair: a library may read the clock for its log.
func (c *checker) factOf(fn *types.Func) *funcFact {
	if f := c.facts[fn]; f != nil {
		return f
	}
	if fn.Pkg() == nil || fn.Pkg() == c.Pkg {
		return nothing
	}
	f := &funcFact{}
	if !c.ImportObjectFact(fn, f) {
		f = nothing
	} else if path := fn.Pkg().Path(); c.Module != nil && path != c.Module.Path && !strings.HasPrefix(path, c.Module.Path+"/") {
		f = &funcFact{Durable: f.Durable, Bodies: f.Bodies}
	}
	c.facts[fn] = f
	return f
}

// fixpoint finds out what the functions of the package are and do. Each part is
// repeated until nothing is added, since functions call each other.
func (c *checker) fixpoint() {
	repeat := func(step func(fn *types.Func, d *ast.FuncDecl) bool) {
		for again := true; again; {
			again = false
			for _, fn := range c.ordered {
				again = step(fn, c.decls[fn]) || again
			}
		}
	}
	repeat(c.findBodies)
	repeat(func(fn *types.Func, d *ast.FuncDecl) bool {
		f := c.facts[fn]
		if f.Durable || !c.makesDurableCalls(d.Body) {
			return false
		}
		f.Durable = true
		return true
	})
	c.findWorkflows()
	repeat(func(fn *types.Func, d *ast.FuncDecl) (added bool) {
		if c.workflow[fn] {
			return false
		}
		f := c.facts[fn]
		c.own(d.Body, func(n ast.Node) bool {
			for _, e := range c.effectsAt(n) {
				if !c.suppressed(e.Rule, n.Pos()) {
					added = f.add(e) || added
				}
			}
			return true
		})
		return added
	})
}

// findBodies finds the parameters that are run as bodies and nowhere else.
func (c *checker) findBodies(fn *types.Func, d *ast.FuncDecl) (added bool) {
	f := c.facts[fn]
	params := fn.Signature().Params()
	for i := range params.Len() {
		p := params.At(i)
		if _, ok := p.Type().Underlying().(*types.Signature); !ok || slices.Contains(f.Bodies, i) {
			continue
		}
		uses := c.usesOf(p)
		onlyBodies := len(uses) > 0
		for _, use := range uses {
			if !c.inBody(use) && !c.isBodyArgument(use) && !c.isNilCheck(use) {
				onlyBodies = false
			}
		}
		if onlyBodies {
			f.Bodies = append(f.Bodies, i)
			added = true
		}
	}
	return added
}

func (c *checker) isBodyArgument(use *ast.Ident) bool {
	call, ok := c.parents[use].(*ast.CallExpr)
	return ok && call.Fun != ast.Expr(use) && c.roleAsArgument(call, use) == bodyRole
}

func (c *checker) isNilCheck(use *ast.Ident) bool {
	b, ok := c.parents[use].(*ast.BinaryExpr)
	return ok && (b.Op == token.EQL || b.Op == token.NEQ)
}

// findWorkflows finds the declared functions that are workflow code.
func (c *checker) findWorkflows() {
	var work []ast.Node
	add := func(fn *types.Func) {
		if d := c.decls[fn]; d != nil && !c.workflow[fn] {
			c.workflow[fn] = true
			work = append(work, d.Body)
		}
	}
	for _, fn := range c.ordered {
		if c.facts[fn].Durable {
			add(fn)
		}
	}
	for _, file := range c.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name, _, ok := c.durableCall(n); ok && name == "Define" {
					for _, a := range n.Args {
						if fn := c.funcNamed(a); fn != nil {
							add(fn)
						}
					}
				}
			case *ast.FuncLit:
				if c.isRoot(n) {
					work = append(work, n.Body)
				}
			}
			return true
		})
	}
	for len(work) > 0 {
		body := work[0]
		work = work[1:]
		c.own(body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && c.passesContext(call) {
				if fn := c.callee(call); fn != nil {
					add(fn)
				}
				if lit := c.localFunction(call); lit != nil && !c.called[lit] {
					c.called[lit] = true
					work = append(work, lit.Body)
				}
			}
			return true
		})
	}
}

// isRoot reports whether a function literal is workflow code by itself: it is given
// to Define, workflow code calls it through a variable, or it makes durable calls and is a
// branch, an item, or kept for later.
func (c *checker) isRoot(lit *ast.FuncLit) bool {
	if c.called[lit] {
		return true
	}
	switch c.roleOf(lit) {
	case scopeRole:
		if call, ok := c.parents[lit].(*ast.CallExpr); ok {
			if name, _, ok := c.durableCall(call); ok && name == "Define" {
				return true
			}
		}
		return c.makesDurableCalls(lit.Body)
	case detached:
		return c.makesDurableCalls(lit.Body)
	}
	return false
}

// funcNamed returns the function that an expression names.
func (c *checker) funcNamed(e ast.Expr) *types.Func {
	var id *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		id = e
	case *ast.SelectorExpr:
		id = e.Sel
	case *ast.IndexExpr:
		return c.funcNamed(e.X)
	case *ast.IndexListExpr:
		return c.funcNamed(e.X)
	default:
		return nil
	}
	fn, _ := c.TypesInfo.Uses[id].(*types.Func)
	if fn == nil {
		return nil
	}
	return fn.Origin()
}
