//go:build cgo

package sqlite

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// The kinds of runs in line, as in the column of that name.
const (
	lineBegins  = 1
	lineDelayed = 3
)

// aisle is a set of runs in line that are equal in everything a claim checks, but for their
// partitions. Those of delayed runs have one priority too, level.
type aisle struct {
	owner, queue, workflow, version string
	kind, level                     int64
}

// begins reports whether these runs begin rather than resume when they get a place.
func (a *aisle) begins() bool { return a.kind == lineBegins || a.kind == lineDelayed }

func (a *aisle) args(more ...any) []any {
	return append([]any{a.owner, a.queue, a.workflow, a.version, a.kind, a.level}, more...)
}

// lines calls each for every aisle with a run that is due and that an executor with these served
// workflows may take. All levels of delayed runs are one aisle here.
func (t *tx) lines(serves []store.Served, live map[string]bool, each func(aisle) error) error {
	return t.query(t.s.q.lines, func(c *cells) error {
		a := aisle{owner: c.text(), queue: c.text(), workflow: c.text(), version: c.text(), kind: c.int()}
		if due := c.bool(); due && !live[a.owner] && store.Serves(serves, a.workflow, a.version) {
			return each(a)
		}
		return nil
	}, int64(t.now))
}

// candidate is a run in line.
type candidate struct {
	no, rank  int64
	partition string
}

func (a candidate) before(b candidate) bool {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.no, b.no)) < 0
}

// few is how many delayed runs are read at once when their time has come. If there are more,
// they are looked for by partition and priority.
const few = 64

func (cl *claiming) walks(l *line, a aisle) ([]*walk, error) {
	if a.kind != lineDelayed {
		return []*walk{{cl: cl, aisle: a, turn: l.turn}}, nil
	}
	due := &walk{cl: cl, aisle: a, turn: l.turn, all: true}
	err := cl.query(cl.s.q.lineDue, func(c *cells) error {
		due.found = append(due.found, candidate{no: c.int(), partition: c.text(), rank: c.int()})
		return nil
	}, a.owner, a.queue, a.workflow, a.version, int64(cl.now), int64(few+1))
	if err != nil {
		return nil, err
	}
	if len(due.found) <= few {
		slices.SortFunc(due.found, func(a, b candidate) int {
			return cmp.Or(due.compare(a.partition, b.partition), cmp.Compare(a.rank, b.rank), cmp.Compare(a.no, b.no))
		})
		if l.MaxPerPartition > 0 {
			for _, h := range due.found {
				if err := l.count(h.partition); err != nil {
					return nil, err
				}
			}
		}
		return []*walk{due}, nil
	}
	var walks []*walk
	err = cl.query(cl.s.q.lineLevels, func(c *cells) error {
		a.level = c.int()
		walks = append(walks, &walk{cl: cl, aisle: a, turn: l.turn})
		return nil
	}, a.owner, a.queue, a.workflow, a.version)
	return walks, err
}

// walk goes through the partitions of an aisle, once: from the one behind the turn to the last,
// and on from the first to the one that had the turn.
type walk struct {
	cl *claiming
	aisle
	turn string

	found []candidate // the first runs of the partitions ahead, or, if all is set, all there are
	all   bool
	stage int    // 0: behind the turn, 1: the empty name, 2: up to the turn, 3: over
	after string // the last partition that was read
	size  int    // of the last batch of partitions
	begun bool
}

// compare orders partitions by when they are met.
func (w *walk) compare(a, b string) int {
	return cmp.Or(cmp.Compare(w.half(a), w.half(b)), cmp.Compare(a, b))
}

func (w *walk) half(partition string) int {
	if partition > w.turn {
		return 0
	}
	return 1
}

// lowest stands before every run of a partition.
var lowest = candidate{no: 0, rank: math.MinInt64}

// peek returns the first run of the next partition, nil behind the last.
func (w *walk) peek(l *line) (*candidate, error) {
	for len(w.found) == 0 {
		if w.all || w.stage > 2 {
			return nil, nil
		}
		if err := w.read(l); err != nil {
			return nil, err
		}
	}
	return &w.found[0], nil
}

// read reads on.
func (w *walk) read(l *line) (err error) {
	switch w.stage {
	case 0:
		if !w.begun {
			w.begun, w.after = true, w.turn
		}
		more, err := w.parts(l)
		if !more {
			w.stage, w.after = 1, ""
		}
		return err
	case 1:
		if w.stage = 2; w.turn == "" {
			w.stage = 3
		}
		if l.MaxPerPartition > 0 {
			if err := l.count(""); err != nil {
				return err
			}
		}
		w.found, err = w.heads("", lowest, 1)
		return err
	default:
		more, err := w.parts(l)
		if i := slices.IndexFunc(w.found, func(h candidate) bool { return h.partition > w.turn }); i >= 0 {
			w.found, more = w.found[:i], false
		}
		if !more {
			w.stage = 3
		}
		return err
	}
}

// parts reads the first runs of the next partitions that have one that is due, and reports
// whether there may be more.
func (w *walk) parts(l *line) (more bool, err error) {
	w.size = min(max(2*w.size, w.cl.left()), 128) // more each time, since those so far may have been full
	n, read := w.size, 0
	err = w.cl.query(w.cl.s.q.lineParts, func(c *cells) error {
		read++
		h := candidate{no: c.int(), partition: c.text(), rank: c.int()}
		w.after = h.partition
		if due, placed := c.bool(), c.int(); due {
			w.found = append(w.found, h)
			l.note(h.partition, int(placed))
		}
		return nil
	}, w.args(w.after, int64(n), int64(w.cl.now), int64(l.MaxPerPartition))...)
	return read == n, err
}

// pass goes on to the next partition, and returns the runs of this one.
func (w *walk) pass(partition string) []candidate {
	n := slices.IndexFunc(w.found, func(h candidate) bool { return h.partition != partition })
	if n < 0 {
		n = len(w.found)
	}
	heads := w.found[:n:n]
	w.found = w.found[n:]
	return heads
}

// behind returns the runs of a partition behind h.
func (w *walk) behind(h candidate) ([]candidate, error) {
	if w.all {
		return nil, nil
	}
	return w.heads(h.partition, h, min(max(w.cl.left(), 8), 128))
}

// last is the highest rank of a run that is due.
func (w *walk) last() int64 {
	if w.kind != lineDelayed {
		return math.MaxInt64
	}
	return int64(store.Rank(w.cl.now, int32(w.level)))
}

func (w *walk) heads(partition string, after candidate, most int) (heads []candidate, err error) {
	err = w.cl.query(w.cl.s.q.lineHeads, func(c *cells) error {
		heads = append(heads, candidate{no: c.int(), rank: c.int(), partition: partition})
		return nil
	}, w.args(partition, after.rank, after.no, w.last(), int64(most))...)
	return heads, err
}
