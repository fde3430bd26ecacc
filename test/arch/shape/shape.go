// Package shape measures how the code is laid out: packages by files, lines and
// exported names, types by fields, methods and the files these are spread over, the
// longest functions, and the references between the files of a package that close a
// circle.
package shape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Package is the shape of one package, without its tests.
type Package struct {
	Path     string // import path
	Files    int
	Lines    int
	Longest  File // by lines
	Exported Exported
	Comment  bool // it has a package comment
	Types    []Type
	Funcs    []Func // all of them, the longest first
	Arrows   Arrows
}

// File is a file of a package.
type File struct {
	Name  string
	Lines int
}

// Exported counts the names that a package exports. Methods are those of exported
// types.
type Exported struct{ Types, Funcs, Methods, Values int }

// Type is a type with methods.
type Type struct {
	Name    string
	Fields  int // of a struct
	Methods int
	Files   int // that its methods stand in
}

// Func is a function or method.
type Func struct {
	Name  string // Type.Name for a method
	File  string
	Lines int
}

// Arrows are the references between the files of a package: one for each pair of
// files of which the first uses what the second declares.
type Arrows struct {
	All int
	// Upward is how many of them run against the order of the files that has few of
	// those: the arrows that would have to go before the package could be cut in two
	// at any place. The order is the greedy one of Eades, Lin and Smyth, "A fast and
	// effective heuristic for the feedback arc set problem" (1993).
	Upward int
}

type listed struct {
	Dir        string
	ImportPath string
	Export     string
	DepOnly    bool
	GoFiles    []string
	CgoFiles   []string
}

// Measure measures the packages that match the patterns, as go list takes them in
// dir. They have to compile.
func Measure(dir string, patterns ...string) ([]Package, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,DepOnly,GoFiles,CgoFiles"}, patterns...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	var wanted []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && len(l.GoFiles) > 0 {
			wanted = append(wanted, l)
		}
	}
	var all []Package
	for _, l := range wanted {
		p, err := measure(l, exports)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.ImportPath, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func measure(l listed, exports map[string]string) (Package, error) {
	p := Package{Path: l.ImportPath}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(l.GoFiles, l.CgoFiles) {
		f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return p, err
		}
		files = append(files, f)
		p.Files++
		lines := fset.File(f.Pos()).LineCount()
		p.Lines += lines
		if lines > p.Longest.Lines {
			p.Longest = File{Name: name, Lines: lines}
		}
		p.Comment = p.Comment || f.Doc != nil
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{
		FakeImportC: true,
		Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
			if exports[path] == "" {
				return nil, fmt.Errorf("no export data of %s", path)
			}
			return os.Open(exports[path])
		}),
	}
	if _, err := config.Check(l.ImportPath, fset, files, info); err != nil {
		return p, err
	}
	p.names(files)
	p.bodies(fset, files)
	p.typesOf(fset, files)
	p.arrows(fset, files, info)
	return p, nil
}

// names counts what is exported.
func (p *Package) names(files []*ast.File) {
	for _, d := range decls(files) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch recv := receiver(d); {
			case !d.Name.IsExported():
			case recv == "":
				p.Exported.Funcs++
			case ast.IsExported(recv):
				p.Exported.Methods++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						p.Exported.Types++
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							p.Exported.Values++
						}
					}
				}
			}
		}
	}
}

// bodies measures the functions.
func (p *Package) bodies(fset *token.FileSet, files []*ast.File) {
	for _, d := range decls(files) {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		name := f.Name.Name
		if recv := receiver(f); recv != "" {
			name = recv + "." + name
		}
		from, to := fset.Position(f.Pos()), fset.Position(f.End())
		p.Funcs = append(p.Funcs, Func{Name: name, File: filepath.Base(from.Filename), Lines: to.Line - from.Line + 1})
	}
	slices.SortStableFunc(p.Funcs, func(a, b Func) int { return cmp.Compare(b.Lines, a.Lines) })
}

// typesOf measures the types that have methods.
func (p *Package) typesOf(fset *token.FileSet, files []*ast.File) {
	methods, spread, fields := map[string]int{}, map[string]map[string]bool{}, map[string]int{}
	for _, d := range decls(files) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if recv := receiver(d); recv != "" {
				methods[recv]++
				if spread[recv] == nil {
					spread[recv] = map[string]bool{}
				}
				spread[recv][fset.Position(d.Pos()).Filename] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					if st, ok := t.Type.(*ast.StructType); ok {
						fields[t.Name.Name] = st.Fields.NumFields()
					}
				}
			}
		}
	}
	for name, n := range methods {
		p.Types = append(p.Types, Type{Name: name, Fields: fields[name], Methods: n, Files: len(spread[name])})
	}
	slices.SortFunc(p.Types, func(a, b Type) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(b.Methods, a.Methods), cmp.Compare(a.Name, b.Name))
	})
}

// arrows finds which files use what others declare.
func (p *Package) arrows(fset *token.FileSet, files []*ast.File, info *types.Info) {
	of := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	g := graph{}
	for _, f := range files {
		g.add(of(f.Pos()))
	}
	for id, obj := range info.Uses {
		if obj.Pkg() == nil || obj.Pkg().Path() != p.Path || !obj.Pos().IsValid() {
			continue
		}
		if v, ok := obj.(*types.Var); ok && !v.IsField() && v.Parent() != obj.Pkg().Scope() {
			continue // local
		}
		if from, to := of(id.Pos()), of(obj.Pos()); from != to {
			g.arrow(from, to)
		}
	}
	p.Arrows = Arrows{All: g.size(), Upward: g.upward(g.order())}
}

func decls(files []*ast.File) iter.Seq2[int, ast.Decl] {
	return func(yield func(int, ast.Decl) bool) {
		n := 0
		for _, f := range files {
			for _, d := range f.Decls {
				if !yield(n, d) {
					return
				}
				n++
			}
		}
	}
}

// receiver names the type of a method's receiver; empty for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
