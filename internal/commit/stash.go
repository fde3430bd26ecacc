package commit

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// What a run holds back is bounded, so that it fits into one change together with
// the write that carries it, and so that a crash loses little.
const (
	maxStashed     = 1000
	maxStashedSize = 1 << 20
)

// Stash keeps an event to be committed before the next write. full says that it is
// time for a write.
func (lg *Log) Stash(ev store.Event) (at store.Time, full bool) {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	lg.stashed = append(lg.stashed, ev)
	lg.stashedSize += len(ev.Payload) + len(ev.Data)
	lg.stamp(lg.stashed[len(lg.stashed)-1:], time.Time{})
	return lg.stashed[len(lg.stashed)-1].At, len(lg.stashed) >= maxStashed || lg.stashedSize >= maxStashedSize
}

// Stashes reports whether something waits for the next write.
func (lg *Log) Stashes() bool {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return lg.StashesLocked()
}

// StashesLocked is Stashes with the mutex held.
func (lg *Log) StashesLocked() bool { return len(lg.stashed) > 0 }

// unstash puts the stashed events before the write that is about to become pending. If that is a change of
// its own, they bring the row along: it comes later, or not at all if the process dies. joined reports
// whether they are in its change. The mutex is held.
func (lg *Log) unstash(alone bool) (joined bool) {
	if len(lg.stashed) > 0 {
		if lg.torn == nil {
			joined = !alone
			w := &Write{Events: lg.stashed, stashed: true}
			if alone {
				w.Row = lg.owner.Row(true)
			}
			w.bytes = w.size()
			lg.pending = append(lg.pending, w)
		}
		lg.stashed, lg.stashedSize = nil, 0
	}
	return joined
}

// tear is called when the store has refused stashed events for good. Nobody waits for them: the
// calls that they record have returned, and what follows them would leave a gap. So what follows
// is refused too, except for the interruption of the run, which a replay then finds where the log
// ends. The mutex is held.
func (lg *Log) tear(first *store.Event, err error) {
	lg.torn = err
	lg.owner.Tear(first, err)
	lg.pending = slices.DeleteFunc(lg.pending, func(w *Write) bool {
		if !w.interrupts() {
			w.settle(err)
		}
		return w.settled
	})
}

// admits returns why w must not be recorded any more, nil if it may. The mutex is held.
func (lg *Log) admits(w *Write) error {
	if lg.torn != nil && !w.interrupts() {
		return lg.torn
	}
	return lg.owner.Admit(w)
}

// An Early is an action that must be done, once, before something stashed later is
// durable: a span is exported, so that a process that finds the recorded event can
// attach child spans to it.
type Early struct {
	once sync.Once
	do   func()
}

// NewEarly returns an Early that calls do.
func NewEarly(do func()) *Early { return &Early{do: do} }

// Do performs the action unless that has been done. If another goroutine is
// performing it, Do waits.
func (e *Early) Do() { e.once.Do(e.do) }

// Before says that e must be done before anything stashed from now on is durable.
func (lg *Log) Before(e *Early) {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	lg.early = append(lg.early, e)
}

// doEarly does what must precede the stashed events, and reports whether there was
// anything. It releases the mutex meanwhile, which is held on entry and on return.
func (lg *Log) doEarly() (did bool) {
	for len(lg.early) > 0 {
		did = true
		list := slices.Clone(lg.early)
		lg.mu.Unlock()
		for _, e := range list {
			e.Do() // waits if another writer is doing it
		}
		lg.mu.Lock()
		lg.early = slices.DeleteFunc(lg.early, func(e *Early) bool { return slices.Contains(list, e) })
	}
	return did
}
