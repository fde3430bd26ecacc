package stuck

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Resting are the statuses of runs that an executor that serves them is to claim, now
// or when their time has come.
var Resting = []store.Status{store.Pending, store.Waiting, store.Interrupted}

// Live has the executors that are alive.
type Live struct {
	executors []store.Executor
	idle      string
}

// LiveOf returns those executors that are alive. idle is the id of an executor that
// takes up no run unless it is told to, and so serves none, such as the engine of a
// command, which has the code and is gone in a moment; empty: there is none.
func LiveOf(all []store.Executor, idle string) *Live {
	l := &Live{idle: idle}
	for _, x := range all {
		if x.Live {
			l.executors = append(l.executors, x)
		}
	}
	return l
}

// IDs returns the ids of the executors, in the order of the store.
func (l *Live) IDs() (ids []string) {
	for _, x := range l.executors {
		ids = append(ids, x.ID)
	}
	return ids
}

// Has reports whether an executor is alive.
func (l *Live) Has(executor string) bool {
	return slices.ContainsFunc(l.executors, func(x store.Executor) bool { return x.ID == executor })
}

// Serves reports whether one of the executors takes up the run with this row.
func (l *Live) Serves(row *store.Run) bool {
	return slices.ContainsFunc(l.executors, func(x store.Executor) bool {
		return x.ID != l.idle && store.Takes(x.Serves, row)
	})
}

// HasCode reports the same for a run that is on no queue: if Serves does not, none of them takes
// runs from its queue.
func (l *Live) HasCode(row *store.Run) bool {
	onNone := *row
	onNone.Queue = ""
	return l.Serves(&onNone)
}

// Picky reports whether one of the executors takes runs only from some queues.
func (l *Live) Picky() bool {
	return slices.ContainsFunc(l.executors, func(x store.Executor) bool {
		return x.ID != l.idle && slices.ContainsFunc(x.Serves, func(s store.Served) bool { return len(s.Queues) > 0 })
	})
}

// versions returns the versions of a workflow that the executors serve, on those queues that
// takes reports.
func (l *Live) versions(workflow string, takes func(queues []string) bool) []string {
	var all []string
	for _, x := range l.executors {
		if x.ID == l.idle {
			continue
		}
		for _, s := range x.Serves {
			if s.Workflow == workflow && takes(s.Queues) {
				all = append(all, s.Versions...)
			}
		}
	}
	return all
}

// Unserved returns filters for the resting runs whose code none of the executors has,
// given how many runs of each workflow and of each version rest; and for those on a queue from
// which none that has their code takes runs, given how many of each queue rest, or nil
// unless Picky. It works by counting:
// a store in which 100,000 runs sleep soundly is not read row by row to find that none
// of them is stuck. No run is selected by two of them.
func (l *Live) Unserved(byWorkflow, byVersion, byQueue map[string]int64) []store.Filter {
	var nobody []string // workflows of which no executor serves any version
	var filters []store.Filter
	versions := slices.Sorted(maps.Keys(byVersion))
	for _, w := range slices.Sorted(maps.Keys(byWorkflow)) {
		served := l.versions(w, func([]string) bool { return true })
		if len(served) == 0 {
			nobody = append(nobody, w)
			continue
		}
		var here, other []string
		for _, v := range versions {
			if slices.Contains(served, v) {
				here = append(here, v)
			} else {
				other = append(other, v)
			}
		}
		if len(other) > 0 {
			filters = append(filters, store.Filter{Statuses: Resting, Workflows: []string{w}, Versions: other})
		}
		for _, q := range slices.Sorted(maps.Keys(byQueue)) {
			taken := l.versions(w, func(queues []string) bool { return q == "" || len(queues) == 0 || slices.Contains(queues, q) })
			if left := slices.DeleteFunc(slices.Clone(here), func(v string) bool { return slices.Contains(taken, v) }); len(left) > 0 {
				filters = append(filters, store.Filter{Statuses: Resting, Workflows: []string{w}, Versions: left, Queues: []string{q}})
			}
		}
	}
	if len(nobody) > 0 {
		filters = append(filters, store.Filter{Statuses: Resting, Workflows: nobody})
	}
	return filters
}

// UnservedIn returns the filters of Unserved for the runs of one queue that need a place.
func (l *Live) UnservedIn(queue string, byWorkflow, byVersion map[string]int64) []store.Filter {
	filters := l.Unserved(byWorkflow, byVersion, map[string]int64{queue: 1})
	for i := range filters {
		filters[i].Queues, filters[i].Statuses = []string{queue}, []store.Status{store.Pending, store.Interrupted}
	}
	return filters
}
