package docs_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prescribed are the messages that docs/requirements.md wants word for word, with
// what they are about in the sentence. All others are constant.
var prescribed = map[string]bool{
	`fmt.Sprintf("Recovery complete: %d workflows marked failed, %d approvals restored.", len(rep.Failed), rep.approvals)`: true,
	`fmt.Sprintf("[durable] %s write failed for %s: %v", storeWord(a.to), id, err)`:                                        true,
	`fmt.Sprintf("Recovered workflow %s: %s. Created branch %d from event %d", row.ID, f.Reason(), branch, f.After)`:       true,
	`fmt.Sprintf("Recovered workflow %s: %s. Pinned to version %s on branch %d", row.ID, f.Reason(), f.Version, branch)`:   true,
	`"Applied recovery: " + rec.Reason`: true,
	`rv.plan.String()`:                  true, // Resuming from step X of Y
}

// messageAt is where the message stands among the arguments of what writes a line:
// of a slog.Logger, and of the engine's own methods.
var messageAt = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2, "logLine": 1, "OfRun": 3, "AboutRun": 2, "LogRun": 2, "AboutID": 3, "aboutID": 3, "About": 4,
}

// logCall is a call that writes a line of the log.
type logCall struct {
	at      token.Position
	message ast.Expr
	attrs   []ast.Expr
	// passes: the message is the parameter of a function whose callers are looked at.
	passes bool
}

// logSource is what the source of a package has to do with logs.
type logSource struct {
	set   *token.FileSet
	calls []logCall
	keys  map[string]token.Position // of attributes
}

// isLogger reports whether an expression is a logger, by its last name.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "slog" || strings.HasPrefix(strings.ToLower(x.Name), "log")
	case *ast.SelectorExpr:
		return strings.HasPrefix(strings.ToLower(x.Sel.Name), "log")
	case *ast.CallExpr:
		if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "With" {
			return isLogger(s.X)
		}
		return isLogger(x.Fun)
	}
	return false
}

// logSourceOf reads a package and the rooms inside it.
func logSourceOf(t *testing.T, dir string) *logSource {
	src := &logSource{set: token.NewFileSet(), keys: map[string]token.Position{}}
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, dir)
	rooms, err := filepath.Glob(filepath.Join(root, dir, "internal", "*", "*.go"))
	require.NoError(t, err)
	paths = append(paths, rooms...)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(src.set, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			fn, _ := d.(*ast.FuncDecl)
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					src.look(t, call, fn)
				}
				return true
			})
		}
	}
	return src
}

// look files a call if it writes a line or makes an attribute of one.
func (src *logSource) look(t *testing.T, call *ast.CallExpr, within *ast.FuncDecl) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	name, at := f.Sel.Name, src.set.Position(call.Pos())
	if x, ok := f.X.(*ast.Ident); ok && x.Name == "slog" && slices.Contains([]string{"String", "Int", "Int64", "Uint64", "Bool", "Float64", "Time", "Any", "Duration", "Group"}, name) {
		require.NotEqual(t, "Duration", name, "%s: a handler that writes JSON makes nanoseconds of a duration: log a number, under a key that ends in _ms", at)
		src.key(t, call.Args[0], at)
		return
	}
	own := slices.Contains([]string{"logLine", "OfRun", "AboutRun", "LogRun", "AboutID", "aboutID", "About"}, name)
	if name == "With" && isLogger(f.X) {
		src.pairs(t, call.Args, at)
		return
	}
	n, writes := messageAt[name]
	if !writes || !own && !isLogger(f.X) || len(call.Args) <= n {
		return
	}
	c := logCall{at: at, message: call.Args[n], attrs: call.Args[n+1:]}
	if id, ok := c.message.(*ast.Ident); ok && within != nil {
		for _, p := range within.Type.Params.List {
			c.passes = c.passes || slices.ContainsFunc(p.Names, func(n *ast.Ident) bool { return n.Name == id.Name })
		}
	}
	if !own && name != "LogAttrs" {
		src.pairs(t, c.attrs, at)
	}
	src.calls = append(src.calls, c)
}

// pairs files the keys of arguments that are keys and values in turn, or
// attributes, which are looked at where they are made.
func (src *logSource) pairs(t *testing.T, args []ast.Expr, at token.Position) {
	for i := 0; i < len(args); i++ {
		if _, made := args[i].(*ast.CallExpr); made {
			continue
		}
		src.key(t, args[i], at)
		i++
	}
}

func (src *logSource) key(t *testing.T, x ast.Expr, at token.Position) {
	lit, ok := x.(*ast.BasicLit)
	require.True(t, ok && lit.Kind == token.STRING, "%s: the key of an attribute is constant", at)
	key, err := strconv.Unquote(lit.Value)
	require.NoError(t, err)
	src.keys[key] = at
}

func (src *logSource) text(x ast.Expr) string {
	var b strings.Builder
	_ = printer.Fprint(&b, src.set, x)
	return b.String()
}

var logKeyRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\|")

// Who searches lines, or counts them, does so by messages and keys. So a message is
// constant and begins with the package it comes from, ids and numbers are
// attributes, and the keys of these are the ones that docs/telemetry.md lists.
func TestLinesOfTheLogHaveConstantMessagesAndListedKeys(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/telemetry.md"), "## Logs")
	require.True(t, found)
	listed := map[string]bool{}
	for _, row := range logKeyRow.FindAllStringSubmatch(section, -1) {
		for _, key := range strings.Split(row[1], ", ") {
			require.False(t, listed[key], "%s is listed twice", key)
			listed[strings.Trim(key, "`")] = true
		}
	}
	used, sentences, calls := map[string]bool{}, map[string]bool{}, 0
	for _, dir := range []string{"durable", "operate", "internal/archiver", "internal/claims", "internal/cleaner", "internal/commit", "internal/heart", "internal/queues", "internal/requests", "internal/runlog", "internal/schedules", "internal/stuck", "archive", "dashboard", "shell", "cli"} {
		src := logSourceOf(t, dir)
		calls += len(src.calls)
		for key, at := range src.keys {
			used[key] = true
			require.True(t, listed[key], "%s: the key %q is not in the table of docs/telemetry.md; those in use: %s", at, key, slices.Sorted(maps.Keys(src.keys)))
		}
		for _, c := range src.calls {
			text := src.text(c.message)
			if c.passes {
				continue
			}
			if prescribed[text] {
				sentences[text] = true
				continue
			}
			lit, ok := c.message.(*ast.BasicLit)
			require.True(t, ok, "%s: the message is not constant: %s", c.at, text)
			who := dir
			if dir == "operate" || strings.HasPrefix(dir, "internal/") {
				who = "durable" // they write to the log of the engine
			}
			require.True(t, strings.HasPrefix(lit.Value, `"`+who+": "), "%s: the message does not begin with %q: %s", c.at, who+": ", text)
		}
	}
	require.Greater(t, calls, 80, "the calls are found")
	for key := range listed {
		require.True(t, used[key], "%s is in the table of docs/telemetry.md and no line has it", key)
	}
	for text := range prescribed {
		require.True(t, sentences[text], "nobody logs %s", text)
	}
}

// The rule must be able to say no.
func TestTheRuleOfTheLogSeesWhatBreaksIt(t *testing.T) {
	for _, x := range []string{"e.log", "log", "c.log", "a.eng.log", "h.options.Logger", "durable.Logger(ctx)", "r.logger()", "slog", `log.With("run", id)`, "k.log"} {
		expr, err := parser.ParseExpr(x)
		require.NoError(t, err)
		require.True(t, isLogger(expr), x)
	}
	for _, x := range []string{"err", "t", "e.metrics", "ctx"} {
		expr, err := parser.ParseExpr(x)
		require.NoError(t, err)
		require.False(t, isLogger(expr), x)
	}
}
