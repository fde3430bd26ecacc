package history

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// A Claim says who has had a run from an event on.
type Claim struct {
	seq      int64
	At       store.Time
	executor string // id
	Name     string // for people
	Build    string
	Version  string // of the workflow
}

// sameCode reports whether two claims are known to have been made by the same code. Of
// two programs that were built from changed files of one revision that is not known: the
// files may have changed in between.
func (c *Claim) sameCode(o *Claim) bool {
	if c.Build != "" && o.Build != "" && !strings.HasSuffix(c.Build, DirtyBuild) {
		return c.Build == o.Build && c.Version == o.Version
	}
	return c.executor == o.executor && c.Build == o.Build && c.Version == o.Version
}

// DirtyBuild ends the name of a build whose files are not those of its revision.
const DirtyBuild = "+dirty"

// markClaim keeps who had the run from event e on, where that is another code.
func (p *Past) markClaim(e *store.Event, d *Data) {
	if d.Executor == "" {
		return
	}
	name := d.Name
	if name == "" && d.Host != "" {
		name = fmt.Sprintf("%s/%d", d.Host, d.PID)
	}
	c := Claim{seq: e.Seq, At: e.At, executor: d.Executor, Name: name, Build: d.Build, Version: p.Repinned}
	if n := len(p.claims); n > 0 && p.claims[n-1].sameCode(&c) {
		return
	}
	p.claims = append(p.claims, c)
}

// Segment is a segment as the history knows it.
type Segment struct {
	Epoch int64
	Trace string
}

// markSegment files the segment that an event begins.
func (p *Past) markSegment(e *store.Event, trace string) {
	if trace == "" {
		return
	}
	if p.Segment.Epoch != e.Epoch {
		p.SegmentBefore = p.Segment
	}
	p.Segment = Segment{Epoch: e.Epoch, Trace: trace}
}

// ClaimAt returns who had the run when event seq was recorded, nil if no claim says so,
// and whether that was the code that the run was started with.
func (p *Past) ClaimAt(seq int64) (c *Claim, first bool) {
	for i := len(p.claims) - 1; i >= 0; i-- {
		if c := &p.claims[i]; c.seq <= seq {
			return c, c.sameCode(&p.claims[0])
		}
	}
	return nil, false
}
