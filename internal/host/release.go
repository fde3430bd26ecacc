package host

import (
	"runtime/debug"
	"strings"
	"sync"
)

// release is the one that these sources become: the newest heading of CHANGELOG.md.
const release = "0.1.0"

const module = "github.com/holdfast-dev/holdfast"

// Page returns the address of a page of the documentation, such as "guides/testing.md". A
// text of a program names it, for a reader who does not have these sources.
func Page(path string) string { return "https://" + module + "/blob/main/docs/" + path }

// Release returns the release of Holdfast in this program, such as 0.1.0: the version of
// its module as the go command has stamped it. Sources without a release are 0.1.0-dev, the
// one that they become, with their revision if it was stamped: "0.1.0-dev (1f2e3d4c5b6a)".
var Release = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unreleased("")
	}
	return releaseIn(info)
})

// releaseIn reads the release from what was stamped on a program. A version of a module
// without a tag before it has the revision alone, and a copy that replaces the module says
// nothing.
func releaseIn(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module || m.Replace != nil {
			continue
		}
		switch v, ok := strings.CutPrefix(m.Version, "v"); {
		case ok && strings.HasPrefix(v, "0.0.0-"):
			return unreleased(v[strings.LastIndexByte(v, '-')+1:])
		case ok:
			return v
		}
	}
	return unreleased("")
}

// unreleased names sources without a release.
func unreleased(revision string) string {
	if revision == "" {
		return release + "-dev"
	}
	return release + "-dev (" + revision + ")"
}
