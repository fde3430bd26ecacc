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
	"github.com/holdfast-dev/holdfast/store"
)

// hostName asks once: every start signs.
var hostName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// sign has an event that claims a run say who claims it. The executor's record in
// the store goes when its process ends; what the history says of who had the run
// must not need it.
func (e *Engine) sign(d *eventData) *eventData {
	d.Executor, d.Name, d.Host, d.PID, d.Build = e.id, e.options.Name, hostName(), os.Getpid(), e.build
	return d
}

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
			modified = dirtyBuild
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

// A claimMark says who has had a run from an event on.
type claimMark struct {
	seq      int64
	at       store.Time
	executor string // id
	name     string // for people
	build    string
	version  string // of the workflow
}

// sameCode reports whether two claims are known to have been made by the same code. Of
// two programs that were built from changed files of one revision that is not known: the
// files may have changed in between.
func (c *claimMark) sameCode(o *claimMark) bool {
	if c.build != "" && o.build != "" && !strings.HasSuffix(c.build, dirtyBuild) {
		return c.build == o.build && c.version == o.version
	}
	return c.executor == o.executor && c.build == o.build && c.version == o.version
}

// dirtyBuild ends the name of a build whose files are not those of its revision.
const dirtyBuild = "+dirty"

// markClaim keeps who had the run from event e on, where that is another code.
func (p *past) markClaim(e *store.Event, d *eventData) {
	if d.Executor == "" {
		return
	}
	name := d.Name
	if name == "" && d.Host != "" {
		name = fmt.Sprintf("%s/%d", d.Host, d.PID)
	}
	c := claimMark{seq: e.Seq, at: e.At, executor: d.Executor, name: name, build: d.Build, version: p.repinned}
	if n := len(p.claims); n > 0 && p.claims[n-1].sameCode(&c) {
		return
	}
	p.claims = append(p.claims, c)
}

// recorder returns who had the run when event seq was recorded; version is that of the
// runs that were never pinned to another one.
func (p *past) recorder(seq int64, version string) Recorder {
	i := len(p.claims) - 1
	for i >= 0 && p.claims[i].seq > seq {
		i--
	}
	if i < 0 {
		return Recorder{}
	}
	c := &p.claims[i]
	return Recorder{Version: cmp.Or(c.version, version), Build: c.build, Executor: c.name, At: c.at, First: c.sameCode(&p.claims[0])}
}
