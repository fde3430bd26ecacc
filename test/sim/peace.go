package sim

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The lengths of the peace before anybody gives a run anything.
const (
	atPeace  = 2 * time.Minute  // for leases to run out, and for what is due to be taken
	aMoment  = 10 * time.Second // in which a run that has something to do does it
	atLength = 30 * time.Minute // after which nobody waits for stillness any more
)

// askOwed checks, before settle gives the runs what they wait for, that nothing is owed to them:
// what people were told is carried out, and a run that waits has nothing to do. Whatever settle
// sends would have a run looked at that nobody would have come to otherwise.
func (s *sim) askOwed() {
	if s.failed() || s.allEnded() || s.world.Release == Plainly { // a build that a run does not fit parks it whenever it looks
		return
	}
	was := -1
	for began, pause := time.Now(), atPeace; time.Since(began) < atLength; pause = aMoment {
		time.Sleep(pause)
		synctest.Wait()
		if s.failed() || s.allEnded() {
			return
		}
		s.mu.Lock()
		before := was
		was = s.events
		s.mu.Unlock()
		// The rows of runs that are in the middle of something may say for milliseconds that all wait: a
		// child has ended, and its parent's next event is under way.
		if rows := s.rows(); was == before && s.still(rows) {
			s.askCarriedOut(rows)
			s.askDesk(rows)
			s.knock(rows)
			return
		}
	}
}

// still reports whether no run has anything to do in the next moment, as the rows say.
func (s *sim) still(rows []store.Run) bool {
	soon := s.now().Add(2 * aMoment)
	for i := range rows {
		r := &rows[i]
		waits := r.Status == store.Waiting && (r.WakeAt == 0 || r.WakeAt > soon)
		if !waits && !r.Status.Terminal() && !r.Paused && !r.Parked() {
			return false
		}
	}
	return true
}

// askCarriedOut checks that what people have asked for, and were told that it is accepted, has
// been carried out.
func (s *sim) askCarriedOut(rows []store.Run) {
	for i := range rows {
		r := &rows[i]
		t := s.ledger.run(r.ID)
		if r.Status.Terminal() || t.meddled || r.Code == durable.CodeImporting {
			continue
		}
		if t.stopped && !r.Paused && !r.Parked() {
			s.fail("%s is %s, its pause was acknowledged, and nobody has unpaused it", r.ID, r.Status)
		}
		if t.cancelledAt != 0 && !(r.NeedsPlace() && s.isFull(r.Partition, rows)) {
			s.fail("%s is %s, and its cancel was acknowledged", r.ID, r.Status)
		}
	}
}

// isFull reports whether the queue has no place for a run of a partition.
func (s *sim) isFull(partition string, rows []store.Run) bool {
	all, q := 0, s.world.Queue
	placed := placedOf(rows)
	for _, n := range placed {
		all += n
	}
	return q.Max > 0 && all >= q.Max || q.PerPartition > 0 && placed[partition] >= q.PerPartition
}

// knock sends each run that waits a signal that no wait wants. One that does more than look at
// it had been forgotten.
func (s *sim) knock(rows []store.Run) {
	p := s.live(0)
	if p == nil {
		return // settle says so
	}
	ctx, cancel := context.WithTimeout(durable.NewContext(context.Background(), p.engine()), time.Minute)
	defer cancel()
	before := map[string]int{}
	for i := range rows {
		if r := &rows[i]; r.Status == store.Waiting && !r.Paused {
			before[r.ID] = s.deedsOf(r.ID)
		}
	}
	for id := range before {
		err := durable.Signal(ctx, id, "knock", signalled)
		if err == nil {
			continue
		}
		if h, gone := s.data.Load(ctx, id, store.Cursor{NoEvents: true}); gone != nil || !h.Run.Status.Terminal() {
			s.fail("Signal to %s, which waits: %v", id, err)
		}
		delete(before, id) // it has ended meanwhile
	}
	s.mu.Lock()
	s.knocks += len(before)
	s.mu.Unlock()
	time.Sleep(aMoment)
	synctest.Wait()
	for i := range rows {
		id, said := rows[i].ID, ""
		if n, waited := before[id]; waited && s.deedsOf(id) != n {
			s.mu.Lock()
			said = fmt.Sprint(s.last[id].Type)
			s.mu.Unlock()
			s.fail("%s waited, and had something to do that nobody came to (%s)", id, said)
		}
	}
}

// deedsOf returns how many events a run has that say more than who has it.
func (s *sim) deedsOf(id string) (n int) {
	h, err := s.data.Load(context.Background(), id, store.Cursor{All: true})
	if err != nil {
		return 0
	}
	for e, err := range h.Events {
		if err == nil && e.Type != store.RunClaimed {
			n++
		}
	}
	return n
}
