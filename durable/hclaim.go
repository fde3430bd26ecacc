package durable

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

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

// segmentMark is a segment as the history knows it.
type segmentMark struct {
	epoch int64
	trace string
}

// markSegment files the segment that an event begins.
func (p *past) markSegment(e *store.Event, trace string) {
	if trace == "" {
		return
	}
	if p.segment.epoch != e.Epoch {
		p.segmentBefore = p.segment
	}
	p.segment = segmentMark{epoch: e.Epoch, trace: trace}
}

// claimAt returns who had the run when event seq was recorded, nil if no claim says so,
// and whether that was the code that the run was started with.
func (p *past) claimAt(seq int64) (c *claimMark, first bool) {
	for i := len(p.claims) - 1; i >= 0; i-- {
		if c := &p.claims[i]; c.seq <= seq {
			return c, c.sameCode(&p.claims[0])
		}
	}
	return nil, false
}
