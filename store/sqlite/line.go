//go:build cgo

package sqlite

import (
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// line is the runs in line for the places of a queue, during one claim. It looks at the index
// from the partition that has the turn, and at no more of it than it needs.
type line struct {
	*admission
	walks []*walk // of the runs that could be let in
	rated []*walk // of those that the rate keeps out
	parts []*part // the partitions with runs so far, in the order of their turns
	ended bool    // the walks have come round
	at    int     // in parts, of the next turn
	over  bool    // nobody can be let in any more
	taken int
	next  *seat // what peek has found
}

// seat is the run that gets the next place.
type seat struct {
	candidate
	part *part
	from *walk
}

// part is a partition, and its first runs by the walk that has come across them.
type part struct {
	name  string
	heads map[*walk][]candidate
}

// line prepares the line of a queue that has these aisles.
func (cl *claiming) line(aisles []aisle) (*line, error) {
	g, err := cl.admission(aisles[0].queue)
	if err != nil {
		return nil, err
	}
	l := &line{admission: g}
	for _, a := range aisles {
		walks, err := cl.walks(l, a)
		if err != nil {
			return nil, err
		}
		if a.begins() && !g.gate.Begins() {
			l.rated = append(l.rated, walks...)
		} else {
			l.walks = append(l.walks, walks...)
		}
	}
	return l, nil
}

// peek returns the run that gets the next place, nil if none can be let in.
func (l *line) peek() (*seat, error) {
	if l.over = l.over || l.gate.Closed(); l.over {
		return nil, nil
	}
	if l.next != nil {
		return l.next, nil
	}
	if !l.gate.Begins() { // the claim has used the rate up: who is further back need not be met
		l.walks = slices.DeleteFunc(l.walks, func(w *walk) bool {
			if w.begins() {
				l.rated = append(l.rated, w)
			}
			return w.begins()
		})
	}
	for !l.ended {
		p, err := l.meet(l.walks)
		if err != nil {
			return nil, err
		}
		if p == nil {
			l.ended, l.at = true, 0
			break
		}
		l.parts = append(l.parts, p)
		if l.next = l.first(p); l.next != nil {
			return l.next, nil
		}
	}
	for range l.parts {
		p := l.parts[l.at%len(l.parts)]
		if l.next = l.first(p); l.next != nil {
			return l.next, nil
		}
		l.at++
	}
	l.over = true // limits only get tighter during a claim
	return nil, nil
}

// meet returns the next partition that one of the walks comes to, with what all of them find
// there; nil: there is none.
func (l *line) meet(walks []*walk) (*part, error) {
	var p *part
	for _, w := range walks {
		h, err := w.peek(l)
		if err != nil {
			return nil, err
		}
		switch {
		case h == nil:
			continue
		case p == nil || w.compare(h.partition, p.name) < 0:
			p = &part{name: h.partition, heads: map[*walk][]candidate{}}
		case h.partition != p.name:
			continue
		}
		p.heads[w] = nil
	}
	if p == nil {
		return nil, nil
	}
	for w := range p.heads {
		p.heads[w] = w.pass(p.name)
	}
	return p, nil
}

// first returns the first run of a partition that can be let in.
func (l *line) first(p *part) *seat {
	if l.gate.Full(p.name) {
		return nil
	}
	var best *seat
	for w, heads := range p.heads {
		if len(heads) > 0 && (!w.begins() || l.gate.Begins()) && (best == nil || heads[0].before(best.candidate)) {
			best = &seat{candidate: heads[0], part: p, from: w}
		}
	}
	return best
}

// enter gives the run that peek has found its place, and finds who is behind it. If it was not
// taken, it leaves the line without one.
func (l *line) enter(taken bool) error {
	s := l.next
	l.next = nil
	if taken {
		l.taken++
		l.turn, l.moved = s.partition, l.moved || l.turn != s.partition
		l.admit(s.partition, s.from.begins())
		if l.ended {
			l.at++
		}
	}
	heads := s.part.heads[s.from][1:]
	if len(heads) == 0 {
		var err error
		if heads, err = s.from.behind(s.candidate); err != nil {
			return err
		}
	}
	s.part.heads[s.from] = heads
	return nil
}

// held tells the claim that a limit of the queue has kept a run out, if it has.
func (l *line) held() error {
	cl := l.cl
	if cl.c.Held == nil {
		return nil
	}
	if l.gate.Closed() {
		if _, holds := l.gate.Holds("", false); !holds {
			return nil // it has no room
		}
		left, err := l.left()
		if left {
			cl.c.Held(l.Name, 0)
		}
		return err
	}
	until, any := store.Time(0), false
	note := func(p *part) {
		for w, heads := range p.heads {
			if len(heads) > 0 {
				at, holds := l.gate.Holds(p.name, w.begins())
				until, any = max(until, at), any || holds
			}
		}
	}
	for _, p := range l.parts {
		note(p)
	}
	for until == 0 && len(l.rated) > 0 {
		p, err := l.meet(l.rated)
		if err != nil {
			return err
		}
		if p == nil {
			break
		}
		note(p)
	}
	if any {
		cl.c.Held(l.Name, until)
	}
	return nil
}

// left reports whether a run is in line that the claim has not taken.
func (l *line) left() (left bool, err error) {
	if l.taken == 0 {
		return true, nil
	}
	err = l.cl.lines(l.cl.c.Serves, l.cl.live, func(a aisle) error {
		if left = a.queue == l.Name; left {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return left, err
}
