package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// check applies the rules to the workflow code of the package.
func (c *checker) check() {
	for _, fn := range c.ordered {
		if c.workflow[fn] {
			c.checkCode(c.decls[fn])
		}
	}
	for _, file := range c.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				if c.isRoot(n) {
					c.checkCode(n)
				}
				if r := c.roleOf(n); r == bodyRole || r == scopeRole {
					c.checkClosure(n, r)
				}
			case *ast.CallExpr:
				c.checkValues(n)
			}
			return true
		})
	}
}

// checkCode checks what one function of workflow code does itself.
func (c *checker) checkCode(root ast.Node) {
	f, _ := functionOf(root)
	c.own(f.body, func(n ast.Node) bool {
		c.reportEffects(n)
		c.checkGoroutines(n)
		c.checkDropped(n)
		c.checkContexts(n)
		if r, ok := n.(*ast.RangeStmt); ok {
			c.checkRange(r, f.body)
		}
		if call, ok := n.(*ast.CallExpr); ok {
			c.checkCollected(call, f.body)
		}
		return true
	})
	c.checkNames(f.body)
}

// checkGoroutines checks for goroutines of the code's own, and for waiting that is
// not durable.
func (c *checker) checkGoroutines(n ast.Node) {
	const wait = "a replay may take another case, and a process that ends forgets the wait; use durable.Await, durable.Sleep or durable.First"
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(ruleGoroutine, n, "a goroutine in workflow code: its calls come in an order that a replay does not repeat; use durable.Go, durable.NewGroup or durable.Map")
	case *ast.CallExpr:
		fn := c.callee(n)
		if fn == nil || fn.Pkg() == nil {
			return
		}
		switch name := nameOf(fn); {
		case fn.Pkg().Path() == "golang.org/x/sync/errgroup" && (name == "Group.Go" || name == "Group.TryGo"),
			fn.Pkg().Path() == "sync" && name == "WaitGroup.Go":
			c.report(ruleGoroutine, n, "%s in workflow code: its calls come in an order that a replay does not repeat; use durable.NewGroup", name)
		}
	case *ast.SelectStmt:
		c.report(ruleSelect, n, "select in workflow code: %s", wait)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW && !c.inComm(n) {
			c.report(ruleSelect, n, "a channel in workflow code: %s", wait)
		}
	case *ast.SendStmt:
		if !c.inComm(n) {
			c.report(ruleSelect, n, "a channel in workflow code: %s", wait)
		}
	case *ast.RangeStmt:
		if t := c.TypesInfo.TypeOf(n.X); t != nil {
			if _, ok := t.Underlying().(*types.Chan); ok {
				c.report(ruleSelect, n, "a range over a channel in workflow code: %s", wait)
			}
		}
	}
}

// inComm reports whether a node is what a case of a select waits for: the select is reported.
func (c *checker) inComm(n ast.Node) bool {
	for at, p := n, c.parents[n]; p != nil; at, p = p, c.parents[p] {
		if clause, ok := p.(*ast.CommClause); ok {
			return clause.Comm == at
		}
		if _, ok := p.(*ast.BlockStmt); ok {
			return false
		}
	}
	return false
}

// checkDropped checks for errors of durable calls that nobody looks at.
func (c *checker) checkDropped(n ast.Node) {
	var call *ast.CallExpr
	switch n := n.(type) {
	case *ast.ExprStmt:
		call, _ = ast.Unparen(n.X).(*ast.CallExpr)
	case *ast.DeferStmt:
		call = n.Call
	case *ast.GoStmt:
		call = n.Call
	case *ast.AssignStmt:
		if len(n.Rhs) != 1 {
			for i, r := range n.Rhs {
				if id, ok := n.Lhs[i].(*ast.Ident); ok && id.Name == "_" {
					c.dropped(r)
				}
			}
			return
		}
		if id, ok := n.Lhs[len(n.Lhs)-1].(*ast.Ident); ok && id.Name == "_" {
			c.dropped(n.Rhs[0])
		}
		return
	}
	if call != nil {
		c.dropped(call)
	}
}

func (c *checker) dropped(e ast.Expr) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !c.isDurable(call) {
		return
	}
	sig, ok := c.TypesInfo.TypeOf(call.Fun).(*types.Signature)
	if !ok || sig.Results().Len() == 0 || !types.Identical(sig.Results().At(sig.Results().Len()-1).Type(), errorType) {
		return
	}
	c.report(ruleDropped, call, "the error of %s is dropped: the code goes on as if it had succeeded, also after a cancel or when the run stops here; return it", c.callee(call).Name())
}
