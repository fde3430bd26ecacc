package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The map of the house is right: docs/architecture.md and docs/internals/files.md name every
// file of the engine, of what it reads histories and payloads with, and of the contract, and
// every file that they name is there.
func TestTheMapOfTheHouseNamesEveryFileAndEveryNameExists(t *testing.T) {
	page := read(t, "docs/architecture.md") + read(t, "docs/internals/files.md")
	named := map[string]bool{}
	var whole []string // with the folders they are named with
	for _, m := range regexp.MustCompile("`((?:[a-z]+/)*([a-z0-9_]+\\.go))`").FindAllStringSubmatch(page, -1) {
		named[m[2]] = true
		whole = append(whole, "/"+m[1])
	}
	var paths []string
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	require.NoError(t, err)
	for _, name := range whole {
		if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, name) }) {
			t.Errorf("the map names %s, which is nowhere", name[1:])
		}
	}
	for _, dir := range []string{"durable", "operate", "internal/desk", "internal/history", "internal/payload", "internal/outline", "internal/commit", "internal/storeclock", "internal/archiver", "internal/cleaner", "internal/faults", "internal/telemetry", "store", "store/sqlite", "store/postgres", "store/memory"} {
		files, err := filepath.Glob("../../" + dir + "/*.go")
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, path := range files {
			name := filepath.Base(path)
			if name == "doc.go" || strings.HasSuffix(name, "_test.go") || perSystem.MatchString(name) {
				continue
			}
			if !named[name] {
				t.Errorf("neither docs/architecture.md nor docs/internals/files.md says where %s/%s belongs", dir, name)
			}
		}
	}
}

// perSystem are files of which there is one for each operating system.
var perSystem = regexp.MustCompile(`_(linux|darwin|other|unix|bsd)\.go$`)
