package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachLiteral calls f with every string literal of the packages that programs link.
func eachLiteral(t *testing.T, f func(at token.Position, text string)) {
	t.Helper()
	seen := 0
	for _, dir := range []string{"archive", "cli", "client", "dashboard", "durable", "internal", "operate", "shell", "store"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../..", dir), func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && (e.Name() == "testdata" || e.Name() == "shots" || e.Name() == "shop"):
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, err := strconv.Unquote(lit.Value)
					require.NoError(t, err)
					seen++
					f(files.Position(lit.Pos()), text)
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, seen, 5000)
}

// Whoever reads a text of a program does not have these sources: a page is named by its
// address (host.Page).
func TestTextsOfProgramsNamePagesByTheirAddress(t *testing.T) {
	page := regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)
	eachLiteral(t, func(at token.Position, text string) {
		if m := page.FindString(text); m != "" {
			t.Errorf("%s: %s is a file that a reader of this text does not have", at, m)
		}
	})
}

// A number beside a noun is written by internal/count, so that no text says "1 runs".
func TestTextsThatCountAgreeWithTheNumber(t *testing.T) {
	counted := regexp.MustCompile(`%d (?:[a-z]+ )?(?:answers|approvals|attempts|branches|calls|checkpoints|children|compensations|epochs|events|executors|failures|findings|fires|items|keys|messages|others|processes|questions|requests|results|rows|runs|schedules|sessions|signals|steps|things|times|versions|waits|workflows|writes)\b`)
	fixed := []string{
		"Recovery complete: %d workflows marked failed, %d approvals restored.",                        // prescribed (R000-8)
		"%d runs are being exported, which is as many as may be at a time",                             // a constant above 1
		"attribute is given %d times: no run has more than %d",                                         // more than one
		"durable: a backfill of schedule %s has more than %d times; make it in parts, the first up to", // a constant above 1
		"run %s waits for %d answers",                                                                  // more than one
		"%s asks %d things: %s",                                                                        // more than one
		"%d processes serve %s; one takes it at once.",                                                 // more than three
		" %d times", // more than two
		"%d exclusive keys; a run has at most %d: %w", // more than a constant above 1
		"look for %d schedules that are due",          // a constant above 1
	}
	eachLiteral(t, func(at token.Position, text string) {
		for _, f := range fixed {
			text = strings.ReplaceAll(text, f, "")
		}
		if m := counted.FindString(text); m != "" {
			t.Errorf("%s: %q does not agree with 1: use internal/count", at, m)
		}
	})
}
