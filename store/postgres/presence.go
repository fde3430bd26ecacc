package postgres

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// lockClass is the first half of the key of every presence lock.
const lockClass = 1146440258

// silence is how long an executor must have been quiet, and how far apart two
// observations of its free lock must be, before another machine believes that it is
// gone. One observation proves nothing: an executor that lost the connection holding
// the lock is about to reconnect, and records within that time that it has no lock.
const silence = 2 * time.Second

// presence is what an executor writes into its record, so that others can tell
// that it is gone before its lease has expired.
type presence struct {
	lock int64      // second half of the key of its session lock; 0: no lock
	up   store.Time // start time of the server on which the lock was taken
	process
}

// process identifies a process among all that ever ran on a machine.
type process struct {
	boot  string // of the machine; empty: not known, and nothing is concluded
	space string // of process ids: a container has its own
	pid   int
	start string // when it started, because the id alone may be reused
}

func (p presence) String() string {
	if p.lock == 0 {
		return ""
	}
	return fmt.Sprintf("lock=%d up=%d boot=%s space=%s pid=%d start=%s", p.lock, p.up, p.boot, p.space, p.pid, p.start)
}

func parsePresence(text string) (p presence) {
	for f := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(f, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "lock":
			p.lock = n
		case "up":
			p.up = store.Time(n)
		case "boot":
			p.boot = value
		case "space":
			p.space = value
		case "pid":
			p.pid = int(n)
		case "start":
			p.start = value
		}
	}
	return p
}

// suspicions holds the executors whose lock this handle has seen free.
type suspicions struct {
	// free are the owners whose runs might be claimed at the last beat; nil: there was none.
	free atomic.Pointer[driverValue]
	mu   sync.Mutex
	list map[string]suspicion // by executor
}

type suspicion struct {
	presence string // what its record said, and
	beatAt   int64  // the time of its last beat: a change of either proves that it is alive
	since    time.Time
}

// look is one observation of the server's locks.
type look struct {
	held           map[int64]bool
	up             store.Time // start of the server
	began, answers time.Time  // of the look, by this process's clock
}

// gone reports whether the executor of r is certainly gone. If that is not
// decided yet, wait is the time until another observation decides it; 0: there
// is no suspicion.
//
// A free lock proves something only within the server lifetime in which it was
// taken: after a restart all locks are free until their owners have reconnected.
// A process that does not exist is proof on its own.
func (s *suspicions) gone(r *sqlstore.ExecutorRow, l look, now store.Time) (gone bool, wait time.Duration) {
	p := parsePresence(r.Presence)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.lock == 0 || l.held[p.lock] || p.up != l.up {
		delete(s.list, r.ID)
		return p.lock != 0 && !l.held[p.lock] && dead(p.process, thisProcess()), 0
	}
	if dead(p.process, thisProcess()) {
		return true, 0
	}
	first, ok := s.list[r.ID]
	if !ok || first.presence != r.Presence || first.beatAt != r.BeatAt {
		if s.list == nil {
			s.list = map[string]suspicion{}
		}
		first = suspicion{presence: r.Presence, beatAt: r.BeatAt, since: l.answers}
		s.list[r.ID] = first
	}
	wait = max(silence-l.began.Sub(first.since), silence-now.Sub(store.Time(r.BeatAt)))
	return wait <= 0, max(wait, 0)
}

// keep forgets all executors except these, which are registered.
func (s *suspicions) keep(rows []sqlstore.ExecutorRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.list {
		if !slices.ContainsFunc(rows, func(r sqlstore.ExecutorRow) bool { return r.ID == id }) {
			delete(s.list, id)
		}
	}
}

// dead reports whether p no longer exists, as seen from the process here. That can
// only be checked for a process of the same boot and the same process id namespace.
func dead(p, here process) bool {
	if p.boot == "" || p.boot != here.boot || p.space != here.space || p.pid <= 0 || p.start == "" {
		return false
	}
	start, exists := startOf(p.pid)
	return !exists || (start != "" && start != p.start)
}

var thisProcess = sync.OnceValue(func() process {
	p := process{boot: bootID(), space: pidSpace(), pid: os.Getpid()}
	p.start, _ = startOf(p.pid)
	return p
})
