// Package goroutine distinguishes the goroutines that the engine begins from those of the user.
//
// A run's code may run on three kinds of goroutines: that of the workflow function, those of
// branches and items, and those that the user has begun. The kind on which a call is made
// decides whether the run may be unloaded while the call waits, and whether the call uses the
// context of a scope around it.
package goroutine

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Kind is what a goroutine was begun for.
type Kind int

const (
	OfUser   Kind = iota
	OfRun         // the workflow function, and compensations
	OfBranch      // a branch, or items of a Map
)

// The function at the bottom of a goroutine's stack shows its kind: ForRun and ForBranch
// begin goroutines with runBottom and branchBottom.

//go:noinline
func runBottom(fn func()) { fn() }

//go:noinline
func branchBottom(fn func()) { fn() }

// ForRun begins a goroutine for the workflow function of a run.
func ForRun(fn func()) { go runBottom(fn) }

// ForBranch begins a goroutine for a branch or for items of a Map. The goroutines on which
// guard.Call calls code of the user's count as those of branches.
func ForBranch(fn func()) { go branchBottom(fn) }

var (
	ofRunBottom    = reflect.ValueOf(runBottom).Pointer()
	ofBranchBottom = reflect.ValueOf(branchBottom).Pointer()
)

// Calling returns the kind of the calling goroutine. It takes less than a microsecond.
func Calling() Kind {
	var pcs [64]uintptr
	skip, n := 2, 0
	for {
		n = runtime.Callers(skip, pcs[:])
		if n < len(pcs) {
			break
		}
		skip += n - 3 // the last ones are read again: the bottom may be just below
	}
	// Below the function with which the goroutine was begun is runtime.goexit; between
	// them may be what the compiler puts around the call of a go statement.
	for _, pc := range pcs[max(n-3, 0):n] {
		f := runtime.FuncForPC(pc)
		if f == nil {
			continue
		}
		switch f.Entry() {
		case ofRunBottom:
			return OfRun
		case ofBranchBottom, guard.Bottom:
			return OfBranch
		}
	}
	return OfUser
}

// Ours reports whether the engine has begun the calling goroutine, and so can end it.
func Ours() bool { return Calling() != OfUser }

// ID returns the number by which the runtime names the calling goroutine in stack traces,
// which is the only way to learn it. It takes some microseconds, more with every frame on
// the stack.
func ID() uint64 {
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

// CallerOutside returns file:line of the nearest caller on the calling goroutine that is
// not in the package with this path; empty: the goroutine is one of the engine's, and has
// no such caller.
func CallerOutside(pkg string) string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "runtime.") {
			return ""
		}
		if f.Function != "" && !strings.HasPrefix(f.Function, pkg+".") && !strings.HasPrefix(f.Function, here) {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// here is the path of this package, whose functions are at the bottom of stacks.
var here = reflect.TypeFor[Kind]().PkgPath() + "."
