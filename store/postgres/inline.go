package postgres

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/line"
)

// The partitions of a line are found from one to the next, first those after the turn,
// then those up to it, and only as many as a claim can need: neither they nor the runs
// of a partition are ever read as a whole.

// stretch is the partitions of a lane after the turn or, if it wraps, those up to it.
type stretch struct {
	queue *queue
	lane  lane
	wraps bool
	want  int // partitions that are not full
	read  int
	last  string
}

// spot is a partition of a lane.
type spot struct {
	*stretch
	partition string
	share     int // how many of its runs to read
	runs      []line.Run
}

// readLines reads as much of the lines as a plan for want runs needs.
func (c *claiming) readLines(w *wire, s *survey, want int) error {
	reach := c.reach(want)
	stretches := stretches(s, reach)
	spots, err := readParts(w, s, stretches)
	if err != nil {
		return err
	}
	for _, st := range stretches {
		if st.read >= st.want && !st.held() {
			st.queue.View.Cut(st.wraps, st.last)
		}
	}
	spots = slices.DeleteFunc(spots, func(p *spot) bool { return p.held() || !p.queue.View.Knows(p.partition) })
	for _, p := range spots {
		p.queue.View.Open(p.partition)
	}
	for _, q := range s.queues {
		for _, r := range q.timed {
			if q.View != nil && !q.Full(r.Partition) && q.View.Knows(r.Partition) {
				q.View.Open(r.Partition)
			} else {
				q.Leave(r.Partition, r.Begins())
			}
		}
	}
	for _, p := range spots {
		// Its part of the turns, and some more, in case others have fewer runs.
		p.share = reach/p.queue.View.Partitions() + 2 + len(c.tried) - len(c.taken)
	}
	if err := readHeads(w, s, spots); err != nil {
		return err
	}
	for _, p := range spots {
		if len(p.runs) == p.share {
			p.queue.View.End(p.runs[len(p.runs)-1])
		}
		for _, r := range p.runs {
			if !c.tried[r.No] {
				p.queue.View.Add(r)
			}
		}
	}
	for _, q := range s.queues {
		if q.View == nil {
			continue
		}
		for _, r := range q.timed {
			q.View.Add(r)
		}
		q.View.Done()
	}
	return nil
}

// held reports that the rate lets no run of the stretch begin. Of such a one it is
// only looked up whether there is a partition with places.
func (st *stretch) held() bool { return st.lane.status == store.Pending && !st.queue.Gate().Begins() }

// stretches returns what there is to read of the lines that let runs in.
func stretches(s *survey, reach int) (list []*stretch) {
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		q := s.queues[name]
		if q.Forget(); q.Gate().Closed() {
			for _, lane := range q.lanes {
				q.Leave("", lane.status == store.Pending) // in any partition
			}
			continue
		}
		q.View = line.NewView(q.turn)
		for _, lane := range q.lanes {
			for _, wraps := range []bool{false, true} {
				st := &stretch{queue: q, lane: lane, wraps: wraps, want: reach}
				if st.held() {
					st.want = 1
				}
				list = append(list, st)
			}
		}
	}
	return list
}

// laneArrays are lanes as arguments of a statement.
type laneArrays struct{ statuses, workflows, versions, queues array }

func (a *laneArrays) add(st *stretch) {
	a.statuses.text(string(st.lane.status))
	a.workflows.text(st.lane.workflow)
	a.versions.text(st.lane.version)
	a.queues.text(st.queue.Queue.Name)
}

func (a *laneArrays) with(more ...driverValue) []driverValue {
	return append([]driverValue{a.statuses.value(), a.workflows.value(), a.versions.value(), a.queues.value()}, more...)
}

// readParts reads the next partitions of stretches that are not full.
func readParts(w *wire, s *survey, list []*stretch) (spots []*spot, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	var a laneArrays
	var lows, highs, fullQueues, fullParts, wants array
	for _, st := range list {
		a.add(st)
		wants.int(int64(st.want))
		if st.wraps {
			lows.text("")
			highs.text(st.queue.turn)
		} else {
			lows.text(st.queue.turn + "\x01") // the next text in the order of bytes
			highs.null()
		}
	}
	for name, q := range s.queues {
		for partition := range q.Use.Parts {
			if q.Full(partition) {
				fullQueues.text(name)
				fullParts.text(partition)
			}
		}
	}
	err = w.query("line_parts", func(v []driverValue) error {
		st := list[v[0].(int64)-1]
		if v[2].(bool) || st.held() {
			st.queue.Leave(v[1].(string), st.lane.status == store.Pending)
		}
		if v[2].(bool) {
			return nil
		}
		st.read, st.last = st.read+1, v[1].(string)
		spots = append(spots, &spot{stretch: st, partition: st.last})
		return nil
	}, a.with(lows.value(), highs.value(), fullQueues.value(), fullParts.value(), wants.value())...)
	return spots, err
}

// readHeads reads the first runs of spots.
func readHeads(w *wire, s *survey, spots []*spot) error {
	if len(spots) == 0 {
		return nil
	}
	var a laneArrays
	var partitions, shares array
	for _, p := range spots {
		a.add(p.stretch)
		partitions.text(p.partition)
		shares.int(int64(p.share))
	}
	return w.query("line_heads", func(v []driverValue) error {
		p := spots[v[0].(int64)-1]
		p.runs = append(p.runs, line.Run{
			No: v[1].(int64), Queue: p.queue.Queue.Name, Partition: p.partition, Status: p.lane.status, Rank: store.Time(v[2].(int64)), Place: true,
		})
		return nil
	}, a.with(partitions.value(), s.owners, shares.value())...)
}
