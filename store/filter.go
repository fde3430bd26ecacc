package store

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

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

	// Half-open windows: at or after From, before To; 0: open. An unset time is
	// in no window.
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
	// Limit of a page; 0: 100. A backend may return fewer runs than asked for,
	// together with a Next.
	Limit int
	// After is the Next of the previous page. It is only valid with the same
	// filter and order; anything else is ErrInvalid.
	After string
	// WithLast fills Run.Last.
	WithLast bool
}

// Matches reports whether f selects r. head is the Seq of the last event of r's
// log and matters for Unarchived only; orphaned says that r's owner is not live
// and matters for Orphaned only. Text is compared byte by byte.
func (f *Filter) Matches(r *Run, head int64, orphaned bool) bool {
	for name, value := range f.Attributes {
		if v, ok := r.Attributes[name]; !ok || v != value {
			return false
		}
	}
	return oneOf(f.IDs, r.ID) && strings.HasPrefix(r.ID, f.IDPrefix) &&
		oneOf(f.Workflows, r.Workflow) && oneOf(f.Versions, r.Version) &&
		oneOf(f.Statuses, r.Status) && oneOf(f.Codes, r.Code) &&
		oneOf(f.Queues, r.Queue) && oneOf(f.Owners, r.Owner) && oneOf(f.Parents, r.Parent) &&
		within(r.CreatedAt, f.CreatedFrom, f.CreatedTo) &&
		within(r.UpdatedAt, f.UpdatedFrom, f.UpdatedTo) &&
		within(r.EndedAt, f.EndedFrom, f.EndedTo) &&
		(!f.Mail || r.Inbox > r.Seen) && (!f.Paused || r.Paused) &&
		(!f.Unarchived || r.ArchivedSeq < head) &&
		(!f.Orphaned || orphaned && r.Owner != "" && !r.Status.Terminal())
}

func oneOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// within tests a half-open window. An unset time is in no window.
func within(t, from, to Time) bool {
	if from == 0 && to == 0 {
		return true
	}
	return t != 0 && t >= from && (to == 0 || t < to)
}

// Fingerprint distinguishes filters by what they select and in which order. A
// cursor carries it, so that a cursor of another listing is refused. The page
// size, the cursor and WithLast may change between pages.
func (f *Filter) Fingerprint() uint64 {
	of := *f
	of.Limit, of.After, of.WithLast = 0, "", false
	h := fnv.New64a()
	// A Filter holds only strings, numbers, flags and maps of strings, so it
	// always encodes, with map keys in order.
	if err := json.NewEncoder(h).Encode(of); err != nil {
		panic("store: encode filter: " + err.Error())
	}
	return h.Sum64()
}

// Place is the run at which a page ended; it need not exist any more. Neither
// part changes while a run exists, so pages are stable (S16) as long as a store
// gives every run its own number and never reuses one.
type Place struct {
	CreatedAt Time
	No        int64
}

const (
	cursorVersion = 1
	cursorSize    = 1 + 8 + 8 + 8 // version, fingerprint, created at, number
)

// Next returns the cursor (Page.Next) of the page after one that ends at p.
func (f *Filter) Next(p Place) string {
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, f.Fingerprint())
	b = binary.BigEndian.AppendUint64(b, uint64(p.CreatedAt))
	b = binary.BigEndian.AppendUint64(b, uint64(p.No))
	return base64.RawURLEncoding.EncodeToString(b)
}

// Place reads After, which says where the previous page ended. ok is false for
// the first page. A cursor that Next did not make for this filter and order is
// ErrInvalid.
func (f *Filter) Place() (p Place, ok bool, err error) {
	if f.After == "" {
		return Place{}, false, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(f.After)
	switch {
	case err != nil || len(b) != cursorSize || b[0] != cursorVersion:
		return Place{}, false, fmt.Errorf("store: Filter.After %.80q is not a cursor of a listing: %w", f.After, ErrInvalid)
	case binary.BigEndian.Uint64(b[1:]) != f.Fingerprint():
		return Place{}, false, fmt.Errorf("store: Filter.After belongs to another filter or order; begin the listing again: %w", ErrInvalid)
	}
	return Place{CreatedAt: Time(binary.BigEndian.Uint64(b[9:])), No: int64(binary.BigEndian.Uint64(b[17:]))}, true, nil
}

// DefaultLimit is the size of a page when Filter.Limit is 0.
const DefaultLimit = 100

// Page is one page of a listing.
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

// Cursor selects what Load reads.
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
	// OnlyInbox, beside NoEvents, says that the caller looks at nothing but History.Inbox. A store may
	// leave out the rest.
	OnlyInbox bool
}
