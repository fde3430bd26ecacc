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
		return x.ID != l.idle && store.Serves(x.Serves, row.Workflow, row.Version)
	})
}

// ServesWorkflow reports whether one of the executors takes up runs of the workflow, at
// whatever version.
func (l *Live) ServesWorkflow(workflow string) bool { return len(l.versions(workflow)) > 0 }

// versions returns the versions of a workflow that the executors serve.
func (l *Live) versions(workflow string) []string {
	var all []string
	for _, x := range l.executors {
		if x.ID == l.idle {
			continue
		}
		for _, s := range x.Serves {
			if s.Workflow == workflow {
				all = append(all, s.Versions...)
			}
		}
	}
	return all
}

// Unserved returns filters for the resting runs whose code none of the executors has,
// given how many runs of each workflow and of each version rest. It works by counting:
// a store in which 100,000 runs sleep soundly is not read row by row to find that none
// of them is stuck.
func (l *Live) Unserved(byWorkflow, byVersion map[string]int64) []store.Filter {
	var nobody []string // workflows of which no executor serves any version
	var filters []store.Filter
	for _, w := range slices.Sorted(maps.Keys(byWorkflow)) {
		served := l.versions(w)
		if len(served) == 0 {
			nobody = append(nobody, w)
			continue
		}
		var other []string
		for _, v := range slices.Sorted(maps.Keys(byVersion)) {
			if !slices.Contains(served, v) {
				other = append(other, v)
			}
		}
		if len(other) > 0 {
			filters = append(filters, store.Filter{Statuses: Resting, Workflows: []string{w}, Versions: other})
		}
	}
	if len(nobody) > 0 {
		filters = append(filters, store.Filter{Statuses: Resting, Workflows: nobody})
	}
	return filters
}
