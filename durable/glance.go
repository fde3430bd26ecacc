package durable

import "github.com/holdfast-dev/holdfast/store"

// On boot there may be a hundred thousand waiting runs, and as many histories are
// not read to find that all is well. What can be wrong with a run shows, for most
// runs, in the row and the last event of the log, which come with a listing; for
// most others in the end of the log.

// A look is how much of a run must be read to know whether it is consistent.
type look int

const (
	lookNone look = iota // the row and the last event show that it is
	lookTail             // the last events will tell
	lookFull             // the lineage
)

// How many events a look at the end of a log reads. A run that was interrupted
// often without getting anywhere ends with many that say no more than that.
const (
	shortTail = 32
	longTail  = 16 * shortTail
)

// glance says how closely to look at a run of which the row and the last event
// are known; declared is the number of steps that its workflow declares, 0 if it
// declares none. It may err on the side of looking.
func glance(row *store.Run, declared int) look {
	switch row.Status {
	case store.Waiting, store.Running, store.Resuming, store.Interrupted:
	default:
		return lookNone // ended runs are looked at when they are resumed
	}
	if row.Last == nil || row.Last.Type == store.JumpRequested {
		return lookFull
	}
	last := row.Last.Type
	if row.Status == store.Waiting {
		if opens(last) {
			return lookNone // the last thing it did was to begin to wait
		}
		return lookTail
	}
	busy := row.Status != store.Interrupted
	switch {
	case busy && last == store.WaitRequested:
		return lookFull // A2
	case busy && declared > 0 && int(row.Last.Steps) >= declared:
		return lookFull // A3
	case bookkeeping(last):
		return lookTail // a jump that was requested may stand before it
	}
	return lookNone
}

// opens reports whether an event of this type begins something that a run waits
// for.
func opens(t store.Type) bool {
	return t == store.WaitRequested || t == store.TimerSet || t == store.ChildStarted
}

// bookkeeping reports whether an event of this type says only who has the run.
func bookkeeping(t store.Type) bool {
	switch t {
	case store.WorkflowInterrupted, store.WorkflowPaused, store.WorkflowUnpaused, store.WorkflowRecovered, store.FailuresReset:
		return true
	}
	return t.Claims()
}

// glanceTail decides, from the last events of the lineage, oldest first, whether
// more must be read: the rest, or a longer end. whole says that there are no
// others.
func glanceTail(row *store.Run, tail []store.Event, whole bool) look {
	open := map[string]bool{}
	acted := false
	for i := range tail {
		e := &tail[i]
		switch {
		case e.Type == store.JumpRequested:
			return lookFull
		case opens(e.Type):
			open[e.Key] = true
		default:
			delete(open, e.Key)
		}
		acted = acted || !bookkeeping(e.Type)
	}
	switch {
	case row.Status == store.Waiting && len(open) == 0:
		return lookFull
	case !acted && !whole:
		return lookTail
	}
	return lookNone
}
