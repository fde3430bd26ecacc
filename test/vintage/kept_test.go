package vintage_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/runfile"
)

// root is that of the module, and keptList what was ever kept below it: the number
// of bytes of each golden file, their SHA-256 and its name. A file may grow behind
// them, and go on in the list with all it has by then.
const (
	root     = "../.."
	keptList = "testdata/kept.txt"
)

type kept struct {
	size int
	sum  string
}

func (k kept) line(name string) string { return fmt.Sprintf("%d %s %s\n", k.size, k.sum, name) }

func keptOf(b []byte) kept { return kept{len(b), fmt.Sprintf("%x", sha256.Sum256(b))} }

// goldens lists the golden files of all formats.
func goldens(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"store/testdata/v*/*", "store/*/testdata/v*", "test/vintage/testdata/*/*.*", "test/vintage/testdata/*/*/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, f := range files {
			name, err := filepath.Rel(root, f)
			require.NoError(t, err)
			names = append(names, filepath.ToSlash(name))
		}
	}
	slices.Sort(names)
	return names
}

// What a program has written once is read by all later ones only as long as
// somebody tries it: a golden file is neither changed nor taken away. With -update
// the list takes in what is new.
func TestWhatWasKeptOfAFormatIsNeverChangedOrTakenAway(t *testing.T) {
	list := map[string]kept{}
	b, err := os.ReadFile(keptList)
	if !*update {
		require.NoError(t, err)
	}
	for line := range strings.Lines(string(b)) {
		var k kept
		var name string
		_, err := fmt.Sscan(line, &k.size, &k.sum, &name)
		require.NoError(t, err, line)
		list[name] = k
		file, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err, "%s is what earlier versions have written, and no longer there", name)
		require.GreaterOrEqual(t, len(file), k.size, "%s has lost what earlier versions have written", name)
		require.Equal(t, k, keptOf(file[:k.size]), "%s was changed: it is what earlier versions have written. Add to it, behind what is there", name)
	}
	var all bytes.Buffer
	for _, name := range goldens(t) {
		file, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		if !*update {
			require.Equal(t, keptOf(file), list[name], "%s is new, or has grown, and %s does not know it: go test ./test/vintage -run %s -update", name, keptList, t.Name())
		}
		all.WriteString(keptOf(file).line(name))
	}
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(keptList), 0o755))
		require.NoError(t, os.WriteFile(keptList, all.Bytes(), 0o644))
	}
}

// A format whose number is raised leaves the golden files of the one before, and
// has its own; each number from the first on.
func TestEveryFormatHasItsGoldenFiles(t *testing.T) {
	names := goldens(t)
	of := func(what string, versions int, files ...string) {
		for v := range versions {
			for _, file := range files {
				require.Contains(t, names, fmt.Sprintf("store/testdata/v%d/%s", v+1, file), "%s of format %d", what, v+1)
			}
		}
	}
	of("payloads", envelope.Version, "envelopes.jsonl", "events.jsonl", "data.jsonl", "errors.jsonl")
	of("files of runs", runfile.Format, "run.jsonl", "history-plain.jsonl", "history-sealed.jsonl")
	for name, c := range cellars(t) {
		require.Positive(t, c.version)
		for v := range c.version {
			file := filepath.ToSlash(filepath.Join(strings.TrimPrefix(c.dir, root+"/"), fmt.Sprintf("v%d", v+1)))
			require.Contains(t, names, file+c.ext, "a store of schema version %d of %s", v+1, name)
			require.Contains(t, names, file+".json", "what stands in it")
		}
	}
}
