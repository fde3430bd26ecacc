package postgres

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// lockClass is the first half of the key of every presence lock.
const lockClass = 1146440258

// silence is how long an executor whose lock is free must have been quiet
// before that is believed on another machine.
const silence = 2 * time.Second

// presence is what an executor leaves in its record, so that others can tell
// that it is gone before its lease has run out.
type presence struct {
	lock int64      // second half of the key of its session lock; 0: has none
	up   store.Time // start of the server on which the lock was taken
	process
}

// process identifies a process among all there ever were on a machine.
type process struct {
	boot  string // of the machine; empty: not known, and nothing is concluded
	space string // of process ids: a container has its own
	pid   int
	start string // when it started; the id alone may be used again
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

// gone reports whether the executor of r is gone for certain.
//
// A free lock tells only about the life of the server it was taken in: after a
// restart all locks are free until their owners have connected again. A process
// that does not exist tells by itself.
func gone(r *sqlstore.ExecutorRow, held map[int64]bool, up, now store.Time) bool {
	p := parsePresence(r.Presence)
	if p.lock == 0 || held[p.lock] {
		return false
	}
	if dead(p.process, thisProcess()) {
		return true
	}
	return p.up == up && now.Sub(store.Time(r.BeatAt)) >= silence
}

// dead reports whether p, looked at from the process here, does not exist any
// more. Only a process of this boot and this space of ids can be looked for.
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
