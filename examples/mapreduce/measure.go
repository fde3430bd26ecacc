package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Figures are what one file measures.
type Figures struct {
	File      string // below GOROOT/src
	Lines     int
	Funcs     int
	Gos       int // go statements
	ErrChecks int // if err != nil
	Longest   Func
	Imports   []string
}

// Func is a function and its length.
type Func struct {
	Name  string
	Lines int
}

// sources returns the Go files below root/src in order, without test data, some
// of which is deliberately not valid Go.
func sources(root string) ([]string, error) {
	src := filepath.Join(root, "src")
	var found []string
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != src && (name == "testdata" || name[0] == '.' || name[0] == '_'):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(name, ".go"):
			rel, err := filepath.Rel(src, path)
			found = append(found, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// measure parses a file, whatever system it is for.
func measure(root, name string) (Figures, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Join(root, "src", filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
	if err != nil {
		return Figures{}, err
	}
	f := Figures{File: name, Lines: fset.File(file.Pos()).LineCount()}
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return Figures{}, err
		}
		f.Imports = append(f.Imports, path)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f.Funcs++
			lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
			if lines > f.Longest.Lines { // a tie keeps the first
				f.Longest = Func{n.Name.Name, lines}
			}
		case *ast.GoStmt:
			f.Gos++
		case *ast.IfStmt:
			if isErrCheck(n.Cond) {
				f.ErrChecks++
			}
		}
		return true
	})
	return f, nil
}

// isErrCheck reports whether a condition reads err != nil.
func isErrCheck(cond ast.Expr) bool {
	b, ok := cond.(*ast.BinaryExpr)
	return ok && b.Op == token.NEQ && isName(b.X, "err") && isName(b.Y, "nil")
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
