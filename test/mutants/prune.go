package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// prune writes copies into dir of the test files of a package, with nothing but what the tests
// that match run need, and adds them to an overlay: most of the time that a mutant takes goes
// into compiling the other tests. It knows names, and no types. What does not compile then is
// compiled whole.
func prune(pkg, run, dir string, overlay map[string]string) error {
	var names []string // without those of subtests
	for one := range strings.SplitSeq(run, "|") {
		name, _, _ := strings.Cut(one, "/")
		names = append(names, name)
	}
	tests, err := regexp.Compile(strings.Join(names, "|"))
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil {
		return err
	}
	var all []*testFile
	byName := map[string][]*decl{}
	var todo []*decl
	for _, name := range files {
		f, err := readTestFile(name)
		if err != nil {
			return err
		}
		if !f.external {
			continue // what others need of it, it does not say
		}
		all = append(all, f)
		for _, d := range f.decls {
			for _, n := range d.names {
				byName[n] = append(byName[n], d)
			}
			if d.always || d.test != "" && tests.MatchString(d.test) {
				todo = append(todo, d)
			}
		}
	}
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; d.kept {
			continue
		}
		d.kept = true
		ast.Inspect(d.node, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				todo = append(todo, byName[id.Name]...)
			}
			return true
		})
	}
	for _, f := range all {
		from, _ := filepath.Abs(f.name)
		text, any := f.rest()
		if overlay[from] = ""; !any {
			continue
		}
		overlay[from] = filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(overlay[from]), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(overlay[from], text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// testFile is a file of tests, with its declarations.
type testFile struct {
	name     string
	text     []byte
	set      *token.FileSet
	file     *ast.File
	external bool // of the package that ends with _test
	decls    []*decl
}

// decl is a declaration at the top of a file.
type decl struct {
	node   ast.Decl
	names  []string // by which others reach it; a method by its receiver
	test   string   // the name of a test
	always bool     // an init, a TestMain, or a variable that nobody can name
	kept   bool
}

func readTestFile(name string) (*testFile, error) {
	f := &testFile{name: name, set: token.NewFileSet()}
	var err error
	if f.text, err = os.ReadFile(name); err != nil {
		return nil, err
	}
	if f.file, err = parser.ParseFile(f.set, name, f.text, parser.ParseComments); err != nil {
		return nil, err
	}
	f.external = strings.HasSuffix(f.file.Name.Name, "_test")
	for _, node := range f.file.Decls {
		if g, ok := node.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		f.decls = append(f.decls, declOf(node))
	}
	return f, nil
}

func declOf(node ast.Decl) *decl {
	d := &decl{node: node}
	switch node := node.(type) {
	case *ast.FuncDecl:
		name := node.Name.Name
		switch {
		case node.Recv != nil:
			ast.Inspect(node.Recv.List[0].Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					d.names = append(d.names, id.Name)
				}
				return true
			})
		case name == "init" || name == "TestMain":
			d.always = true
		case strings.HasPrefix(name, "Test"):
			d.test = name
			d.names = []string{name}
		default:
			d.names = []string{name}
		}
	case *ast.GenDecl:
		for _, spec := range node.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				d.names = append(d.names, s.Name.Name)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					d.names = append(d.names, id.Name)
					d.always = d.always || id.Name == "_"
				}
			}
		}
	}
	return d
}

// rest returns the file with nothing but the declarations that are kept; any reports whether
// there is one, or an import that has an effect.
func (f *testFile) rest() (text []byte, any bool) {
	at := func(p token.Pos) int { return f.set.Position(p).Offset }
	var body bytes.Buffer
	used := map[string]bool{}
	for _, d := range f.decls {
		if !d.kept {
			continue
		}
		any = true
		from := d.node.Pos()
		switch n := d.node.(type) {
		case *ast.FuncDecl:
			if n.Doc != nil {
				from = n.Doc.Pos()
			}
		case *ast.GenDecl:
			if n.Doc != nil {
				from = n.Doc.Pos()
			}
		}
		body.Write(f.text[at(from):at(d.node.End())])
		body.WriteString("\n\n")
		ast.Inspect(d.node, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := s.X.(*ast.Ident); ok {
					used[id.Name] = true
				}
			}
			return true
		})
	}
	var out bytes.Buffer
	out.Write(f.text[:at(f.file.Name.End())]) // with what constrains the build
	out.WriteString("\n\n")
	for _, i := range f.file.Imports {
		switch name := nameOf(i); {
		case name == "_" || name == ".":
			any = true
			fallthrough
		case used[name]:
			out.WriteString("import ")
			out.Write(f.text[at(i.Pos()):at(i.End())])
			out.WriteString("\n")
		}
	}
	out.WriteString("\n")
	out.Write(body.Bytes())
	return out.Bytes(), any
}

var major = regexp.MustCompile(`^v\d+$`)

// nameOf returns the name of an import, which is a guess where the file has none.
func nameOf(i *ast.ImportSpec) string {
	if i.Name != nil {
		return i.Name.Name
	}
	p := strings.Trim(i.Path.Value, `"`)
	if major.MatchString(path.Base(p)) {
		p = path.Dir(p)
	}
	return strings.TrimPrefix(path.Base(p), "go-")
}
