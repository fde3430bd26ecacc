package history

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/store"
)

// Identity is what the first event of a run, and of each later generation, says of
// the row, and nothing else in the history does. The row is a cache (G6); if it could
// be compared with nothing, it would have to be believed.
//
// It is written once for each generation. A history of an earlier version of this
// library has none, and is not compared with the row in these points.
type Identity struct {
	Workflow   string     `json:"workflow"`
	Version    string     `json:"version,omitempty"` // with which it was created
	Pinned     string     `json:"pinned,omitempty"`  // in a later generation: the version that it is pinned to, if another
	Parent     string     `json:"parent,omitempty"`
	ParentKey  string     `json:"parent_key,omitempty"`
	ForkedFrom string     `json:"forked_from,omitempty"`
	Queue      string     `json:"queue,omitempty"`
	Partition  string     `json:"partition,omitempty"`
	Dedup      string     `json:"dedup,omitempty"`
	Priority   int32      `json:"priority,omitempty"`
	StartAt    store.Time `json:"start_at,omitempty"` // before which it was not to begin
	Trace      string     `json:"trace,omitempty"`
	CreatedAt  store.Time `json:"created_at"`
}

// IdentityOf returns what the first event of a generation says of its row. The row
// must be complete: what is set later is not in the identity.
func IdentityOf(r *store.Run) *Identity {
	id := &Identity{
		Workflow: r.Workflow, Version: r.InitialVersion, Parent: r.Parent, ParentKey: r.ParentKey, ForkedFrom: r.ForkedFrom,
		Queue: r.Queue, Partition: r.Partition, Dedup: r.Dedup, Priority: r.Priority, Trace: r.Trace, CreatedAt: r.CreatedAt,
	}
	if r.Status == store.Pending {
		id.StartAt = r.WakeAt
	}
	if r.Version != r.InitialVersion {
		id.Pinned = r.Version
	}
	return id
}

// pinned returns the version that a generation begins with; empty: none yet, and the
// first executor that claims the run decides.
func (id *Identity) pinned() string {
	if id.Pinned != "" {
		return id.Pinned
	}
	return id.Version
}

// CopyOf returns, encoded, the identity of a copy of the run source under another id.
func (id *Identity) CopyOf(source string) []byte {
	c := *id
	c.Parent, c.ParentKey, c.Dedup, c.ForkedFrom = "", "", "", source
	b, _ := json.Marshal(&c) // strings and numbers
	return b
}
