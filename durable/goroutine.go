package durable

import (
	"runtime"
	"strings"
	"sync/atomic"
)

// A run's code may stand on three kinds of goroutine: the one of the workflow
// function, those of branches and items, and those that the user has begun. Which
// one a call is made on decides whether its run may be unloaded while it waits,
// and whether it uses the context of a scope around it.

// goroutineKind is what a goroutine was begun for.
type goroutineKind int

const (
	ofUser   goroutineKind = iota
	ofRun                  // the workflow function, and compensations
	ofBranch               // a branch, or items of a Map
)

// callingGoroutine says what the calling goroutine was begun for, by the function
// at the bottom of its stack. It takes less than a microsecond.
func callingGoroutine() goroutineKind {
	var pcs [64]uintptr
	skip, n := 2, 0
	for {
		n = runtime.Callers(skip, pcs[:])
		if n < len(pcs) {
			break
		}
		skip += n - 2 // the last ones are looked at again: the bottom may be just behind
	}
	if n < 2 {
		return ofUser
	}
	f := runtime.FuncForPC(pcs[n-2]) // below it is runtime.goexit
	if f == nil {
		return ofUser
	}
	switch name, ours := strings.CutPrefix(f.Name(), packagePath+"."); {
	case !ours:
		return ofUser
	case strings.HasPrefix(name, "(*run)."):
		return ofRun
	}
	return ofBranch
}

// onGoroutineOfOurs reports whether the caller is on a goroutine that the engine
// has begun, and can end.
func onGoroutineOfOurs() bool { return callingGoroutine() != ofUser }

// goroutineID returns the number by which the runtime names the calling
// goroutine in stack traces; there is no other way to ask. It takes some
// microseconds, more with every frame on the stack.
func goroutineID() uint64 {
	var buf [40]byte
	var id uint64
	for _, c := range buf[len("goroutine "):runtime.Stack(buf[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}

// A strand is a goroutine of a branch or of items of a Map, and the scope whose
// function it runs at the moment.
type strand struct {
	id    uint64
	scope atomic.Pointer[scope]
}

// newStrand makes the calling goroutine known as one of the run's branches.
func (r *run) newStrand(s *scope) *strand {
	st := &strand{id: goroutineID()}
	st.scope.Store(s)
	r.strands.Store(st.id, st)
	return st
}

// endStrand forgets a strand whose goroutine is about to end.
func (r *run) endStrand(st *strand) { r.strands.Delete(st.id) }

// misused returns the scope whose function the calling goroutine runs, if that
// is another one than s: then the context of s has found its way into a branch
// of it. As long as s has no branch under way there is nothing to ask.
func (s *scope) misused() *scope {
	if s.forked.Load() == 0 || callingGoroutine() != ofBranch {
		return nil
	}
	st, ok := s.run.strands.Load(goroutineID())
	if !ok {
		return nil
	}
	if at := st.(*strand).scope.Load(); at != s {
		return at
	}
	return nil
}
