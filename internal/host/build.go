package host

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// StampedBuild names the build of this program as the go command has stamped it: its
// revision, followed by modified if its files are not those of the revision, or the version of
// its module. It is empty if neither is known.
func StampedBuild(modified string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = modified
		}
	}
	switch {
	case revision != "":
		return revision + changed
	case info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return ""
}

// maxBuild limits the name of a build, in bytes.
const maxBuild = 64

// BuildLabel returns the name of a build as histories keep it. The end of a name that is too
// long is replaced by a hash: names of builds differ at their ends, and two builds must not
// be taken for one.
func BuildLabel(name string) string {
	name = store.CleanText(name)
	if len(name) <= maxBuild {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := hex.EncodeToString(sum[:6])
	return guard.Text(name, maxBuild-len("…~")-len(end)) + "~" + end
}
