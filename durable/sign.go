package durable

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// hostName asks once: every start signs.
var hostName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// stampedBuild names the build of this program as the go command has stamped it.
var stampedBuild = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = history.DirtyBuild
		}
	}
	switch {
	case revision != "":
		return revision + modified
	case info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return ""
})

// maxBuild bounds the name of a build, in bytes.
const maxBuild = 64

// buildLabel is the name of a build as histories keep it. Of one that is too long a hash
// takes the place of the end, which is where names of builds differ: two builds must not
// be taken for one.
func buildLabel(name string) string {
	name = store.CleanText(name)
	if len(name) <= maxBuild {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := hex.EncodeToString(sum[:6])
	return guard.Text(name, maxBuild-len("…~")-len(end)) + "~" + end
}

// Recorder says who recorded a call: who had the run then.
type Recorder struct {
	Version  string // of the workflow; empty: it has none
	Build    string // of the program, see Options.Build; empty: not known
	Executor string // Options.Name, or host name and process id; empty: not known
	At       store.Time
	// First: it is the code that the run was started with.
	First bool
}

// String names the code: "the code it was started with", or its version and build and
// who had it.
func (r Recorder) String() string {
	var parts []string
	if r.Version != "" {
		parts = append(parts, "version "+r.Version)
	}
	if r.Build != "" {
		parts = append(parts, "build "+r.Build)
	}
	if r.First {
		return strings.Join(append([]string{"the code it was started with"}, parts...), ", ")
	}
	if r.Executor != "" {
		parts = append(parts, fmt.Sprintf("of executor %s, which took the run at %s", r.Executor, r.At.Time().UTC().Format(time.DateTime)))
	}
	if len(parts) == 0 {
		return "the code that recorded it"
	}
	return "the code that recorded it: " + strings.Join(parts, ", ")
}

// recorder returns who had the run when event seq was recorded; version is that of the
// runs that were never pinned to another one.
func recorder(p *history.Past, seq int64, version string) Recorder {
	c, first := p.HolderAt(seq)
	if c == nil {
		return Recorder{}
	}
	return Recorder{Version: cmp.Or(c.Version, version), Build: c.Build, Executor: c.Name, At: c.At, First: first}
}
