package docs_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namesErrors finds that a comment says which errors there are: by name or type, or those of
// another function.
var namesErrors = regexp.MustCompile(`\bErr[A-Z]\w*|\b[A-Z]\w*Error\b|Errors? (is|are) those of|the errors of this package|of no type that a caller can test for`)

// marks are functions whose result is an error that they were given, and methods that encoding and
// package errors prescribe.
var marks = []string{"Permanent", "RetryAfter", "Unwrap", "MarshalJSON", "UnmarshalJSON", "AppendBinary", "UnmarshalBinary"}

// Who calls a function that returns an error has to know which errors to expect, and reads that
// where the function is documented.
func TestExportedFunctionsSayWhichErrorsTheyReturn(t *testing.T) {
	for _, pkg := range []string{"durable", "store", "operate"} {
		n := 0
		for name, f := range documented(t, pkg) {
			method := name[strings.LastIndex(name, ".")+1:]
			if !returnsError(f.typ) || slices.Contains(marks, method) {
				continue
			}
			n++
			if !namesErrors.MatchString(f.doc) {
				t.Errorf("%s.%s returns an error, and its comment does not say which: name them, or the function whose errors they are", pkg, name)
			}
		}
		require.Positive(t, n, pkg)
	}
}

// Each name on the page of the API is shown in use where people look it up.
func TestEveryNameOfTheAPIOnAPageHasAnExample(t *testing.T) {
	examples := map[string]bool{}
	for _, pkg := range []string{"durable", "durable/durabletest"} {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range exampleFunc.FindAllStringSubmatch(string(text), -1) {
				examples[m[1]] = true
			}
		}
	}
	require.True(t, examples[""], "package durable has an example of a whole program")
	for _, row := range apiRow.FindAllStringSubmatch(read(t, "docs/api.md"), -1) {
		name := strings.ReplaceAll(strings.TrimPrefix(row[1], "durabletest."), ".", "_")
		if !examples[name] {
			t.Errorf("%s is on docs/api.md and has no Example%s", row[1], name)
		}
	}
}

// exampleFunc finds examples; what follows a name after an underscore, in lower case, is a
// further example of it.
var exampleFunc = regexp.MustCompile(`(?m)^func Example(\w*?)(?:_[a-z]\w*)?\(\) \{`)

// Each package says what it is for.
func TestEveryPackageHasACommentThatBeginsWithItsName(t *testing.T) {
	n := 0
	require.NoError(t, filepath.WalkDir(root, func(dir string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || dir != root && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		d := parsed(t, dir)
		if d == nil {
			return nil
		}
		n++
		words := strings.Fields(d.Doc)
		switch {
		case d.Name == "main":
			if len(words) < 5 {
				t.Errorf("%s: a program without a comment", dir)
			}
		case len(words) < 4 || words[0] != "Package" || words[1] != d.Name:
			t.Errorf("%s: the comment of the package does not begin with \"Package %s\"", dir, d.Name)
		}
		return nil
	}))
	require.Greater(t, n, 50)
}

type documentedFunc struct {
	typ *ast.FuncType
	doc string
}

// documented returns the exported functions and methods of a package, and the methods of
// store.Store; those of other interfaces are what users supply, or optional.
func documented(t *testing.T, pkg string) map[string]documentedFunc {
	t.Helper()
	found := map[string]documentedFunc{}
	d := parsed(t, filepath.Join(root, pkg))
	for _, f := range d.Funcs {
		found[f.Name] = documentedFunc{f.Decl.Type, f.Doc}
	}
	for _, typ := range d.Types {
		for _, f := range slices.Concat(typ.Funcs, typ.Methods) {
			found[typ.Name+"."+f.Name] = documentedFunc{f.Decl.Type, f.Doc}
		}
		for _, s := range typ.Decl.Specs {
			in, ok := s.(*ast.TypeSpec).Type.(*ast.InterfaceType)
			if !ok || typ.Name != "Store" {
				continue
			}
			for _, m := range in.Methods.List {
				if f, ok := m.Type.(*ast.FuncType); ok && m.Names[0].IsExported() {
					found[typ.Name+"."+m.Names[0].Name] = documentedFunc{f, m.Doc.Text() + typ.Doc}
				}
			}
		}
	}
	return found
}

// parsed returns the documentation of the package in a folder; nil: there is none.
func parsed(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil
	}
	d, err := doc.NewFromFiles(fset, files, dir, doc.PreserveAST)
	require.NoError(t, err, dir)
	return d
}

func returnsError(f *ast.FuncType) bool {
	if f.Results == nil {
		return false
	}
	switch last := f.Results.List[len(f.Results.List)-1].Type.(type) {
	case *ast.Ident:
		return last.Name == "error"
	case *ast.IndexListExpr: // iter.Seq2[T, error]
		id, ok := last.Indices[len(last.Indices)-1].(*ast.Ident)
		return ok && id.Name == "error"
	}
	return false
}
