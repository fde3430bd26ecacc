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
	timed bool // instead: those that had a timer, of all workflows
	wraps bool
	want  int // partitions that are not full
	read  int
	last  string
}

// spot is a partition of a lane.
type spot struct {
	*stretch
	partition string
	lane      lane
	priority  int64 // of those that had a timer
	share     int   // how many of its runs to read
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
			if q.deep {
				q.Leave("", true)
			}
			continue
		}
		q.View = line.NewView(q.turn)
		add := func(st stretch) {
			if st.queue, st.want = q, reach; st.held() {
				st.want = 1
			}
			after, upTo := st, st
			upTo.wraps = true
			list = append(list, &after, &upTo)
		}
		for _, lane := range q.lanes {
			add(stretch{lane: lane})
		}
		if q.deep {
			add(stretch{lane: lane{status: store.Pending}, timed: true})
		}
	}
	return list
}

// readParts reads the next partitions of stretches that are not full.
func readParts(w *wire, s *survey, list []*stretch) (spots []*spot, err error) {
	var fullQueues, fullParts array
	for name, q := range s.queues {
		for partition := range q.Use.Parts {
			if q.Full(partition) {
				fullQueues.text(name)
				fullParts.text(partition)
			}
		}
	}
	for _, timed := range []bool{false, true} {
		list := slices.DeleteFunc(slices.Clone(list), func(st *stretch) bool { return st.timed != timed })
		if len(list) == 0 {
			continue
		}
		var statuses, workflows, versions, queues, lows, highs, wants array
		for _, st := range list {
			statuses.text(string(st.lane.status))
			workflows.text(st.lane.workflow)
			versions.text(st.lane.version)
			queues.text(st.queue.Queue.Name)
			wants.int(int64(st.want))
			if st.wraps {
				lows.text("")
				highs.text(st.queue.turn)
			} else {
				lows.text(st.queue.turn + "\x01") // the next text in the order of bytes
				highs.null()
			}
		}
		name, args := "line_parts", []driverValue{
			statuses.value(), workflows.value(), versions.value(), queues.value(), lows.value(), highs.value(), fullQueues.value(), fullParts.value(), wants.value(),
		}
		if timed {
			name, args = "timed_parts", []driverValue{
				queues.value(), lows.value(), highs.value(), wants.value(), s.workflows, s.versions, fullQueues.value(), fullParts.value(), int64(s.now),
			}
		}
		err := w.query(name, func(v []driverValue) error {
			if p := list[v[0].(int64)-1].add(v); p != nil {
				spots = append(spots, p)
			}
			return nil
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	return spots, nil
}

// add takes a row of a partition; nil: no run of it can be let in.
func (st *stretch) add(v []driverValue) *spot {
	name, full := v[1].(string), v[2].(bool)
	if full || st.held() {
		st.queue.Leave(name, st.lane.status == store.Pending)
	}
	if full {
		return nil
	}
	if st.read == 0 || name != st.last {
		st.read, st.last = st.read+1, name
	}
	p := &spot{stretch: st, partition: name, lane: st.lane}
	if st.timed {
		p.lane.workflow, p.lane.version, p.priority = v[3].(string), v[4].(string), v[5].(int64)
	}
	return p
}

// readHeads reads the first runs of spots.
func readHeads(w *wire, s *survey, spots []*spot) error {
	for _, timed := range []bool{false, true} {
		list := slices.DeleteFunc(slices.Clone(spots), func(p *spot) bool { return p.timed != timed })
		if len(list) == 0 {
			continue
		}
		var statuses, workflows, versions, queues, partitions, priorities, shares array
		for _, p := range list {
			statuses.text(string(p.lane.status))
			workflows.text(p.lane.workflow)
			versions.text(p.lane.version)
			queues.text(p.queue.Queue.Name)
			partitions.text(p.partition)
			priorities.int(p.priority)
			shares.int(int64(p.share))
		}
		name, args := "line_heads", []driverValue{statuses.value(), workflows.value(), versions.value(), queues.value(), partitions.value(), s.owners, shares.value()}
		if timed {
			name, args = "timed_heads", []driverValue{
				workflows.value(), versions.value(), queues.value(), partitions.value(), priorities.value(), s.owners, shares.value(), int64(s.now),
			}
		}
		err := w.query(name, func(v []driverValue) error {
			p := list[v[0].(int64)-1]
			p.runs = append(p.runs, line.Run{
				No: v[1].(int64), Queue: p.queue.Queue.Name, Partition: p.partition, Status: p.lane.status, Rank: store.Time(v[2].(int64)), Place: true,
			})
			return nil
		}, args...)
		if err != nil {
			return err
		}
	}
	return nil
}
