package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

// sqlStatement is a statement that store/postgres may send to a server.
type sqlStatement struct {
	name   string
	tokens []string
}

// sqlToken matches a comment, a string, a quoted name, the quotes of a function's body, a
// parameter, a word, a number, or a single character.
var sqlToken = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$|\$\d+|[A-Za-z_]\w*|\d+(?:\.\d+)?|::|\S`)

// sqlTokens splits SQL, with words in lower case and without comments.
func sqlTokens(t *testing.T, name, sql string) (tokens []string) {
	t.Helper()
	for _, m := range sqlToken.FindAllString(sql, -1) {
		switch {
		case strings.HasPrefix(m, "--"), strings.HasPrefix(m, "/*"):
		case m[0] == '\'' || m[0] == '"':
			require.Greater(t, len(m), 1, "%s: a quote that does not end", name)
			tokens = append(tokens, m)
		default:
			tokens = append(tokens, strings.ToLower(m))
		}
	}
	return tokens
}

// sqlSplit splits tokens at the semicolons outside of function bodies.
func sqlSplit(tokens []string) (list [][]string) {
	from, body := 0, false
	for i, tok := range append(slices.Clone(tokens), ";") {
		switch {
		case tok == "$$":
			body = !body
		case tok == ";" && !body:
			if i > from {
				list = append(list, tokens[from:i])
			}
			from = i + 1
		}
	}
	return list
}

// sqlVerb matches the beginning of a statement in the source.
var sqlVerb = regexp.MustCompile(`^\s*(?:SELECT|WITH|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|SET|SHOW|BEGIN|START TRANSACTION|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|LOCK TABLE|LISTEN|UNLISTEN|NOTIFY|VACUUM|ANALYZE|TRUNCATE|EXPLAIN|COPY|DO|GRANT|REVOKE)\b`)

// onlyPostgreSQL matches what store/postgres leaves out of a migration on other servers.
var onlyPostgreSQL = regexp.MustCompile(`(?s)-- begin: PostgreSQL\n.*?-- end: PostgreSQL\n`)

// postgresStatements returns what store/postgres sends: the named statements, the migrations
// as servers other than PostgreSQL get them, and the statements in the source.
func postgresStatements(t *testing.T) (list []sqlStatement) {
	t.Helper()
	dir := filepath.Join(root, "store/postgres")
	named, err := sqlstore.ReadStatements(os.DirFS(dir), "sql", nil)
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		parts := sqlSplit(sqlTokens(t, name, named[name].SQL))
		require.Len(t, parts, 1, name)
		list = append(list, sqlStatement{name, parts[0]})
	}
	migrations, err := filepath.Glob(filepath.Join(dir, "migrations", "*.sql"))
	require.NoError(t, err)
	require.NotEmpty(t, migrations)
	for _, path := range migrations {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		file := strings.TrimSuffix(filepath.Base(path), ".sql")
		for i, tokens := range sqlSplit(sqlTokens(t, file, onlyPostgreSQL.ReplaceAllString(string(text), ""))) {
			list = append(list, sqlStatement{fmt.Sprintf("%s/%d", file, i+1), tokens})
		}
	}
	for _, dir := range []string{"store/postgres", "internal/sqlstore"} {
		list = append(list, sourceStatements(t, dir)...)
	}
	return list
}

// sourceStatements returns the statements in the strings of a package's source. What is joined
// with + is one string, in which an x stands for each part that is not constant.
func sourceStatements(t *testing.T, dir string) (list []sqlStatement) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, dir)
	set := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		found := 0
		add := func(text string) {
			for _, tokens := range sqlSplit(sqlTokens(t, path, text)) {
				found++
				list = append(list, sqlStatement{fmt.Sprintf("%s/%d", filepath.Base(path), found), tokens})
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				// Errors speak of statements; they send none.
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Errorf" || f.Sel.Name == "New" && fmt.Sprint(f.X) == "errors") {
					return false
				}
			case *ast.SelectorExpr:
				switch n.Sel.Name {
				case "LevelReadCommitted":
					add("BEGIN ISOLATION LEVEL READ COMMITTED")
				case "LevelRepeatableRead", "LevelSnapshot", "LevelSerializable":
					add("BEGIN ISOLATION LEVEL REPEATABLE READ")
				}
			case *ast.BasicLit, *ast.BinaryExpr:
				text, known := joined(n)
				if !known {
					return true
				}
				if sqlVerb.MatchString(text) {
					add(text)
				}
				return false
			}
			return true
		})
	}
	return list
}

// joined returns the text of a string, or of one that is joined with +; known: some of it is
// constant.
func joined(n ast.Node) (text string, known bool) {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return joined(n.X)
	case *ast.BasicLit:
		if n.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(n.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if n.Op != token.ADD {
			return "", false
		}
		left, one := joined(n.X)
		right, other := joined(n.Y)
		if !one {
			left = " x "
		}
		if !other {
			right = " x "
		}
		return left + right, one || other
	}
	return "", false
}
