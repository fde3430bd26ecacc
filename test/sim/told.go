package sim

import (
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// told is what the world was told of a run.
type told struct {
	started     bool
	cancelTried bool
	cancelledAt store.Time // when that was acknowledged; 0: it was not
	lineage     int        // odd while an operator changes its history
	meddling    int        // operators who do that
	paused      bool       // an operator has tried to pause it
	stopped     bool       // that was acknowledged, and nobody has tried to let it go on
	released    bool       // an operator has tried to let it go on
	meddled     bool       // an operator has tried to change its history
	gen         int        // by the events
	ways        int        // that it has gone at a Change: 1 the old one, 2 the new one
	version     string     // that has executed it, and in which generation
	versionGen  int
	mustUndo    []string // what the function had registered when it last failed
	firm        []string // what was registered before a call that is recorded
	undone      map[string]bool
	outs        []string       // what its function returned, in the last passes
	stepFailed  bool           // the error that it returned was that of a step
	poison      map[string]int // signals of a wrong type that were sent, by name
	mailed      bool           // it has taken the signal that came with its start
	silent      bool           // who waited for what it publishes was told that it has published nothing
	told        bool           // who waited for it was told how it ended:
	out         string
	err         error
}

func (l *ledger) run(id string) *told {
	t := l.runs[id]
	if t == nil {
		t = &told{}
		l.runs[id] = t
	}
	return t
}

// poisons notes that a signal of a wrong type is sent.
func (l *ledger) poisons(id, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(id)
	if t.poison == nil {
		t.poison = map[string]int{}
	}
	t.poison[name]++
}

// refused checks how many signals of a wrong type one wait has refused; a copied history
// may have those of another run.
func (l *ledger) refused(x *pass, name string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent := l.run(x.run).poison[name]; n > sent && !strings.HasPrefix(x.run, "f-") {
		l.sim.fail("%s: the wait for %s refused %d signals, and %d of a wrong type were sent", x.run, name, n, sent)
	}
}

// wasMeddled reports whether an operator has tried to change the history of a run, or has paused
// it: in line it then stood aside.
func (l *ledger) wasMeddled(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run(id).meddled || l.run(id).paused
}

// pauses notes that somebody pauses a run, and whether it was acknowledged.
func (l *ledger) pauses(id string, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(id)
	t.paused = true
	t.stopped = t.stopped || acknowledged && !t.released
}

// releases notes that somebody lets a run go on.
func (l *ledger) releases(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(id)
	t.stopped, t.released = false, true
}

// waited notes what somebody was told who waited for a run.
func (l *ledger) waited(id, out string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(id)
	t.told, t.out, t.err = true, out, err
}

func (l *ledger) started(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run(id).started = true
}

// meddles brackets an act that may change the history of a run.
func (l *ledger) meddles(id string) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(id)
	if t.meddling++; t.meddling == 1 {
		t.lineage++
	}
	t.meddled = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.meddling--; t.meddling == 0 {
			t.lineage++
		}
	}
}

// cancels notes that somebody cancels a run, and whether it was acknowledged.
func (l *ledger) cancels(id string, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(id)
	t.cancelTried = true
	if acknowledged && t.cancelledAt == 0 {
		t.cancelledAt = l.sim.now()
	}
}
