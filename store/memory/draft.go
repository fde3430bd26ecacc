package memory

import (
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
)

// world is the data as a draft sees it.
type world struct {
	*data
	at store.Time
}

var _ draft.World = world{}

// Run implements draft.World.
func (w world) Run(id string) *store.Run {
	if r := w.runs[id]; r != nil {
		return &r.row
	}
	return nil
}

// Last implements draft.World.
func (w world) Last(id string) *store.Event {
	if r := w.runs[id]; r != nil {
		return r.log.Last()
	}
	return nil
}

// Live implements draft.World.
func (w world) Live(owner string) bool { return w.live(owner, w.at) }

// Dedup implements draft.World.
func (w world) Dedup(queue, dedup string) string { return w.dedup[dedupKey{queue, dedup}] }

// Holder implements draft.World.
func (w world) Holder(key string) string { return w.holds[key] }

// Held implements draft.World.
func (w world) Held(id string) (keys []string) {
	for key, holder := range w.holds {
		if holder == id {
			keys = append(keys, key)
		}
	}
	return keys
}

// Received implements draft.World.
func (w world) Received(m *store.Message) bool {
	r := w.runs[m.To]
	return r != nil && r.has(m)
}

// HasBranch implements draft.World.
func (w world) HasBranch(id string, n int32) bool {
	r := w.runs[id]
	return r != nil && r.hasBranch(n)
}

// apply applies the draft to the data. It cannot fail.
func (d *data) apply(f *draft.Draft) {
	for id, drafted := range f.Rows {
		r := d.runs[id]
		if r == nil {
			d.lastNo++
			r = &run{no: d.lastNo}
			d.runs[id] = r
		}
		r.row = drafted.Run
		for _, c := range drafted.Appends {
			for i := range c.Events {
				r.log.Append(&c.Events[i], c.EventEpoch(i))
			}
		}
		r.branches = append(r.branches, drafted.Branches...)
		for i := range drafted.Messages {
			r.receive(&drafted.Messages[i])
		}
		d.index(r)
	}
	for key, holder := range f.Holds() {
		if holder == "" {
			delete(d.holds, key)
		} else {
			d.holds[key] = holder
		}
	}
	d.notify(f.News())
}

// index brings what is derived from the row of r up to date.
func (d *data) index(r *run) {
	key := dedupKey{r.row.Queue, r.row.Dedup}
	if r.row.Status.Terminal() {
		delete(d.unfinished, r)
		if d.dedup[key] == r.row.ID {
			delete(d.dedup, key)
		}
		return
	}
	d.unfinished[r] = struct{}{}
	if r.row.Dedup != "" {
		d.dedup[key] = r.row.ID
	}
}
