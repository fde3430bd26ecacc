package durable

import (
	"runtime"
	"sync/atomic"
)

// goroutineID returns the number by which the runtime names the calling
// goroutine in stack traces; there is no other way to ask. It takes about half a
// microsecond, so it is asked for where a call waits and where a run has
// branches, never in a plain step.
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

// A strand is a goroutine that the engine has begun for a run, and the scope
// whose function it runs at the moment: the workflow function's, a branch's, or
// an item's of a Map.
type strand struct {
	id    uint64
	scope atomic.Pointer[scope]
}

// newStrand makes the calling goroutine known as one of the run's own.
func (r *run) newStrand(s *scope) *strand {
	st := &strand{id: goroutineID()}
	st.run(s)
	r.strands.Store(st.id, st)
	return st
}

// run says which scope's function the strand runs now; nil: none.
func (st *strand) run(s *scope) {
	if s != nil {
		s.strand = st
	}
	st.scope.Store(s)
}

// endStrand forgets a strand whose goroutine is about to end.
func (r *run) endStrand(st *strand) { r.strands.Delete(st.id) }

// onOwnStrand reports whether the caller is on the goroutine that the engine has
// begun for s, and not on one of the user's.
func (s *scope) onOwnStrand() bool { return s.strand != nil && s.strand.id == goroutineID() }

// outer returns the scope whose function the calling goroutine runs, if that is
// another one than s: then the context of s has found its way into a branch or
// an item. Goroutines of the user's belong to no scope. As long as a run has no
// branch there is nothing to ask.
func (s *scope) outer() *scope {
	if !s.run.branched.Load() {
		return nil
	}
	id := goroutineID()
	if s.strand != nil && s.strand.id == id {
		if at := s.strand.scope.Load(); at == s {
			return nil
		}
	}
	if st, ok := s.run.strands.Load(id); ok {
		if at := st.(*strand).scope.Load(); at != s {
			return at
		}
	}
	return nil
}
