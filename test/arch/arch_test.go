package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/holdfast-dev/holdfast"

type pkg struct {
	ImportPath string
	Standard   bool
	Module     *struct{ Path string }
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

// list runs go list for one system and returns packages by import path.
func list(t *testing.T, goos, cgo string, args ...string) map[string]pkg {
	t.Helper()
	require.NoError(t, readSources("../.."))
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Standard,Module,CgoFiles,Imports,Deps"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED="+cgo)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list: %s", stderr.String())
	pkgs := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else {
			require.NoError(t, err)
		}
		pkgs[p.ImportPath] = p
	}
}

// ours cuts the module off an import path; the root package is ".".
func ours(importPath string) (path string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

func withinAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(path, d) })
}

func ruleFor(path string) *rule {
	var best *rule
	for i := range rules {
		if r := &rules[i]; within(path, r.path) && (best == nil || len(r.path) > len(best.path)) {
			best = r
		}
	}
	return best
}

// violation says why r forbids an import, or is empty. imported is the listed
// package, where it is known.
func (r *rule) violation(importPath string, imported pkg) string {
	if path, ok := ours(importPath); ok {
		switch {
		case withinAny(path, backends):
			// "store" in a rule means the contract alone; a backend is named in full.
			named := slices.ContainsFunc(append(r.ours, r.path), func(o string) bool { return withinAny(o, backends) && within(path, o) })
			if named || r.anyBackend {
				return ""
			}
			return "is a backend, which only a main program chooses"
		case within(path, r.path):
			return ""
		case withinAny(path, testHelpers) && !r.forTests:
			return "is for tests"
		case withinAny(path, r.ours):
			return ""
		}
		return "is not in the table for this package"
	}
	if imported.Module == nil { // the standard library
		if withinAny(importPath, r.notStd) {
			return "is kept out of this package"
		}
		return ""
	}
	m := imported.Module.Path
	if slices.Contains(r.modules, m) || r.forTests && slices.Contains(testModules, m) {
		return ""
	}
	if slices.Contains(testModules, m) {
		return "is for tests"
	}
	return "is of a module that this package may not use"
}

// readSources reads every Go file: go test knows by that what a result depends
// on, and does not take one out of its cache after a change that only go list
// saw.
func readSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"), d.Name() == "go.mod":
			_, err = os.ReadFile(path)
		}
		return err
	})
}

func TestImportsFollowTheTable(t *testing.T) {
	// Files for other systems have imports of their own.
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			cgo := "0"
			if goos == "linux" {
				cgo = "1"
			}
			all := list(t, goos, cgo, "-deps", module+"/...")
			checked := 0
			for importPath, p := range all {
				path, ok := ours(importPath)
				if !ok {
					continue
				}
				checked++
				r := ruleFor(path)
				if r == nil {
					t.Errorf("package %s has no line in the table of test/arch/rules_test.go", path)
					continue
				}
				for _, i := range p.Imports {
					if why := r.violation(i, all[i]); why != "" {
						t.Errorf("%s imports %s, which %s (rule %q)", path, i, why, r.path)
					}
				}
			}
			require.NotZero(t, checked, "go list found none of our packages")
		})
	}
}

// The SDK and the contract reach no backend or driver on any detour either.
func TestSDKReachesNoBackend(t *testing.T) {
	for _, root := range []string{"store", "durable"} {
		t.Run(root, func(t *testing.T) {
			for importPath, p := range list(t, "linux", "1", "-deps", module+"/"+root) {
				if path, ok := ours(importPath); ok && withinAny(path, backends) {
					t.Errorf("%s reaches the backend %s", root, path)
				}
				if p.Module != nil && slices.Contains([]string{sqlite3, pq, "github.com/spf13/cobra", "github.com/jackc/pgx"}, p.Module.Path) {
					t.Errorf("%s reaches %s", root, importPath)
				}
			}
		})
	}
}

// No package that users build into their programs reaches the wing of tests, on any
// detour: test/ makes no promise of compatibility. The benchmark and one example do.
func TestProductionDoesNotReachTheWingOfTests(t *testing.T) {
	all := list(t, "linux", "1", module+"/...")
	checked := 0
	for importPath, p := range all {
		path, ok := ours(importPath)
		if !ok || withinAny(path, []string{"test", "bench", "examples/telemetry", "examples/transfer"}) {
			continue
		}
		checked++
		for _, d := range p.Deps {
			if dep, ok := ours(d); ok && within(dep, "test") {
				t.Errorf("%s reaches %s", path, dep)
			}
		}
	}
	require.NotZero(t, checked, "go list found none of our packages")
}

// Whoever links only PostgreSQL (or memory) needs no C compiler.
func TestPostgresAndMemoryNeedNoCgo(t *testing.T) {
	for _, root := range []string{"durable", "store/memory", "store/postgres"} {
		t.Run(root, func(t *testing.T) {
			for importPath, p := range list(t, "linux", "1", "-deps", module+"/"+root) {
				if p.Standard {
					continue // the standard library's use of cgo is optional
				}
				if len(p.CgoFiles) > 0 || importPath == sqlite3 {
					t.Errorf("%s reaches %s, which needs cgo", root, importPath)
				}
			}
		})
	}
}

// The table must be able to say no.
func TestRulesRefuse(t *testing.T) {
	withModule := func(path string) pkg { return pkg{Module: &struct{ Path string }{path}} }
	for _, c := range []struct {
		from, imports string
		listed        pkg
	}{
		{"durable", module + "/store/sqlite", pkg{}},
		{"durable", module + "/examples/quickstart", pkg{}},
		{"durable", "net/http", pkg{}},
		{"durable", "net/http/httptest", pkg{}},
		{"durable", "github.com/spf13/cobra", withModule("github.com/spf13/cobra")},
		{"durable", testify + "/require", withModule(testify)},
		{"durable", module + "/test/pgtest", pkg{}},
		{"durable", module + "/internal/crashstore", pkg{}},
		{"cli", module + "/test/otlptest", pkg{}},
		{"durable/durabletest", module + "/test/pgtest", pkg{}},
		{"store", module + "/durable", pkg{}},
		{"store", module + "/internal/sqlstore", pkg{}},
		{"store", module + "/store/memory", pkg{}},
		{"store/postgres", sqlite3, withModule(sqlite3)},
		{"store/postgres", module + "/store/sqlite", pkg{}},
		{"internal/sqlstore", module + "/durable", pkg{}},
		{"examples/quickstart", module + "/internal/sqlstore", pkg{}},
		{"conformance", module + "/store/memory", pkg{}},
		{"conformance", module + "/durable", pkg{}},
		{"conformance/recovery", module + "/store/memory", pkg{}},
	} {
		require.NotEmpty(t, ruleFor(c.from).violation(c.imports, c.listed), "%s importing %s", c.from, c.imports)
	}
	for _, c := range []struct {
		from, imports string
		listed        pkg
	}{
		{"durable", module + "/store", pkg{}},
		{"durable", module + "/internal/match", pkg{}},
		{"durable", "context", pkg{}},
		{"store/sqlite", sqlite3, withModule(sqlite3)},
		{"examples/quickstart", module + "/store/sqlite", pkg{}},
		{"durable/durabletest", module + "/store/memory", pkg{}},
		{"conformance", rapid, withModule(rapid)},
	} {
		require.Empty(t, ruleFor(c.from).violation(c.imports, c.listed), "%s importing %s", c.from, c.imports)
	}
	require.Nil(t, ruleFor("nowhere/somewhere"))
}

// internal/desk shows the engine from inside. It is for package operate.
func TestTheDeskIsForDurableAndOperateAlone(t *testing.T) {
	for path, p := range list(t, "linux", "1", module+"/...") {
		name, _ := ours(path)
		if name != "durable" && name != "operate" && slices.Contains(p.Imports, module+"/internal/desk") {
			t.Errorf("%s imports internal/desk", name)
		}
	}
}
