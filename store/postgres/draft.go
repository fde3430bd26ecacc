package postgres

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
)

// drafted is the effect of a transaction's Changes, computed from what was read
// under the locks, without touching the database. The resulting differences are
// then written in bulk.
type drafted struct {
	*draft.Draft
	world *world
}

// world is what was read for the members of a transaction; see draft.World.
type world struct {
	now  store.Time
	live func(owner string) bool

	runs     map[string]*locked
	dedup    map[dedupKey]string // the unfinished run that has this Dedup
	holds    map[string]string   // exclusive keys and their holders
	inbox    map[messageKey]bool // messages that were delivered before
	branches map[branchKey]bool  // that the runs have
}

// locked is a run whose row is locked.
type locked struct {
	no         int64
	run        store.Run
	attributes int64 // their number; the attributes themselves are not read
}

type (
	branchKey struct {
		run string
		n   int32
	}
	dedupKey   struct{ queue, dedup string }
	messageKey struct {
		to   string
		kind store.Kind
		id   string
	}
)

var _ draft.World = (*world)(nil)

func newWorld() *world {
	return &world{
		live: func(string) bool { return true }, // until liveness has been read
		runs: map[string]*locked{}, dedup: map[dedupKey]string{}, holds: map[string]string{},
		inbox: map[messageKey]bool{}, branches: map[branchKey]bool{},
	}
}

// Run implements draft.World.
func (w *world) Run(id string) *store.Run {
	if r := w.runs[id]; r != nil {
		return &r.run
	}
	return nil
}

// Last implements draft.World: the insert of events tests the log.
func (w *world) Last(string) *store.Event { return nil }

// Live implements draft.World.
func (w *world) Live(owner string) bool { return w.live(owner) }

// Dedup implements draft.World.
func (w *world) Dedup(queue, dedup string) string { return w.dedup[dedupKey{queue, dedup}] }

// Holder implements draft.World.
func (w *world) Holder(key string) string { return w.holds[key] }

// Held implements draft.World. It returns only those keys of the run that some
// member asks for: one statement frees all keys of a run, whatever they are.
func (w *world) Held(id string) (keys []string) {
	for key, holder := range w.holds {
		if holder == id {
			keys = append(keys, key)
		}
	}
	return keys
}

// Received implements draft.World.
func (w *world) Received(m *store.Message) bool {
	return w.inbox[messageKey{to: m.To, kind: m.Kind, id: m.ID}]
}

// HasBranch implements draft.World.
func (w *world) HasBranch(id string, n int32) bool { return w.branches[branchKey{id, n}] }

// no returns the number of an existing run, 0 if it is to be created.
func (d *drafted) no(id string) int64 {
	if r := d.world.runs[id]; r != nil {
		return r.no
	}
	return 0
}

// attributes returns how many attributes a run has afterwards.
func (d *drafted) attributes(id string, r *draft.Row) int64 {
	if r.Attributes {
		return int64(len(r.Run.Attributes))
	}
	return d.world.runs[id].attributes
}

// A row of the draft, with the run's number.
type draftRow struct {
	*draft.Row
	no int64
}

// sorted returns rows of the draft by run id, the order in which every
// transaction locks.
func (d *drafted) sorted(want func(*draft.Row) bool) []draftRow {
	all := maps.Collect(d.Rows)
	var rows []draftRow
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if want(all[id]) {
			rows = append(rows, draftRow{all[id], d.no(id)})
		}
	}
	return rows
}
