package history

import "github.com/holdfast-dev/holdfast/store"

// On boot there may be a hundred thousand waiting runs, and reading as many
// histories only to find that all is well would cost too much. For most runs, the
// row and the last event of the log, which come with a listing, show what can be
// wrong; for most others, the end of the log does.

// A Look is how much of a run must be read to know whether it is consistent.
type Look int

// The looks.
const (
	LookNone Look = iota // the row and the last event show that it is
	LookTail             // the last events will tell
	LookFull             // the lineage
)

// How many events a look at the end of a log reads. The log of a run that was
// interrupted often, without getting anywhere, ends with many events that say
// only that.
const (
	ShortTail = 32
	LongTail  = 16 * ShortTail
)

// Glance says how closely to look at a run, given its row and its last event;
// declared is the number of steps that its workflow declares, 0 if it declares
// none. It errs, if at all, on the side of looking.
func Glance(row *store.Run, declared int) Look {
	switch row.Status {
	case store.Waiting, store.Running, store.Resuming, store.Interrupted:
	default:
		return LookNone // ended runs are looked at when they are resumed
	}
	if row.Last == nil || row.Last.Type == store.JumpRequested {
		return LookFull
	}
	last := row.Last.Type
	if row.Status == store.Waiting {
		if opens(last) {
			return LookNone // the last thing it did was to begin to wait
		}
		return LookTail
	}
	busy := row.Status != store.Interrupted
	switch {
	case busy && last == store.WaitRequested:
		return LookFull // A2
	case busy && declared > 0 && int(row.Last.Steps) >= declared:
		return LookFull // A3
	case bookkeeping(last):
		return LookTail // a jump that was requested may stand before it
	}
	return LookNone
}

// opens reports whether an event of this type begins something that a run waits
// for.
func opens(t store.Type) bool {
	return t == store.WaitRequested || t == store.TimerSet || t == store.ChildStarted
}

// bookkeeping reports whether an event of this type says only which executor has
// the run.
func bookkeeping(t store.Type) bool {
	switch t {
	case store.WorkflowInterrupted, store.WorkflowPaused, store.WorkflowUnpaused, store.WorkflowRecovered, store.FailuresReset:
		return true
	}
	return t.Claims()
}

// GlanceTail decides, from the last events of the lineage, oldest first, whether
// more must be read: the rest, or a longer end. whole says that there are no
// others.
func GlanceTail(row *store.Run, tail []store.Event, whole bool) Look {
	open := map[string]bool{}
	acted := false
	for i := range tail {
		e := &tail[i]
		switch {
		case e.Type == store.JumpRequested:
			return LookFull
		case opens(e.Type):
			open[e.Key] = true
		default:
			delete(open, e.Key)
		}
		acted = acted || !bookkeeping(e.Type)
	}
	switch {
	case row.Status == store.Waiting && len(open) == 0:
		return LookFull
	case !acted && !whole:
		return LookTail
	}
	return LookNone
}
