package stuck

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/store"
)

// Unserved are runs that no live executor takes, by workflow and version. Where their code is
// served, and nobody who does takes runs from their queue, they are by queue, too.
type Unserved map[store.RunKind]*unserved

type unserved struct {
	runs    int64
	example store.Run // the oldest
	next    string    // what to do
}

// maxQueues is how many queues that nobody serves are named: a program may make up names.
const maxQueues = 20

// Add counts a run.
func (u Unserved) Add(live *Live, row *store.Run) {
	k, coded := store.RunKind{Workflow: row.Workflow, Version: row.Version}, live.HasCode(row)
	if coded {
		k.Queue = row.Queue
	}
	if u[k] == nil {
		advice := Of(row, store.CodeNotRegistered, "")
		if coded {
			advice = live.OfQueue(row)
		}
		u[k] = &unserved{example: *row, next: advice.Next}
	}
	if row.CreatedAt < u[k].example.CreatedAt {
		u[k].example = *row
	}
	u[k].runs++
}

// Runs returns how many runs there are.
func (u Unserved) Runs() (n int64) {
	for _, of := range u {
		n += of.runs
	}
	return n
}

// Each calls report for each kind, and together for those whose queues are too many to be named.
func (u Unserved) Each(report func(workflow, version, queue string, runs int64)) {
	sums, queues := map[store.RunKind]int64{}, 0
	for _, k := range u.sorted() {
		runs := u[k].runs
		if k.Queue != "" {
			if queues++; queues > maxQueues {
				k.Queue = ""
			}
		}
		sums[k] += runs
	}
	for k, runs := range sums {
		report(k.Workflow, k.Version, k.Queue, runs)
	}
}

// Log tells what has changed since before, once for each kind. What was told before counts among
// the queues that are named: of many that come one after the other no more are named than of many at once.
func (u Unserved) Log(log *slog.Logger, executor string, before Unserved) {
	queues := 0
	for k := range before {
		if k.Queue != "" {
			queues++
		}
	}
	for _, k := range u.sorted() {
		of := u[k]
		switch {
		case before[k] != nil:
		case k.Queue == "":
			log.Warn("durable: runs are stuck: no live executor serves their workflow and version", "executor", executor,
				"workflow", k.Workflow, "version", k.Version, "runs", of.runs, "oldest", of.example.ID, "next", of.next)
		case queues == maxQueues:
			queues++
			log.Warn("durable: runs are stuck: no live executor takes runs from more queues; operate.On(engine).Stuck lists them", "executor", executor)
		case queues < maxQueues:
			queues++
			log.Warn("durable: runs are stuck: no live executor takes runs from their queue", "executor", executor,
				"workflow", k.Workflow, "version", k.Version, "queue", k.Queue, "runs", of.runs, "oldest", of.example.ID, "next", of.next)
		}
	}
	for _, k := range before.sorted() {
		if u[k] == nil {
			log.Info("durable: runs that were stuck are served again, or have ended", "executor", executor, "workflow", k.Workflow, "version", k.Version, "queue", k.Queue)
		}
	}
}

func (u Unserved) sorted() []store.RunKind {
	return slices.SortedFunc(maps.Keys(u), func(a, b store.RunKind) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Queue, b.Queue))
	})
}

// Foreign are the kinds of runs that an executor has started and does not take. Somebody has to look
// whether others do: a wrong name of a queue or a workflow is known by nobody.
type Foreign struct {
	isNew atomic.Bool

	mu   sync.Mutex
	seen map[store.RunKind]bool
}

// maxForeign limits how many kinds are remembered. Others are new again.
const maxForeign = 1024

// Note is called when a run with this row was started.
func (f *Foreign) Note(row *store.Run) {
	k := store.RunKind{Workflow: row.Workflow, Version: row.Version, Queue: row.Queue}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[k] {
		return
	}
	if f.seen == nil || len(f.seen) >= maxForeign {
		f.seen = map[store.RunKind]bool{}
	}
	f.seen[k] = true
	f.isNew.Store(true)
}

// HasNew reports whether there are kinds for which nobody has looked. Look says that somebody does,
// and Relook that the look has failed.
func (f *Foreign) HasNew() bool { return f.isNew.Load() }

// Look returns what HasNew does, which is false from then on.
func (f *Foreign) Look() bool { return f.isNew.Swap(false) }

// Relook makes HasNew true again.
func (f *Foreign) Relook() { f.isNew.Store(true) }
