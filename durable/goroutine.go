package durable

import (
	"log/slog"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
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

// What a goroutine was begun for is told by the function that it was begun with:
// goRun and goBranch begin one that stands on runBottom and branchBottom.

//go:noinline
func runBottom(fn func()) { fn() }

//go:noinline
func branchBottom(fn func()) { fn() }

// goRun begins a goroutine for the workflow function of a run.
func goRun(fn func()) { go runBottom(fn) }

// goBranch begins a goroutine for a branch or for items of a Map. What guard.Call
// begins for code of the user's counts as one of a branch.
func goBranch(fn func()) { go branchBottom(fn) }

var (
	ofRunBottom    = reflect.ValueOf(runBottom).Pointer()
	ofBranchBottom = reflect.ValueOf(branchBottom).Pointer()
)

// callingGoroutine says what the calling goroutine was begun for, by the functions
// at the bottom of its stack. It takes less than a microsecond.
func callingGoroutine() goroutineKind {
	var pcs [64]uintptr
	skip, n := 2, 0
	for {
		n = runtime.Callers(skip, pcs[:])
		if n < len(pcs) {
			break
		}
		skip += n - 3 // the last ones are looked at again: the bottom may be just below
	}
	// Below the function that the goroutine was begun with is runtime.goexit, and
	// between them may be what the compiler puts around the call of a go statement.
	for _, pc := range pcs[max(n-3, 0):n] {
		f := runtime.FuncForPC(pc)
		if f == nil {
			continue
		}
		switch f.Entry() {
		case ofRunBottom:
			return ofRun
		case ofBranchBottom, guard.Bottom:
			return ofBranch
		}
	}
	return ofUser
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

// runGoroutines are those of a run's branches.
type runGoroutines struct {
	run        *run
	all        sync.WaitGroup
	ofBranches sync.Map      // id to *branchGoroutine
	replaying  atomic.Int32  // branches and items that have not left their history
	branchOver chan struct{} // gets a value when a branch is over
}

// A branchGoroutine is the goroutine of a branch or of items of a Map, and the scope
// whose function it runs at the moment.
type branchGoroutine struct {
	id    uint64
	scope atomic.Pointer[scope]
}

// begin makes the calling goroutine known as one of the run's branches.
func (gs *runGoroutines) begin(s *scope) *branchGoroutine {
	st := &branchGoroutine{id: goroutineID()}
	st.scope.Store(s)
	gs.ofBranches.Store(st.id, st)
	return st
}

// end forgets a goroutine that is about to end.
func (gs *runGoroutines) end(st *branchGoroutine) { gs.ofBranches.Delete(st.id) }

// runsOther returns the scope whose function the calling goroutine runs, if that
// is another one than s: then the context of s has found its way into a branch
// of it. As long as s has no branch under way there is nothing to ask.
func (gs *runGoroutines) runsOther(s *scope) *scope {
	if s.forked.Load() == 0 || callingGoroutine() != ofBranch {
		return nil
	}
	st, ok := gs.ofBranches.Load(goroutineID())
	if !ok {
		return nil
	}
	if at := st.(*branchGoroutine).scope.Load(); at != s {
		return at
	}
	return nil
}

// await waits until the goroutines of the run's branches have ended, whose
// deferred calls are the user's.
func (gs *runGoroutines) await() {
	r := gs.run
	t := time.AfterFunc(stuckUnload, func() {
		r.logLine(slog.LevelWarn, "durable: a waiting run does not unload: a deferred call of its code does not return; see KeepLoaded")
	})
	defer t.Stop()
	gs.all.Wait()
}

// stuckUnload is how long an unloading may take before it is worth a warning.
const stuckUnload = 10 * time.Second
