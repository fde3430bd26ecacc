package storeclock

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/store"
)

// Epochs gives out epochs, each once.
//
// Runs are created with the microsecond of their birth as epoch. If the epoch and the
// first event of a creation are on record already, a store takes it for a repeat whose
// reply was lost, and says that it is done. Two starts of the same run in one
// microsecond are one start. Two imports are not: the files may differ after their
// first event, and in their inboxes, of which only the first one's is stored. So an
// engine never gives the same epoch to two imports, and an import that is told that it
// has created a run checks that it was this import.
type Epochs struct{ last atomic.Int64 }

// Next returns one that was not given out, from now on.
func (x *Epochs) Next(now store.Time) int64 {
	for {
		last := x.last.Load()
		if next := max(int64(now), last+1); x.last.CompareAndSwap(last, next) {
			return next
		}
	}
}
