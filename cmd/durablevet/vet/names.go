package vet

import (
	"go/ast"
	"go/constant"
	"go/token"
)

// A named call is a step, branch or Map with a name that is a constant.
type namedCall struct {
	call *ast.CallExpr
	kind string // that a name counts for: "step", "Map", "Go"
	name string
}

// checkNames checks that two calls in the code of one scope do not have one name.
// Alternatives may, since only one of them is made.
func (c *checker) checkNames(body *ast.BlockStmt) {
	var before []namedCall
	c.own(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		name, kind, ok := c.durableCall(call)
		if !ok || !kind.named {
			return true
		}
		value := c.TypesInfo.Types[call.Args[1]].Value
		if value == nil || value.Kind() != constant.String {
			return true
		}
		now := namedCall{call, kindOfName(name, kind), constant.StringVal(value)}
		for _, b := range before {
			if b.kind == now.kind && b.name == now.name && !c.exclusive(b.call, call) {
				c.report(ruleStepName, call.Args[1], "the name %q is also that of the call at %s: the two are told apart only by their order, and if one of them is removed the other gets its recorded result; give each a name of its own", now.name, c.place(b.call.Pos()))
				break
			}
		}
		before = append(before, now)
		return true
	})
}

func kindOfName(name string, kind callKind) string {
	if kind.bodies {
		return "step"
	}
	return name
}

// exclusive reports whether at most one of two calls is made: they are in different
// arms of an if, switch or select, or the first one's block ends the function.
func (c *checker) exclusive(a, b ast.Node) bool {
	around := map[ast.Node]ast.Node{} // what is around a, with the child that leads to it
	for at, p := a, c.parents[a]; p != nil; at, p = p, c.parents[p] {
		around[p] = at
	}
	for at, p := b, c.parents[b]; p != nil; at, p = p, c.parents[p] {
		from, common := around[p]
		if !common {
			continue
		}
		switch p := p.(type) {
		case *ast.IfStmt:
			return from == ast.Node(p.Body) && at == ast.Node(p.Else) || from == ast.Node(p.Else) && at == ast.Node(p.Body)
		case *ast.BlockStmt:
			switch from.(type) {
			case *ast.CaseClause, *ast.CommClause:
				return from != at
			}
		}
		return c.returns(a, from)
	}
	return false
}

// returns reports whether the innermost block around a, below a statement, ends the
// function or the round of its loop.
func (c *checker) returns(a, below ast.Node) bool {
	for p := c.parents[a]; p != nil && p != c.parents[below]; p = c.parents[p] {
		var list []ast.Stmt
		switch p := p.(type) {
		case *ast.BlockStmt:
			list = p.List
		case *ast.CaseClause:
			list = p.Body
		case *ast.ForStmt, *ast.RangeStmt:
			return false
		case *ast.ReturnStmt:
			if p != below {
				return true
			}
		}
		if len(list) > 0 {
			switch last := list[len(list)-1].(type) {
			case *ast.ReturnStmt:
				return true
			case *ast.BranchStmt:
				return last.Tok == token.CONTINUE || last.Tok == token.BREAK
			}
		}
	}
	return false
}
