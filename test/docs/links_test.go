package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// In code, Ref[string, string]("ship") is a call.
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// links returns the targets inside the repository that a page links to, as
// paths from its root.
func links(page, text string) []string {
	var to []string
	for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		to = append(to, path.Join(path.Dir(page), target))
	}
	return to
}

func TestLinksResolve(t *testing.T) {
	pages := files(t, ".md")
	require.NotEmpty(t, pages)
	for _, page := range pages {
		for _, to := range links(page, read(t, page)) {
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, to)
			}
		}
	}
}

func TestLinksAreRelativeToTheirPage(t *testing.T) {
	got := links("docs/a.md", "[x](b.md#part) [y](../README.md) [z](https://example.com) [here](#down)\n```go\nf[int](w)\n```\n")
	require.Equal(t, []string{"docs/b.md", "README.md"}, got)
}

// A page that no index leads to is a page that nobody finds. Decisions are
// found by their number.
func TestEveryPageIsInTheIndex(t *testing.T) {
	indexed := map[string]bool{"docs/README.md": true}
	for _, to := range links("docs/README.md", read(t, "docs/README.md")) {
		indexed[to] = true
	}
	for _, page := range files(t, ".md") {
		if strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/adr/") && !indexed[page] {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
}
