// Package matching decides whether the code of a workflow makes the calls that its history
// has, and says where the two differ. It looks at recorded calls and at the names of the
// calls being made; it parks no run and writes nothing.
//
// A call is matched with the history of its scope by order and name: the n-th
// call must be the n-th that was recorded. With Run.ByName it is matched by name alone:
//
//	recorded          code now          by order          by name
//	a b c             a x b c           stops at x        a, b, c as recorded; x runs
//	a b c             b a c             stops at b        all as recorded
//	a b c             a c               stops at c        a, c as recorded; b is reported
//
// Calls that run for the first time are recorded after everything else of their scope, so
// that the places in the history have no gap.
//
//   - matching.go: what the scopes of a run have in common
//   - match.go: compares each call with the one that the history of its scope has
//   - patch.go: markers of changes that the code asks about
//   - change.go: what was done to the code
//   - difference.go: where code and history differ, in words
package matching

import (
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// A Run is what the scopes of a run have in common when their calls are matched. The
// fields that are not beneath the mutex are set before the first scope begins.
type Run struct {
	Past    *history.Past // nil: the run has just been created
	ByName  bool          // calls are matched by name alone
	Steps   []string      // names that the code declares for the workflow function; nil: none
	Version string        // of the code
	// Build and Executor are those that replay the run. Build may be empty.
	Build, Executor string

	mu       sync.Mutex
	uncalled []string // recorded calls that this code did not make
}

// maxUncalled limits how many keys the end of a run names.
const maxUncalled = 100

// NotCalled keeps keys that were recorded and not called, for the event that ends the run.
func (r *Run) NotCalled(keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uncalled = append(r.uncalled, keys...)
}

// Uncalled returns the keys that were recorded and not called, sorted, at most maxUncalled
// of them.
func (r *Run) Uncalled() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.Clone(r.uncalled)
	slices.Sort(keys)
	return keys[:min(len(keys), maxUncalled)]
}
