package line

import "slices"

// View is what was read of a line: of the next partitions the first runs.
type View struct {
	turn  string // the partition that had the last turn
	parts map[string]*part
	order []*part // the partitions in the order of their turns; made by Done
	// Where what is known of that order ends, if it ends.
	cut, wraps bool
	last       string
}

// part is what was read of a partition.
type part struct {
	name string
	runs [2][]Run // by kind
	ends [2]*Run  // after it nothing is known; nil: all is
}

// NewView returns the view of a line, before anything was read, after a turn.
func NewView(turn string) *View { return &View{turn: turn, parts: map[string]*part{}} }

// Turn returns the partition that had the last turn.
func (v *View) Turn() string { return v.turn }

// Cut says that partitions after last were not read, of those after the turn or, if
// wraps is set, of those up to it.
func (v *View) Cut(wraps bool, last string) {
	if !v.cut || sooner(wraps, last, v.wraps, v.last) {
		v.cut, v.wraps, v.last = true, wraps, last
	}
}

func sooner(aWraps bool, a string, bWraps bool, b string) bool {
	if aWraps != bWraps {
		return bWraps
	}
	return a < b
}

// Knows reports whether the order of turns is known up to a partition.
func (v *View) Knows(partition string) bool {
	return !v.cut || !sooner(v.wraps, v.last, partition <= v.turn, partition)
}

// Partitions returns how many partitions there are runs of.
func (v *View) Partitions() int { return len(v.parts) }

// Open adds a partition.
func (v *View) Open(partition string) {
	if v.parts[partition] == nil {
		v.parts[partition] = &part{name: partition}
	}
}

// Add adds a run of a partition that was opened; it does nothing for another.
func (v *View) Add(r Run) {
	if p := v.parts[r.Partition]; p != nil {
		p.runs[r.kind()] = append(p.runs[r.kind()], r)
	}
}

// End says that of the runs like r in its partition, those after it may not have been
// read.
func (v *View) End(r Run) {
	p := v.parts[r.Partition]
	if end := &p.ends[r.kind()]; *end == nil || before(&r, *end) {
		*end = &r
	}
}

// Done puts in order what was read. Where what is not known could come before what is,
// the latter does not count.
func (v *View) Done() {
	v.order = nil
	for _, p := range v.parts {
		if !v.Knows(p.name) {
			continue
		}
		for kind, end := range p.ends {
			slices.SortFunc(p.runs[kind], Compare)
			if end != nil {
				p.runs[kind] = slices.DeleteFunc(p.runs[kind], func(r Run) bool { return before(end, &r) })
			}
		}
		v.order = append(v.order, p)
	}
	slices.SortFunc(v.order, func(a, b *part) int {
		if sooner(a.name <= v.turn, a.name, b.name <= v.turn, b.name) {
			return -1
		}
		return 1 // no two are the same
	})
}
