package host

import (
	"runtime/debug"
	"strings"
	"sync"
)

// release is that of these sources: the newest heading of CHANGELOG.md.
const release = "0.1.0"

const module = "github.com/holdfast-dev/holdfast"

// Page returns the address of a page of the documentation, such as "guides/testing.md". A
// text of a program names it, for a reader who does not have these sources.
func Page(path string) string { return "https://" + module + "/blob/main/docs/" + path }

// Release returns the release of Holdfast in this program, such as 0.1.0: the version of
// its module as the go command has stamped it, or else that of the sources.
var Release = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	return releaseIn(info)
})

// releaseIn reads the release from what was stamped on a program. A version of a module
// without a tag before it, and a copy that replaces the module, say nothing about the
// release; the sources do.
func releaseIn(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module || m.Replace != nil {
			continue
		}
		if v, ok := strings.CutPrefix(m.Version, "v"); ok && !strings.HasPrefix(v, "0.0.0-") {
			return v
		}
	}
	return release
}
