package store

// Filter selects runs. Every field that is set must match; the zero Filter
// matches all. Within a list, any element may match.
type Filter struct {
	IDs        []string
	IDPrefix   string // literal: no wildcards
	Workflows  []string
	Versions   []string
	Statuses   []Status
	Codes      []string
	Queues     []string
	Owners     []string
	Parents    []string
	Attributes map[string]string // each must be set to this value

	// Half-open windows: at or after From, before To; 0: open. A time that is
	// not set is in no window.
	CreatedFrom, CreatedTo Time
	UpdatedFrom, UpdatedTo Time
	EndedFrom, EndedTo     Time

	// Orphaned: not terminal, with an owner that is not live.
	Orphaned bool
	// Mail: Inbox > Seen.
	Mail bool
	// Unarchived: ArchivedSeq is smaller than the Seq of the run's last event.
	Unarchived bool `json:",omitempty"`
	// Paused: the run is paused.
	Paused bool `json:",omitempty"`

	// OldestFirst orders by CreatedAt, then run number; otherwise the newest
	// come first.
	OldestFirst bool
	// Limit of a page; 0: 100. A backend may return fewer than asked, with a
	// Next.
	Limit int
	// After is the Next of the page before. It belongs to the same filter and
	// order; anything else is ErrInvalid.
	After string
	// WithLast fills Run.Last.
	WithLast bool
}

// DefaultLimit is the size of a page when Filter.Limit is 0.
const DefaultLimit = 100

// Page is a part of a listing.
type Page struct {
	Runs []Run
	Next string // empty: this was the last page
}

// The fields by which Count groups.
const (
	ByStatus   = "status"
	ByWorkflow = "workflow"
	ByQueue    = "queue"
	ByCode     = "code"
	ByOwner    = "owner"
	ByVersion  = "version"
)

// Cursor says what Load reads.
type Cursor struct {
	// After: only events with a greater Seq.
	After int64
	// Tail: only the last n of what would be read; 0: all.
	Tail int
	// All branches in order of Seq, instead of the lineage of one.
	All bool
	// Branch whose lineage is read; nil: the run's current branch.
	Branch *int32
	// AfterMessage: only messages with a greater Seq.
	AfterMessage int64
	// NoEvents leaves History.Events empty.
	NoEvents bool
}
