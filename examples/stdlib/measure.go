package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Figures are what one package measures. All are whole numbers, so that they
// come out of a checkpoint exactly as they went in.
type Figures struct {
	Package      string
	Files        int // of Go, tests included
	Tests        int // of those, _test.go files
	Lines        int
	CommentLines int
	Funcs        int // functions and methods with a body, tests left out
	Exported     int // package-level names and methods, tests left out
	Imports      int // distinct, tests left out
	LongestFunc  string
	LongestLines int
}

// packages returns the directories below root/src that hold Go files, as import
// paths in order: the standard library, including its internal and vendored
// parts, without commands and test data.
func packages(root string) ([]string, error) {
	src := filepath.Join(root, "src")
	var found []string
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == src {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if name := d.Name(); rel == "cmd" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return filepath.SkipDir
		}
		names, err := goFiles(path)
		if err == nil && len(names) > 0 {
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	slices.Sort(found)
	return found, err
}

func goFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".go") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// measure parses every Go file of a package, whatever system it is for.
func measure(root, pkg string) (Figures, error) {
	dir := filepath.Join(root, "src", filepath.FromSlash(pkg))
	names, err := goFiles(dir)
	if err != nil {
		return Figures{}, err
	}
	f := Figures{Package: pkg, Files: len(names)}
	imports := map[string]bool{}
	for _, name := range names {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return Figures{}, fmt.Errorf("package %s: %w", pkg, err)
		}
		f.Lines += fset.File(file.Pos()).LineCount()
		f.CommentLines += commentLines(fset, file)
		if strings.HasSuffix(name, "_test.go") {
			f.Tests++
			continue
		}
		for _, i := range file.Imports {
			imports[i.Path.Value] = true
		}
		for _, d := range file.Decls {
			f.declaration(fset, d)
		}
	}
	f.Imports = len(imports)
	return f, nil
}

func commentLines(fset *token.FileSet, file *ast.File) int {
	n := 0
	for _, group := range file.Comments {
		n += span(fset, group)
	}
	return n
}

func span(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

func (f *Figures) declaration(fset *token.FileSet, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			f.Exported++
		}
		if d.Body == nil { // written in assembly
			return
		}
		f.Funcs++
		// A tie keeps the first, and files come in order of name.
		if n := span(fset, d); n > f.LongestLines {
			f.LongestFunc, f.LongestLines = d.Name.Name, n
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				f.count(spec.Name)
			case *ast.ValueSpec:
				f.count(spec.Names...)
			}
		}
	}
}

func (f *Figures) count(names ...*ast.Ident) {
	for _, n := range names {
		if n.IsExported() {
			f.Exported++
		}
	}
}
