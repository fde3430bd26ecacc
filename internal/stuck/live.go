package stuck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Resting are the statuses of runs that an executor that serves them is to claim, now
// or when their time has come.
var Resting = []store.Status{store.Pending, store.Waiting, store.Interrupted}

// unended are the statuses of all runs that have not ended.
var unended = append([]store.Status{store.Running, store.Resuming}, Resting...)

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

// OfQueue describes the run with this row as one on a queue from which none of the executors that
// have its code takes runs.
func (l *Live) OfQueue(row *store.Run) Run {
	s := Of(row, CodeQueueNotServed, fmt.Sprintf("nobody alive who serves workflow %s takes runs from queue %s", row.Workflow, row.Queue))
	s.Next = fmt.Sprintf("run a program with the code of workflow %s that takes runs from queue %s (Options.ServeQueues)", row.Workflow, row.Queue)
	if served := l.queuesOf(row); len(served) > 0 {
		s.Next += fmt.Sprintf("; if the name is wrong (it is served from %s), cancel the run and start it again", someOf(served))
	}
	return s
}

// queuesOf returns the queues from which executors that have the code of a run take runs.
func (l *Live) queuesOf(row *store.Run) []string {
	onNone, names := *row, []string(nil)
	onNone.Queue = ""
	for _, x := range l.executors {
		if x.ID == l.idle || !store.Takes(x.Serves, &onNone) {
			continue
		}
		for _, s := range x.Serves {
			if s.Workflow == row.Workflow {
				names = append(names, s.Queues...)
			}
		}
	}
	return distinct(names)
}

// Unended says why nothing will end a run that goes on by its row, and what to do; ok is false if
// one of the executors has it or takes it up. Here is the engine that asks: whether it has the code
// of the run, and why not.
func (l *Live) Unended(row *store.Run, here bool, notServed string) (reason, next string, ok bool) {
	switch {
	case l.Has(row.Owner), l.Serves(row):
		return "", "", false
	case !here && l.HasCode(row):
		s := l.OfQueue(row)
		return s.Reason, s.Next, true
	case !here:
		return notServed + ", and no other live process has its code", fmt.Sprintf("add workflow %s to durable.Options.Workflows here, or start a program that has it", row.Workflow), true
	}
	reason = "durable.Recover was not called here, and no other live process has its code"
	if row.NeedsPlace() {
		reason = fmt.Sprintf("it is in line of queue %s, %s", row.Queue, reason)
	}
	return reason, "call durable.Recover(ctx) once, after durable.Open: it takes up the runs of earlier processes and of others", true
}

// Unserved returns filters for the resting runs of these kinds whose code none of the executors
// has, and for those on a queue from which none that has their code takes runs. It works by
// kinds: a store in which 100,000 runs sleep soundly is not read row by row to find that none
// of them is stuck. No run is selected by two of them.
func (l *Live) Unserved(kinds []store.RunKind) []store.Filter {
	type code struct{ workflow, queue string }
	served, versions := map[string]bool{}, map[code][]string{} // of which somebody has a version
	other := map[string][]string{}                             // versions that nobody has
	for _, k := range kinds {
		row := store.Run{Workflow: k.Workflow, Version: k.Version, Queue: k.Queue}
		served[k.Workflow] = served[k.Workflow] || l.hasWorkflow(k.Workflow)
		switch {
		case l.Serves(&row):
		case l.HasCode(&row):
			c := code{k.Workflow, k.Queue}
			versions[c] = append(versions[c], k.Version)
		default:
			other[k.Workflow] = append(other[k.Workflow], k.Version)
		}
	}
	var nobody []string
	var filters []store.Filter
	for _, w := range slices.Sorted(maps.Keys(served)) {
		if !served[w] {
			nobody = append(nobody, w)
			continue
		}
		if len(other[w]) > 0 {
			filters = append(filters, store.Filter{Statuses: Resting, Workflows: []string{w}, Versions: distinct(other[w])})
		}
		for _, c := range slices.SortedFunc(maps.Keys(versions), func(a, b code) int { return cmp.Compare(a.queue, b.queue) }) {
			if c.workflow == w {
				filters = append(filters, store.Filter{Statuses: Resting, Workflows: []string{w}, Versions: distinct(versions[c]), Queues: []string{c.queue}})
			}
		}
	}
	if len(nobody) > 0 {
		filters = append(filters, store.Filter{Statuses: Resting, Workflows: nobody})
	}
	return filters
}

// hasWorkflow reports whether one of the executors has some version of a workflow.
func (l *Live) hasWorkflow(workflow string) bool {
	return slices.ContainsFunc(l.executors, func(x store.Executor) bool {
		return x.ID != l.idle && slices.ContainsFunc(x.Serves, func(s store.Served) bool { return s.Workflow == workflow && len(s.Versions) > 0 })
	})
}

// UnservedIn returns the filters of Unserved for the runs of one queue that need a place.
func (l *Live) UnservedIn(queue string, kinds []store.RunKind) []store.Filter {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k store.RunKind) bool { return k.Queue != queue })
	filters := l.Unserved(kinds)
	for i := range filters {
		filters[i].Queues, filters[i].Statuses = []string{queue}, []store.Status{store.Pending, store.Interrupted}
	}
	return filters
}

// KindsOf returns the kinds of the unfinished runs of a store. One that cannot tell them, and
// counts runs, has every combination of their workflows, versions and queues.
func KindsOf(ctx context.Context, st store.Store) (kinds []store.RunKind, err error) {
	if c := store.CapabilitiesOf(st).RunKinds; c != nil {
		return c.RunKinds(ctx)
	}
	var counts [3]map[string]int64
	for i, by := range []string{store.ByWorkflow, store.ByVersion, store.ByQueue} {
		if counts[i], err = st.Count(ctx, store.Filter{Statuses: unended}, by); err != nil {
			return nil, err
		}
	}
	for w := range counts[0] {
		for v := range counts[1] {
			for q := range counts[2] {
				kinds = append(kinds, store.RunKind{Workflow: w, Version: v, Queue: q})
			}
		}
	}
	return kinds, nil
}

func distinct(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
