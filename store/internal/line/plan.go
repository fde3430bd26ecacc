package line

import (
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
)

// Plan is which runs a claim is to take.
type Plan struct {
	List    []Run
	Partial bool                  // too little was read to say what comes next
	Left    map[string]store.Time // queues of which runs stay in line because of limits, and until when (store.Claim.Held)
}

// Make plans to take that many runs: of free, which need no place and are in order, and
// of lines. It changes neither.
func Make(free []Run, lines []*Line, most int) (p Plan) {
	all := make([]*walk, 0, len(lines))
	for _, l := range lines {
		all = append(all, newWalk(l))
	}
	for len(p.List) < most {
		var best *Run
		var of *walk
		if len(free) > 0 {
			best = &free[0]
		}
		for _, w := range all {
			r := w.peek()
			if w.dry {
				p.Partial = true
				if len(p.List) > 0 {
					return p
				}
			}
			if r != nil && (best == nil || before(r, best)) {
				best, of = r, w
			}
		}
		switch {
		case of != nil:
			of.enter()
		case best != nil:
			free = free[1:]
		default:
			p.Left = left(all)
			return p
		}
		p.List = append(p.List, *best)
	}
	return p
}

func left(all []*walk) map[string]store.Time {
	queues := map[string]store.Time{}
	for _, w := range all {
		if held, until := w.left(); held {
			queues[w.line.Queue.Name] = until
		}
	}
	return queues
}

// Named plans to take runs that were asked for, in the order given, as far as lines, by
// queue, have places for those that need one.
func Named(runs []Run, lines func(queue string) *Line, most int) (p Plan) {
	gates := map[string]*gate.Gate{}
	for _, r := range runs {
		if len(p.List) == most {
			break
		}
		if r.Place {
			g := gates[r.Queue]
			if g == nil {
				g = lines(r.Queue).Gate()
				gates[r.Queue] = g
			}
			if !g.Fits(r.Partition, r.Begins()) {
				continue
			}
			g.Enter(r.Partition, r.Begins())
		}
		p.List = append(p.List, r)
	}
	return p
}

// walk is a plan's way along a line.
type walk struct {
	line *Line
	gate *gate.Gate
	turn int               // the partition that is next, in the view's order
	at   map[*part]*[2]int // how far each was taken

	found bool // what follows is up to date
	next  *Run // who gets the next place; nil: none can be let in
	of    int  // its partition
	dry   bool // who does was not read
}

func newWalk(l *Line) *walk {
	w := &walk{line: l, gate: l.Gate(), at: map[*part]*[2]int{}}
	for _, p := range w.order() {
		w.at[p] = new([2]int)
	}
	return w
}

func (w *walk) order() []*part {
	if w.line.View == nil {
		return nil
	}
	return w.line.View.order
}

func (w *walk) peek() *Run {
	if !w.found {
		w.next, w.found = w.find(), true
	}
	return w.next
}

func (w *walk) find() *Run {
	order := w.order()
	if w.line.View == nil || w.gate.Closed() {
		return nil
	}
	for i := range order {
		at := w.turn + i
		if at >= len(order) && w.line.View.cut {
			break
		}
		w.of = at % len(order)
		if r := w.first(order[w.of]); r != nil || w.dry {
			return r
		}
	}
	w.dry = w.line.View.cut
	return nil
}

// first returns the first run of a partition that can be let in.
func (w *walk) first(p *part) (best *Run) {
	for kind, runs := range p.runs {
		if !w.gate.Fits(p.name, kind == 0) {
			continue
		}
		at := w.at[p][kind]
		switch {
		case at < len(runs):
			if r := &runs[at]; best == nil || before(r, best) {
				best = r
			}
		case p.ends[kind] != nil:
			w.dry = true
			return nil
		}
	}
	return best
}

// enter gives the run that peek returned its place.
func (w *walk) enter() {
	p := w.order()[w.of]
	w.at[p][w.next.kind()]++
	w.gate.Enter(p.name, w.next.Begins())
	w.turn, w.found = w.of+1, false
}

// left reports whether limits keep runs in line out, and until when (store.Claim.Held).
func (w *walk) left() (held bool, until store.Time) {
	add := func(partition string, begins bool) {
		if at, holds := w.gate.Holds(partition, begins); holds {
			held, until = true, max(until, at)
		}
	}
	for _, k := range w.line.left {
		add(k.partition, k.begins)
	}
	for _, p := range w.order() {
		for kind, runs := range p.runs {
			if p.ends[kind] != nil || w.at[p][kind] < len(runs) {
				add(p.name, kind == 0)
			}
		}
	}
	return held, until
}
