package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var apiRow = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)\\(([^)]*)\\)` \\| [^|]+ \\|$")

// The page that lists the API lists what there is, with the parameters that there
// are. It is for reading in one go: some thirty names and no more.
func TestTheAPIOnAPageIsTheAPI(t *testing.T) {
	have := parameters(t, "durable")
	for name, params := range parameters(t, "durable/durabletest") {
		have["durabletest."+name] = params
	}
	page := read(t, "docs/api.md")
	rows := apiRow.FindAllStringSubmatch(page, -1)
	require.Equal(t, strings.Count(page, "\n| `"), len(rows), "a row of docs/api.md is not `name(parameters)` and one line")
	seen := map[string]bool{}
	for _, row := range rows {
		require.False(t, seen[row[1]], "%s is there twice", row[1])
		seen[row[1]] = true
		params, ok := have[row[1]]
		require.True(t, ok, "%s is no exported function or method", row[1])
		require.Equal(t, params, row[2], row[1])
	}
	require.GreaterOrEqual(t, len(rows), 25)
	require.LessOrEqual(t, len(rows), 40)
}

// parameters returns the exported functions and methods of a package with the names
// of their parameters, as a page shows them: options are left out, and a parameter
// that is a struct of this package is named by its type.
func parameters(t *testing.T, pkg string) map[string]string {
	t.Helper()
	found := map[string]string{}
	matches, err := filepath.Glob(path.Join(root, pkg, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	for _, file := range matches {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				name = receiver(f.Recv.List[0].Type) + "." + name
			}
			found[name] = shown(f.Type.Params)
		}
	}
	require.NotEmpty(t, found, pkg)
	return found
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// shown returns the parameters as a page shows them.
func shown(params *ast.FieldList) string {
	var names []string
	for _, p := range params.List {
		if variadic, ok := p.Type.(*ast.Ellipsis); ok && strings.Contains(receiver(variadic.Elt), "Option") {
			continue
		}
		for _, name := range p.Names {
			shown := name.Name
			if typ, ok := p.Type.(*ast.Ident); ok && ast.IsExported(typ.Name) && len(typ.Name) > 1 { // no type parameter
				shown = typ.Name
			}
			names = append(names, shown)
		}
	}
	return strings.Join(names, ", ")
}

var named = regexp.MustCompile("`(?:durable|durabletest)\\.([A-Z]\\w+)")

// A guide for those who know another product names ours: each name exists.
func TestTheWordsOfTheOtherProductsLeadToNamesOfOurs(t *testing.T) {
	have := parameters(t, "durable")
	for name := range parameters(t, "durable/durabletest") {
		have[name] = ""
	}
	names := named.FindAllStringSubmatch(read(t, "docs/guides/coming-from.md"), -1)
	require.NotEmpty(t, names)
	for _, m := range names {
		if _, ok := have[m[1]]; !ok && m[1] != "Policy" && m[1] != "AutoID" {
			t.Errorf("%s is no function of durable or durabletest", m[1])
		}
	}
}
