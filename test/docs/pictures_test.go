package docs_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The curves of docs/performance.md are there, are whole, and can be read on a dark page too.
// bench -plot makes them.
func TestThePicturesOfPerformanceAreShownAndWhole(t *testing.T) {
	page := read(t, "docs/performance.md")
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`!\[[^\]]+\]\((performance/[a-z0-9-]+\.svg)\)`).FindAllStringSubmatch(page, -1) {
		shown[m[1]] = true
	}
	for _, curve := range []string{"crowd", "crowd-p50", "length", "payload"} {
		require.True(t, shown["performance/"+curve+".svg"], "docs/performance.md does not show %s", curve)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/performance/*"))
	require.NoError(t, err)
	require.Len(t, files, len(shown), "each picture is shown, and each that is shown exists")
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, shown["performance/"+filepath.Base(path)], path)
		require.Contains(t, string(text), "prefers-color-scheme: dark", path)
		first, curves := "", 0
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, path)
			if e, ok := tok.(xml.StartElement); ok {
				if first == "" {
					first = e.Name.Local
				}
				if e.Name.Local == "path" {
					curves++
				}
			}
		}
		require.Equal(t, "svg", first, path)
		require.Greater(t, curves, 1, "%s: a curve, and the floor beside it", path)
		require.NotContains(t, string(text), "NaN", path)
	}
}
