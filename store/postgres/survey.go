package postgres

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
	"github.com/holdfast-dev/holdfast/store/internal/line"
)

// survey is what a claim has seen: runs that it may take, and how full their queues are.
type survey struct {
	owners driverValue // whose runs may be claimed
	now    store.Time
	// What the executor serves, in pairs.
	workflows, versions driverValue
	free                []line.Run // what needs no place, in order
	named               []line.Run // instead of all else: what was asked for, in order
	only                bool       // named is all there is
	inTurn              bool       // named is from the front of lines: it takes their turns
	queues              map[string]*queue
}

// queue is a queue with runs in line.
type queue struct {
	line.Line
	known bool   // it has a row
	turn  string // the partition that had the last turn
	begun int64  // how many claims the row has counted
	lanes []lane
	timed []line.Run // those in line that had a timer, or were paused
	deep  bool       // more had a timer than timed could hold: it has none of them
}

// lane is the runs in line without a timer of one status, workflow and version.
type lane struct {
	status            store.Status
	workflow, version string
}

// limited reports whether claims from the queue have to be one at a time.
func (q *queue) limited() bool {
	return q.Queue.Max > 0 || q.Queue.MaxPerPartition > 0 || q.Queue.Rate > 0 || q.Queue.Paused
}

// plan plans to take that many runs; it does not change s.
func (s *survey) plan(most int) line.Plan {
	if s.only {
		return line.Named(s.named, func(queue string) *line.Line { return &s.queues[queue].Line }, most)
	}
	var lines []*line.Line
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		lines = append(lines, &s.queues[name].Line)
	}
	return line.Make(s.free, lines, most)
}

// just returns a survey of these runs alone.
func (s *survey) just(list ...line.Run) *survey {
	return &survey{owners: s.owners, now: s.now, named: list, only: true, inTurn: !s.only, queues: s.queues}
}

// queue returns a queue, and adds it to s.
func (s *survey) queue(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{Line: line.Line{Queue: store.Queue{Name: name}, Now: s.now}}
		s.queues[name] = q
	}
	return q
}

// maxTimed is how many runs whose time has come a claim looks at without looking at
// their partitions. Partitions are looked at whether or not their time has come, so that
// costs more where many runs wait in many partitions.
const maxTimed = 256

// survey looks for what the claim may take: enough for want runs.
func (c *claiming) survey(w *wire, want int) (*survey, error) {
	all, err := c.store.census(w)
	if err != nil {
		return nil, err
	}
	if !all.isLive(c.claim.Executor) {
		return nil, c.unknown()
	}
	s := &survey{owners: all.free(), now: all.now, queues: map[string]*queue{}}
	if len(c.claim.IDs) > 0 {
		return s, c.surveyNamed(w, s)
	}
	s.workflows, s.versions = pairs(c.claim.Serves)
	listed := c.listed()
	err = w.query("due", func(v []driverValue) error {
		r := scanCandidate(v)
		switch {
		case c.tried[r.No]:
		case !r.Place:
			s.free = append(s.free, r)
		default:
			s.queue(r.Queue).timed = append(s.queue(r.Queue).timed, r)
		}
		return nil
	}, int64(s.now), s.owners, s.workflows, s.versions, listed, c.claim.AnyQueue, int64(c.reach(want)), int64(maxTimed+len(c.tried)))
	if err != nil || listed == "{}" && !c.claim.AnyQueue {
		return s, err
	}
	for _, q := range s.queues {
		if q.deep = len(q.timed) >= maxTimed; q.deep {
			q.timed = slices.DeleteFunc(q.timed, func(r line.Run) bool { return r.Begins() })
		}
	}
	name, args := "lanes_listed", []driverValue{s.workflows, s.versions, listed}
	if c.claim.AnyQueue {
		name, args = "lanes_any", args[:2]
	}
	err = w.query(name, func(v []driverValue) error {
		q := s.queue(v[3].(string))
		q.lanes = append(q.lanes, lane{store.Status(v[0].(string)), v[1].(string), v[2].(string)})
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	if err := c.readQueues(w, s, slices.Sorted(maps.Keys(s.queues))); err != nil {
		return nil, err
	}
	return s, c.readLines(w, s, want)
}

// unknown is the error of a claim of an executor that is not live.
func (c *claiming) unknown() error {
	return fmt.Errorf("postgres: executor %q must beat before it claims: %w", c.claim.Executor, store.ErrNotFound)
}

// surveyNamed looks at the runs that the claim asks for.
func (c *claiming) surveyNamed(w *wire, s *survey) error {
	s.only = true
	seen := map[int64]bool{}
	workflows, versions := pairs(c.claim.Serves)
	err := w.query("named", func(v []driverValue) error {
		if r := scanCandidate(v); !c.tried[r.No] && !seen[r.No] {
			seen[r.No] = true
			s.named = append(s.named, r)
		}
		return nil
	}, names(c.claim.IDs...), s.owners, workflows, versions)
	if err != nil {
		return err
	}
	return c.readQueues(w, s, queuesOf(s.named))
}

func scanCandidate(v []driverValue) line.Run {
	return line.Run{
		No: v[0].(int64), Queue: v[1].(string), Partition: v[2].(string), Status: store.Status(v[3].(string)),
		Rank: store.Rank(store.Time(v[5].(int64)), int32(v[4].(int64))), Place: v[6].(bool),
	}
}

// reach is how many runs to look at for want of them: those that were tried in vain are
// still there, and where some were passed over, the next ones may be, too.
func (c *claiming) reach(want int) int {
	return spare(want) + len(c.tried) - len(c.taken) + min(c.spared, maxBatch) + c.further
}

// listed returns the named queues that the claim lists.
func (c *claiming) listed() driverValue {
	var list []string
	for _, q := range c.claim.Queues {
		if q.Queue != "" {
			list = append(list, q.Queue)
		}
	}
	return names(list...)
}

// queuesOf returns the queues in which runs need places.
func queuesOf(list []line.Run) []string {
	queues := map[string]bool{}
	for i := range list {
		if list[i].Place {
			queues[list[i].Queue] = true
		}
	}
	return slices.Sorted(maps.Keys(queues))
}

// readQueues reads queues and what is in use of them.
func (c *claiming) readQueues(w *wire, s *survey, list []string) error {
	if len(list) == 0 {
		return nil
	}
	for _, name := range list {
		s.queue(name).Room = c.room(name)
	}
	if err := readRows(w, "queues_of", s.queues, list); err != nil {
		return err
	}
	ahead, err := readUse(w, s.queues, list)
	if err != nil {
		return err
	}
	return setBack(w, s.queues, ahead)
}

// readRows reads the rows of queues with one of the statements that do.
func readRows(w *wire, statement string, queues map[string]*queue, list []string) error {
	return w.query(statement, func(v []driverValue) error {
		row, turn, begun, err := scanQueue(v)
		q := queues[row.Name]
		q.Queue, q.known, q.turn, q.begun = row, true, turn, begun
		return err
	}, texts(list...))
}

// readUse reads what is in use of those queues that have limits. ahead are those of
// which claims are remembered for later, because the clock has gone back.
func readUse(w *wire, queues map[string]*queue, list []string) (ahead []string, err error) {
	var limited, parted []string
	for _, name := range list {
		q := queues[name]
		q.Use = gate.Use{}
		if q.limited() {
			limited = append(limited, name)
		}
		if q.Queue.MaxPerPartition > 0 {
			q.Use.Parts = map[string]int{}
			parted = append(parted, name)
		}
	}
	if len(limited) == 0 {
		return nil, nil
	}
	err = w.query("queue_use", func(v []driverValue) error {
		name := v[0].(string)
		q := queues[name]
		q.Now, q.Use.Placed = store.Time(v[1].(int64)), int(v[2].(int64))
		q.Use.Count, q.Use.First = int(v[3].(int64)), min(store.Time(v[4].(int64)), q.Now)
		if v[5].(bool) {
			ahead = append(ahead, name)
		}
		return nil
	}, texts(limited...))
	if err != nil || len(parted) == 0 {
		return ahead, err
	}
	err = w.query("queue_parts", func(v []driverValue) error {
		queues[v[0].(string)].Use.Parts[v[1].(string)] = int(v[2].(int64))
		return nil
	}, texts(parted...))
	return ahead, err
}

// setBack takes claims that are remembered for later as ones of now. Where nothing is
// let in because of them, no claim would ever do that under the queue's lock.
func setBack(w *wire, queues map[string]*queue, ahead []string) error {
	if len(ahead) == 0 {
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	if err := readRows(w, "queue_lock", queues, ahead); err != nil {
		return err
	}
	if err := clamp(w, queues, ahead); err != nil {
		return err
	}
	return w.commit()
}

// clamp does so under the locks of the queues.
func clamp(w *wire, queues map[string]*queue, ahead []string) error {
	if len(ahead) == 0 {
		return nil
	}
	ahead, err := readUse(w, queues, ahead)
	if err != nil {
		return err
	}
	for _, name := range ahead {
		if _, err := w.exec("begun_clamp", name, int64(queues[name].Now)); err != nil {
			return err
		}
	}
	return nil
}
