package history

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// A Holder is the executor, and its code, that had a run from an event on.
type Holder struct {
	seq      int64
	At       store.Time
	executor string // id
	Name     string // for people
	Build    string
	Version  string // of the workflow
}

// sameCode reports whether two holders are known to have had the same code. For two
// programs built from changed files of one revision this is not known: the files may
// have changed in between.
func (c *Holder) sameCode(o *Holder) bool {
	if c.Build != "" && o.Build != "" && !strings.HasSuffix(c.Build, DirtyBuild) {
		return c.Build == o.Build && c.Version == o.Version
	}
	return c.executor == o.executor && c.Build == o.Build && c.Version == o.Version
}

// IsBuild reports whether the holder is known to have been of this build.
func (c *Holder) IsBuild(build string) bool {
	return build != "" && c.Build == build && !strings.HasSuffix(build, DirtyBuild)
}

// IsOtherBuild reports whether the holder is known to have been of another build than this one.
func (c *Holder) IsOtherBuild(build string) bool {
	return build != "" && c.Build != "" && c.Build != build
}

// IsCode reports whether the holder is known to have had the code that this executor of this build
// has: it is of the same build, or is the executor itself.
func (c *Holder) IsCode(build, executor string) bool {
	return c.IsBuild(build) || c.executor == executor
}

// DirtyBuild ends the name of a build whose files are not those of its revision.
const DirtyBuild = "+dirty"

// takeClaim files what a claim says.
func (p *Past) takeClaim(e *store.Event, d *Claim) {
	p.Forced = p.Forced || d.Force
	p.Repinned = cmp.Or(d.Version, p.Repinned)
	if d.Segment != "" {
		if p.Segment.Epoch != e.Epoch {
			p.SegmentBefore = p.Segment
		}
		p.Segment = Segment{Epoch: e.Epoch, Trace: d.Segment}
	}
	p.markClaim(e, d)
}

// markClaim keeps who had the run from event e on, if the code is another.
func (p *Past) markClaim(e *store.Event, d *Claim) {
	if d.Executor == "" {
		return
	}
	name := d.Name
	if name == "" && d.Host != "" {
		name = fmt.Sprintf("%s/%d", d.Host, d.PID)
	}
	c := Holder{seq: e.Seq, At: e.At, executor: d.Executor, Name: name, Build: d.Build, Version: p.Repinned}
	if n := len(p.holders); n > 0 && p.holders[n-1].sameCode(&c) {
		return
	}
	p.holders = append(p.holders, c)
}

// Segment is a trace segment as the history knows it.
type Segment struct {
	Epoch int64
	Trace string
}

// HolderAt returns who had the run when event seq was recorded, nil if no claim says so,
// and whether that was the code that the run was started with.
func (p *Past) HolderAt(seq int64) (c *Holder, first bool) {
	for i := len(p.holders) - 1; i >= 0; i-- {
		if c := &p.holders[i]; c.seq <= seq {
			return c, c.sameCode(&p.holders[0])
		}
	}
	return nil, false
}
