package durable

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A run is running while one of its goroutines may go on, and waiting while all
// of them are parked. What the row says of that follows with the next write; it
// is written by itself only when there is no other one.

// A parking is one goroutine of a run that waits.
type parking struct {
	until store.Time // when it wakes by itself; 0: only by something that happens
	least time.Time  // the same, by the clock of this process, not before; zero: no matter
	open  bool       // it waits for a message: nobody knows how long
	code  string     // CodeApproval when a person is asked
	text  string     // the prompt
	own   bool       // the goroutine is one that the engine began
	// unsaid: the event by which it waits is not on its way to the store yet (see
	// write.parks). Until then the run is busy: a row that says it waits would
	// leave the wait out, which nobody would then come to record after a crash,
	// or once the run is unloaded.
	unsaid bool
	since  time.Time
}

// park says that the calling goroutine is about to wait. It must be followed by
// unpark. Events about the wait are written between the two, or syncRow is
// called, so that the row can follow.
func (r *run) park(p *parking) {
	c := r.eng.committer
	c.mu.Lock()
	defer c.mu.Unlock()
	p.since = time.Now()
	r.parked[p] = struct{}{}
}

// othersGoOn reports whether a goroutine of the run is not parked. Who has just
// parked itself says so with its wait: without it, a row that says running over
// a pending wait could not be told from one that was torn from its events.
func (r *run) othersGoOn() bool {
	c := r.eng.committer
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.parkedOnRecord()+1 < r.branches
}

// parkedOnRecord returns how many goroutines of the run are parked by what is on record,
// or about to be. The committer's mutex is held.
func (r *run) parkedOnRecord() int {
	n := 0
	for p := range r.parked {
		if !p.unsaid {
			n++
		}
	}
	return n
}

func (r *run) unpark(p *parking) {
	c := r.eng.committer
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(r.parked, p)
}

// rowState is what the cache says of a run's activity.
type rowState struct {
	status store.Status
	wake   store.Time
	code   string
	text   string
	// seen is the number of the last message that none of the waits wants:
	// what comes later makes the run due.
	seen int64
}

// wanted returns what the row should say now. The committer's mutex is held.
func (r *run) wanted() rowState {
	seen, handed := r.inbox.noticed()
	if r.parkedOnRecord() < r.branches || handed > 0 {
		// Somebody may go on, or is about to: a message was handed to its wait.
		return rowState{status: store.Running, seen: r.rowSays.seen}
	}
	// Its deadline wakes it too: whoever claims it then carries that out.
	s := rowState{status: store.Waiting, seen: seen, wake: r.deadline}
	for p := range r.parked {
		if p.until != 0 && (s.wake == 0 || p.until < s.wake) {
			s.wake = p.until
		}
		if p.code != "" && (s.code == "" || p.text < s.text) {
			s.code, s.text = p.code, p.text
		}
	}
	return s
}

// follow returns the patch that brings the row up to date, nil if it is. The
// committer's mutex is held, and the patch is committed with what comes next.
func (r *run) follow() *store.RowPatch {
	if r.rowSays.status == store.Running && len(r.parked) < r.branches {
		return nil // the usual case, at no cost
	}
	w := r.wanted()
	if w == r.rowSays {
		return nil
	}
	r.rowSays = w
	return &store.RowPatch{Status: &w.status, WakeAt: &w.wake, Code: &w.code, Reason: &w.text, Seen: &w.seen}
}

// syncRow writes the row if it is not up to date and nothing else is about to be
// written.
func (r *run) syncRow() error {
	if !r.rowStale() {
		return nil
	}
	return r.write(&write{})
}

func (r *run) rowStale() bool {
	if r.rehearsal != nil {
		return false
	}
	c := r.eng.committer
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.wanted() != r.rowSays
}

// confess writes that r is running again, if it was claimed while it waited or
// was interrupted and has written nothing since. It comes before a body, which
// may kill the process: the next claim of a run that waited must count the
// strike. And it comes where the replay of a resumed run is over and something
// long may begin, the pause before an attempt or a body: until its end the row
// would say that the run is resuming. An ordinary wake-up costs no such write, a
// resume at most one, and a replay with nothing new behind it none.
func (r *run) confess() error {
	if !r.silent.Load() || !r.silent.CompareAndSwap(true, false) || !r.rowStale() {
		return nil
	}
	// Not by write: nothing is recorded by it, which would end the trial of a
	// suspect before the body that is suspected.
	return r.eng.committer.commit(context.Background(), r, &write{})
}

// waitFor waits until ready is closed, the time of p has come, or no further
// call may be made; late reports which of the first two it was. If p is parked
// the run may be unloaded meanwhile.
func (s *scope) waitFor(p *parking, ready <-chan struct{}) (late bool, err error) {
	r := s.run
	s.settle()
	var timer, asked = (<-chan time.Time)(nil), (<-chan struct{})(nil)
	var t *time.Timer
	if p.until != 0 {
		d := r.eng.left(p)
		if d <= 0 {
			select {
			case <-ready:
				return false, s.stopped()
			default:
				return true, s.stopped()
			}
		}
		t = time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	stopped := r.stop.done
	if s.undo {
		stopped = nil
	}
	var long <-chan time.Time
	if p.own {
		r.unload()
		if after := r.eng.options.UnloadAfter; p.open && after > 0 {
			t := time.NewTimer(after)
			defer t.Stop()
			long = t.C
		}
	}
	for {
		select {
		case <-ready:
			return false, s.stopped()
		case <-timer:
			// By the store's own clock, and not by what we take it to be.
			d := r.eng.left(p)
			switch {
			case d <= 0:
				return true, s.stopped()
			case r.eng.heart.clock.doubtful(time.Now()):
				asked = r.eng.heart.clock.next()
				nudge(r.eng.heart.now)
			default:
				t.Reset(d)
			}
		case <-asked:
			asked = nil
			t.Reset(max(r.eng.left(p), 0))
		case <-r.gone:
			return false, r.deathOf()
		case <-stopped:
			return false, s.stopped()
		case <-long:
			r.unload()
			long = nil // what keeps the run loaded looks again when it parks itself
		}
	}
}

// left returns how long p must wait for its time at least.
func (e *Engine) left(p *parking) time.Duration {
	now := time.Now()
	d := p.until.Sub(e.heart.clock.surely(now))
	if !p.least.IsZero() {
		d = max(d, p.least.Sub(now))
	}
	return d
}

// stopped returns why a call must not go on although nothing of its own has
// come: the run is dead here or, unless it is being undone, was stopped.
func (s *scope) stopped() error {
	if err := s.run.deathOf(); err != nil {
		return err
	}
	if s.undo {
		return nil
	}
	if cause := s.run.stopCause(); cause != nil {
		return cause
	}
	if r := s.run; s.path != "" && r.past != nil && len(r.past.Scopes[history.UndoScope]) > 0 {
		return &undoingError{r.id} // which the function is about to find
	}
	return nil
}
