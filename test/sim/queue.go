package sim

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// lineName is the name of the one queue.
const lineName = "line"

// A Queue is what the root runs of a world wait in. Zero: no limit.
type Queue struct {
	Max, PerPartition, PerProcess, Rate int

	Per  time.Duration
	Line []Spot // of each root run, counted round
}

// A Spot says how a root run gets in line.
type Spot struct {
	Partition string
	Priority  int
	Delay     time.Duration
	Dedup     string
}

// spot returns how a root run gets in line; the zero Spot: it is on no queue, or not a root.
func (s *sim) spot(id string) Spot {
	q := s.world.Queue
	if q == nil || len(q.Line) == 0 || s.world.Begin.Bulk {
		return Spot{}
	}
	i := slices.Index(s.roots(), id)
	if i < 0 {
		return Spot{}
	}
	return q.Line[i%len(q.Line)]
}

// options are those of the start of a root run.
func (q *Queue) options(at Spot) (o []durable.StartOption) {
	if q == nil {
		return nil
	}
	o = append(o, durable.OnQueue(lineName), durable.Priority(at.Priority), durable.Delay(at.Delay))
	if at.Partition != "" {
		o = append(o, durable.Partition(at.Partition))
	}
	if at.Dedup != "" {
		o = append(o, durable.Dedup(at.Dedup))
	}
	return o
}

// declared is the queue as each process declares it.
func (q *Queue) declared() []durable.Queue {
	if q == nil {
		return nil
	}
	return []durable.Queue{{
		Name: lineName, Max: q.Max, MaxPerProcess: q.PerProcess, MaxPerPartition: q.PerPartition, Rate: q.Rate, Per: q.Per,
	}}
}

// lineBook is what is known of the queue outside of the store.
type lineBook struct {
	mu      sync.Mutex
	begun   []store.Time          // when runs began
	came    map[string]store.Time // when runs were there, which may be after they were made
	turns   int                   // that partitions have had
	last    map[string]turn       // the last one with which a run of each partition began
	any     map[string]int        // the last one of each partition, or that passed it over because it was full
	woken   map[string]bool       // runs that were taken while they waited, which needs no room in a process
	spared  map[string]bool       // runs that were cancelled before they began, which need no place
	paused  bool                  // an operator was told that the queue is paused
	resumed int                   // how often it was resumed
}

func (b *lineBook) comes(run string, at store.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came[run] = at
}

// A turn is a place that a partition was given.
type turn struct {
	n  int
	at store.Time
}

// pausing notes that somebody pauses the queue; acknowledged notes that it is paused. A resume that
// has begun in between may have come after the pause.
func (b *lineBook) pausing() (acknowledged func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.resumed
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.paused = b.paused || b.resumed == before
	}
}

// resumes notes that the queue is about to be resumed.
func (b *lineBook) resumes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused, b.resumed = false, b.resumed+1
}

// clockSet takes beginnings that are later than the clock, which was set, as ones of its time. Those
// of more than a window before do not come back.
func (b *lineBook) clockSet(before, now store.Time, window time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = slices.DeleteFunc(b.begun, func(at store.Time) bool { return at <= before.Add(-window) })
	for i := range b.begun {
		b.begun[i] = min(b.begun[i], now)
	}
}

// inLine returns the runs of the queue.
func (s *sim) inLine() (rows []store.Run) {
	return slices.DeleteFunc(s.rows(), func(r store.Run) bool { return r.Queue != lineName })
}

// askLine checks what must hold of the queue at any moment.
func (s *sim) askLine() {
	q := s.world.Queue
	if q == nil {
		return
	}
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	all, parts, keys := 0, map[string]int{}, map[string]string{}
	for _, r := range s.inLine() {
		if r.Status.Terminal() {
			continue
		}
		if key := r.Dedup; key != "" && keys[key] != "" {
			s.fail("%s and %s have the key %q, and neither has ended", keys[key], r.ID, key)
		} else if key != "" {
			keys[key] = r.ID
		}
		// What is being imported and has completed counts as running until all of it is there.
		if r.Placed() && !s.line.spared[r.ID] && r.Code != durable.CodeImporting {
			all++
			parts[r.Partition]++
		}
	}
	if q.Max > 0 && all > q.Max {
		s.fail("%d runs hold a place in a queue of %d", all, q.Max)
	}
	for part, n := range parts {
		if q.PerPartition > 0 && n > q.PerPartition {
			s.fail("%d runs of partition %q hold a place, and %d may", n, part, q.PerPartition)
		}
	}
}

// askClaim checks that the runs that a claim was given were to be given.
func (s *sim) askClaim(c *store.Claim, taken []store.Run) {
	q := s.world.Queue
	if q == nil || len(taken) == 0 {
		return
	}
	now := s.now()
	rows := s.inLine()
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	for i := range taken {
		r := &taken[i]
		if r.Queue != lineName || r.Last == nil {
			continue
		}
		switch r.Last.Type {
		case store.RunClaimed:
			s.line.woken[r.ID] = true
		case store.RunResumed: // perhaps as the turn of its partition
			s.tookTurn(r.Partition, placedOf(rows))
		}
		if r.Last.Type != store.WorkflowStarted {
			continue
		}
		if r.CancelAsked {
			s.line.spared[r.ID] = true
			continue
		}
		s.askBeginning(r, now)
		if len(c.IDs) == 0 {
			s.askTurn(r, c.Serves, slices.Concat(taken[i+1:], rows), now)
		}
	}
	if q.PerProcess > 0 {
		s.askRoom(c.Executor, rows)
	}
}

// askBeginning checks that a run of the queue may begin now. The book's mutex is held.
func (s *sim) askBeginning(r *store.Run, now store.Time) {
	q, b := s.world.Queue, s.line
	if b.paused {
		s.fail("%s begins, and the queue is paused", r.ID)
	}
	if at := s.spot(r.ID); at.Delay > 0 && now < r.CreatedAt.Add(at.Delay) {
		s.fail("%s begins after %s, and its delay is %s", r.ID, now.Sub(r.CreatedAt), at.Delay)
	}
	b.begun = append(b.begun, min(now, s.now())) // the clock may have been set since the claim looked at it
	if q.Rate == 0 {
		return
	}
	n := 0
	for _, at := range b.begun {
		if at > now.Add(-q.Per) {
			n++
		}
	}
	if n > q.Rate {
		s.fail("%d runs of the queue began within %s, and %d may", n, q.Per, q.Rate)
	}
}

// askTurn checks that no other run had to begin before this one. The book's mutex is held.
func (s *sim) askTurn(r *store.Run, serves []store.Served, others []store.Run, now store.Time) {
	q, b := s.world.Queue, s.line
	placed := placedOf(others)
	before, again := b.last[r.Partition]
	for i := range others {
		o := &others[i]
		due := max(o.CreatedAt.Add(s.spot(o.ID).Delay), b.came[o.ID])
		// Those behind in the same claim are Running by now, and have begun with it.
		waits := o.Status == store.Pending && store.Serves(serves, o.Workflow, o.Version) && !o.CancelAsked && !o.Paused && due <= now && !s.ledger.wasMeddled(o.ID)
		if !waits {
			continue
		}
		if o.Partition == r.Partition && s.rank(o) < s.rank(r) && !s.ledger.wasMeddled(r.ID) {
			s.fail("%s begins, and %s, which comes before it, waits", r.ID, o.ID)
		}
		fits := q.PerPartition == 0 || placed[o.Partition] < q.PerPartition
		if o.Partition != r.Partition && again && fits && due < before.at && b.any[o.Partition] < before.n {
			s.fail("partition %q has another turn with %s, and %q with %s has had none since", r.Partition, r.ID, o.Partition, o.ID)
		}
	}
	s.tookTurn(r.Partition, placed)
	b.last[r.Partition] = turn{b.turns, now}
}

// placedOf returns how many of these runs hold a place in each partition.
func placedOf(rows []store.Run) map[string]int {
	placed := map[string]int{}
	for i := range rows {
		if rows[i].Placed() {
			placed[rows[i].Partition]++
		}
	}
	return placed
}

// tookTurn notes that a partition was given a place, when these were held. The book's mutex is held.
func (s *sim) tookTurn(partition string, placed map[string]int) {
	b, most := s.line, s.world.Queue.PerPartition
	b.turns++
	for p, n := range placed {
		if most > 0 && n >= most {
			b.any[p] = b.turns
		}
	}
	b.any[partition] = b.turns
}

// rank is the place of a run in line: since when it is due, an hour earlier for each step of
// its priority.
func (s *sim) rank(r *store.Run) store.Time {
	at := s.spot(r.ID)
	return r.CreatedAt.Add(at.Delay).Add(-time.Duration(at.Priority) * time.Hour)
}

// askRoom checks how many runs of the queue one process has. The book's mutex is held.
func (s *sim) askRoom(executor string, rows []store.Run) {
	n := 0
	for i := range rows {
		if r := &rows[i]; r.Owner == executor && r.Placed() && !s.line.woken[r.ID] && !s.line.spared[r.ID] {
			n++
		}
	}
	s.mu.Lock()
	excused := s.disturbed // it does not know of all that it has
	s.mu.Unlock()
	if limit := s.world.Queue.PerProcess; n > limit && !excused {
		s.fail("one process has %d runs of the queue, and may have %d", n, limit)
	}
}

// literal prints a queue as Go code.
func (q *Queue) literal() string {
	s := fmt.Sprintf("&sim.Queue{Max: %d, PerPartition: %d, PerProcess: %d, Rate: %d%s, Line: []sim.Spot{", q.Max, q.PerPartition, q.PerProcess, q.Rate, field("Per", q.Per))
	for i, at := range q.Line {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("{Partition: %q, Priority: %d, Dedup: %q%s}", at.Partition, at.Priority, at.Dedup, field("Delay", at.Delay))
	}
	return s + "}}"
}

// heldByAnother reports whether a start was refused because another run has its key, which
// must be one that may have it.
func (s *sim) heldByAnother(id string, err error) bool {
	var c *durable.ConflictError
	key := s.spot(id).Dedup
	if !errors.As(err, &c) || c.Holder == "" {
		return false
	}
	if key == "" || s.spot(c.Holder).Dedup != key || c.Holder == id {
		s.fail("Start of %s is refused for the key of %s: %v", id, c.Holder, err)
	}
	return true
}

// queue puts the root runs of a world on a queue.
func (g *Generator) queue(w *World) {
	q := &Queue{
		Max: pick(g, 0, 1, 1, 2, 3), PerPartition: pick(g, 0, 0, 1, 1, 2), PerProcess: pick(g, 0, 0, 0, 1, 2),
	}
	if g.chance(30) {
		q.Rate, q.Per = pick(g, 1, 2, 3), pick(g, 2*time.Second, 15*time.Second, 40*time.Second)
	}
	for range g.rng.IntN(5) + 1 {
		at := Spot{Partition: pick(g, "", "", "a", "a", "b", "c"), Priority: pick(g, 0, 0, 0, 1, 2, -1)}
		at.Delay = pick(g, 0, 0, 0, 0, time.Second, 10*time.Second, 40*time.Second)
		at.Dedup = pick(g, "", "", "", "", "k")
		q.Line = append(q.Line, at)
	}
	w.Queue, w.Runs = q, pick(g, 2, 3, 4, 6)
	if g.chance(25) {
		w.Acts = append(w.Acts, Act{Do: PauseQueue, After: pick(g, 0, time.Second, 5*time.Second)})
		if g.chance(50) {
			w.Acts = append(w.Acts, Act{Do: ResumeQueue, After: pick(g, 10*time.Second, 30*time.Second, time.Minute)})
		}
	}
}
