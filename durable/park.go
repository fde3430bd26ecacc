package durable

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/mail"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// A run is running while one of its goroutines may go on, and waiting while all
// of them are parked. The row follows with the next write that has an event. A run that
// waits has a write of its own for the row if there is no other one.

// A parking is one waiting goroutine of a run.
type parking struct {
	until store.Time // when it wakes by itself; 0: only by something that happens
	least time.Time  // it does not wake before this, by the clock of this process; zero: no limit
	open  bool       // it waits for a message, for as long as that takes
	code  string     // CodeApproval when a person is asked
	text  string     // the prompt
	own   bool       // the goroutine is one that the engine began
	// unsaid: the event that records the wait is not on its way to the store yet (see
	// said). Until then the run is busy: a row that says it waits would leave this wait
	// out, and no executor would come to record it after a crash, or once the run is
	// unloaded.
	unsaid bool
	since  time.Time
	leapt  bool // the store's clock went on while that of this process did not
}

// said returns a write for the event that records the wait of p: once the event has its
// place in the log, the wait is on its way to the store.
func (p *parking) said() *commit.Write {
	return &commit.Write{Compose: func(*commit.Write) { p.unsaid = false }}
}

// runWaits knows which of a run's goroutines wait, and what the row says of it.
type runWaits struct {
	run *run

	mu       sync.Locker           // the log's: a row follows in the order of the log
	parked   map[*parking]struct{} // those of its goroutines that wait
	branches int                   // goroutines of durable code: 1 and the open branches
	passes   int                   // functions of branches that have ended and are replayed
	rowSays  rowState              // what the row says, including what is on its way

	unloadSeen int64 // the last message that the waits have looked at; read once the run is unloaded
}

// open returns how many branches are open, and how many functions of branches that
// have ended are being replayed.
func (wt *runWaits) open() (branches, passes int) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return wt.branches - 1, wt.passes
}

// allParked reports whether everything in the run waits.
func (wt *runWaits) allParked() bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return len(wt.parked) >= wt.branches && wt.passes == 0
}

// begin adds a branch to the count.
func (wt *runWaits) begin() {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	wt.branches++
}

// beginPass adds the function of a branch that has ended and is replayed to the count.
func (wt *runWaits) beginPass() {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	wt.passes++
}

// park notes that the calling goroutine is about to wait. It must be followed by unpark.
// Events about the wait are written between the two, or sync is called, so that the row
// can follow.
func (wt *runWaits) park(p *parking) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	p.since = time.Now()
	wt.parked[p] = struct{}{}
}

// othersGoOn reports whether a goroutine of the run is not parked. A goroutine that has
// just parked records this with its wait: without it, a row that says running despite a
// pending wait could not be told from one that was torn from its events.
func (wt *runWaits) othersGoOn() bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return wt.parkedOnRecord()+1 < wt.branches
}

// parkedOnRecord returns how many goroutines of the run are parked with a wait that is
// on record, or about to be. The mutex is held.
func (wt *runWaits) parkedOnRecord() int {
	n := 0
	for p := range wt.parked {
		if !p.unsaid {
			n++
		}
	}
	return n
}

func (wt *runWaits) unpark(p *parking) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	delete(wt.parked, p)
}

// rowState is what the row, which is a cache, says of a run's activity.
type rowState struct {
	status store.Status
	wake   store.Time
	code   string
	text   string
	// seen is the number of the last message that none of the waits wants: a later one
	// makes the run due.
	seen int64
}

// wanted returns what the row should say now. The mutex is held.
func (wt *runWaits) wanted() rowState {
	seen, handed := wt.run.inbox.Noticed()
	if wt.parkedOnRecord() < wt.branches || handed > 0 {
		// A goroutine goes on, or is about to: a message was handed to its wait.
		return rowState{status: store.Running, seen: wt.rowSays.seen}
	}
	// Its deadline wakes it too: the executor that claims it then carries that out.
	s := rowState{status: store.Waiting, seen: seen, wake: wt.run.origin.deadline}
	for p := range wt.parked {
		if p.until != 0 && (s.wake == 0 || p.until < s.wake) {
			s.wake = p.until
		}
		if p.code != "" && (s.code == "" || p.text < s.text) {
			s.code, s.text = p.code, p.text
		}
	}
	return s
}

// stale reports whether a change, with events or without, brings the row up to date. That the run goes on is
// said with events only: if the process dies before the next one, the row says what they say. The mutex is held.
func (wt *runWaits) stale(w rowState, events bool) bool {
	return w != wt.rowSays && (events || w.status == store.Waiting)
}

// follow returns the patch with which a change, with events or without, brings the row up to date, nil if
// there is none. The mutex is held, and the patch is committed with the next change.
func (wt *runWaits) follow(events bool) *store.RowPatch {
	if wt.rowSays.status == store.Running && len(wt.parked) < wt.branches {
		return nil // the usual case, at no cost
	}
	w := wt.wanted()
	if !wt.stale(w, events) {
		return nil
	}
	wt.rowSays = w
	return &store.RowPatch{Status: &w.status, WakeAt: &w.wake, Code: &w.code, Reason: &w.text, Seen: &w.seen}
}

// sync writes the row of a run that waits, unless it is up to date or what is on its way to the store
// makes it so.
func (wt *runWaits) sync() error {
	if !wt.rowStale(false) {
		return nil
	}
	return kept(wt.run, "a wait", wt.run.write(&commit.Write{}))
}

// kept returns err, the answer to a write of what belongs to no call. If the store refuses that
// write, the run is parked: the refusal must be taken neither for the outcome of what the workflow
// function waits for, which a replay would not see, nor for the failure of a run whose function was
// not called.
func kept(r *run, what string, err error) error {
	if definite(err) {
		return r.unrecorded(what, err)
	}
	return err
}

func (wt *runWaits) rowStale(events bool) bool {
	if wt.run.rehearsal != nil {
		return false
	}
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return wt.stale(wt.wanted(), events)
}

// recordRunning writes that the run is running again, if it was claimed while it waited or
// was interrupted and has written nothing since. It is called before a body, which may
// kill the process: the next claim of a run that waited must count the strike. And it is
// called where the replay of a resumed run is over and something long may begin, the
// pause before an attempt or a body: otherwise the row would say until the end of that
// that the run is resuming. An ordinary wake-up costs no such write, a resume at most
// one, and a replay that records nothing new none.
func (cd *claimedAs) recordRunning() error {
	r := cd.run
	if !cd.silent.Load() || !cd.silent.CompareAndSwap(true, false) || !r.waits.rowStale(true) {
		return nil
	}
	// The claim has recorded an event. Not by run.write, which ends the trial of a suspect, whose body is to come.
	return kept(r, "a wait", r.eng.committer.Commit(context.Background(), &r.log, &commit.Write{Compose: func(w *commit.Write) { w.Row = r.waits.follow(true) }}))
}

// waitFor waits until ready is closed, the time of p has come, or no further
// call may be made; late reports which of the first two it was. If p is parked
// the run may be unloaded meanwhile.
func (s *scope) waitFor(p *parking, ready <-chan struct{}) (late bool, err error) {
	r := s.run
	s.trace.Settle()
	var timer <-chan time.Time
	var asked, leapt <-chan struct{}
	var t *time.Timer
	if p.until != 0 {
		leapt = r.eng.heart.Clock.Leap().Done()
		d := p.left(&r.eng.heart.Clock)
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
		r.waits.unload()
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
			// By the store's own clock, and not by our estimate of it.
			d := p.left(&r.eng.heart.Clock)
			switch {
			case d <= 0:
				return true, s.stopped()
			case r.eng.heart.Clock.Doubtful(time.Now()):
				asked = r.eng.heart.Clock.Next()
				r.eng.heart.BeatSoon()
			default:
				t.Reset(d)
			}
		case <-asked:
			asked = nil
			t.Reset(max(p.left(&r.eng.heart.Clock), 0))
		case <-leapt:
			leapt, p.leapt = r.eng.heart.Clock.Leap().Done(), true
			t.Reset(max(p.left(&r.eng.heart.Clock), 0))
		case <-r.gone:
			return false, r.deathOf()
		case <-stopped:
			return false, s.stopped()
		case <-long:
			r.waits.unload()
			long = nil // the goroutine that keeps the run loaded calls unload when it parks
		}
	}
}

// waitForMail parks the calling goroutine until wait has its message; late
// reports that the time of p has come first.
func (s *scope) waitForMail(p *parking, wait *mail.Wait) (late bool, err error) {
	select {
	case <-wait.Ready():
		return false, nil
	default:
	}
	r := s.run
	r.waits.park(p)
	defer r.waits.unpark(p)
	if err := r.waits.sync(); err != nil {
		return false, err
	}
	return s.waitFor(p, wait.Ready())
}

// left returns how long p must still wait at least.
func (p *parking) left(clock *storeclock.Clock) time.Duration {
	now := time.Now()
	d := p.until.Sub(clock.Surely(now))
	if !p.least.IsZero() {
		least := p.least.Sub(now)
		if p.leapt { // the machine was suspended if its wall clock says so, too: the monotonic one stands still then
			least = min(least, time.Duration(p.least.UnixNano()-clock.Skew.Wall(now)))
		}
		d = max(d, least)
	}
	return d
}
