// Package vet checks the code of workflows: what a replay would do otherwise
// than the first execution did, and what a crash would lose. Analyzer works in
// any driver of golang.org/x/tools/go/analysis; the command durablevet is one.
//
// # How it reads a package
//
// Code is workflow code if it makes durable calls, if it is registered with
// durable.Define, or if workflow code of its package calls it with a context.
// The closures given to a step are its body, which runs once and is recorded;
// almost everything is allowed there. A branch or item that makes no durable
// call is treated as a body, since its outcome is recorded as a whole.
//
// Of functions in other packages of the module it knows, by facts, what they
// do: read the clock, draw random numbers, do I/O, write package variables,
// make durable calls, or run an argument as the body of a step. Calls through
// interfaces and function values are not followed.
package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"sort"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports what does not survive a replay. Each finding begins with the
// name of its rule, which is also the category of the diagnostic.
var Analyzer = &analysis.Analyzer{
	Name:       "durablevet",
	Doc:        "report workflow code that does not survive a replay\n\nSee docs/durablevet.md of the module for the rules.",
	URL:        docs,
	Run:        run,
	FactTypes:  []analysis.Fact{new(funcFact)},
	ResultType: reflect.TypeFor[[]Finding](),
}

const docs = "https://github.com/holdfast-dev/holdfast/blob/main/docs/durablevet.md"

// The rules, by the names that findings and suppressions use.
const (
	ruleClock     = "clock"
	ruleRandom    = "random"
	ruleMapOrder  = "maporder"
	ruleGoroutine = "goroutine"
	ruleSelect    = "select"
	ruleIO        = "io"
	ruleGlobal    = "global"
	ruleCapture   = "capture"
	ruleStepName  = "stepname"
	ruleJSON      = "json"
	ruleDropped   = "dropped"
	ruleContext   = "context"
	// ruleIgnore is about suppressions, and cannot itself be suppressed.
	ruleIgnore = "ignore"
)

// Rules are the names of all rules that can be suppressed.
func Rules() []string {
	return []string{ruleClock, ruleRandom, ruleMapOrder, ruleGoroutine, ruleSelect, ruleIO, ruleGlobal, ruleCapture, ruleStepName, ruleJSON, ruleDropped, ruleContext}
}

// A Finding is one that was reported.
type Finding struct {
	Rule string
	Pos  token.Pos
}

// A checker checks one package.
type checker struct {
	*analysis.Pass
	parents map[ast.Node]ast.Node
	uses    map[*types.Var][]*ast.Ident
	defs    map[*types.Var]*ast.Ident
	// decls are the functions of this package that have a body.
	decls   map[*types.Func]*ast.FuncDecl
	ordered []*types.Func
	facts   map[*types.Func]*funcFact
	// workflow are those that are workflow code.
	workflow map[*types.Func]bool
	// called are the literals in local variables that workflow code calls.
	called map[*ast.FuncLit]bool
	// locals are the literals that local variables were defined with.
	locals map[*types.Var]*ast.FuncLit
	// looking are the functions that makesDurableCalls is looking at.
	looking  map[ast.Node]bool
	ignores  []*ignore
	reported map[Finding]bool
	findings []Finding
}

func run(pass *analysis.Pass) (any, error) {
	if pass.Module == nil && !strings.Contains(strings.Split(pass.Pkg.Path(), "/")[0], ".") && pass.Pkg.Name() != "main" {
		return []Finding(nil), nil // the standard library: what matters of it is in the tables
	}
	if pass.Pkg.Path() == durablePath {
		return []Finding(nil), nil // the engine itself
	}
	c := &checker{
		Pass: pass, parents: map[ast.Node]ast.Node{}, uses: map[*types.Var][]*ast.Ident{}, defs: map[*types.Var]*ast.Ident{}, decls: map[*types.Func]*ast.FuncDecl{},
		facts: map[*types.Func]*funcFact{}, workflow: map[*types.Func]bool{}, called: map[*ast.FuncLit]bool{},
		locals: map[*types.Var]*ast.FuncLit{}, looking: map[ast.Node]bool{}, reported: map[Finding]bool{},
	}
	if err := c.collect(); err != nil {
		return nil, err
	}
	c.fixpoint()
	c.check()
	c.checkIgnores()
	for _, fn := range c.ordered {
		if f := c.facts[fn]; !f.empty() {
			pass.ExportObjectFact(fn, f)
		}
	}
	sort.Slice(c.findings, func(i, j int) bool { return c.findings[i].Pos < c.findings[j].Pos })
	return c.findings, nil
}

// collect reads the syntax: parents, functions, suppressions.
func (c *checker) collect() error {
	for _, file := range c.Files {
		var stack []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			if len(stack) > 0 {
				c.parents[n] = stack[len(stack)-1]
			}
			stack = append(stack, n)
			if id, ok := n.(*ast.Ident); ok {
				if v, ok := c.TypesInfo.Uses[id].(*types.Var); ok {
					c.uses[v] = append(c.uses[v], id)
				} else if v, ok := c.TypesInfo.Defs[id].(*types.Var); ok {
					c.defs[v] = id
				}
			}
			return true
		})
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				if fn, ok := c.TypesInfo.Defs[d.Name].(*types.Func); ok {
					c.decls[fn] = d
					c.ordered = append(c.ordered, fn)
					c.facts[fn] = &funcFact{}
				}
			}
		}
		if err := c.collectIgnores(file); err != nil {
			return err
		}
	}
	return nil
}

// report reports a finding unless a comment suppresses it.
func (c *checker) report(rule string, at ast.Node, format string, args ...any) {
	f := Finding{Rule: rule, Pos: at.Pos()}
	if c.reported[f] || c.suppressed(rule, at.Pos()) {
		return
	}
	c.reported[f] = true
	c.findings = append(c.findings, f)
	c.Report(analysis.Diagnostic{
		Pos: at.Pos(), End: at.End(), Category: rule, URL: docs + "#" + rule,
		Message: rule + ": " + fmt.Sprintf(format, args...),
	})
}

// place is where something is, for a message about another place.
func (c *checker) place(pos token.Pos) string {
	p := c.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename[strings.LastIndexAny(p.Filename, `/\`)+1:], p.Line)
}
