package conformance

import (
	"bytes"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// loaded is a History with its events read. Empty bytes, maps and slices are made nil,
// because the contract leaves open which of the two a store returns.
type loaded struct {
	Run      store.Run
	Branches []store.Branch
	Inbox    []store.Message
	Events   []store.Event
}

// load reads a run that must exist.
func (t *T) load(s store.Store, id string, c store.Cursor) loaded {
	t.Helper()
	h, err := s.Load(t.Context(), id, c)
	require.NoError(t, err, "load of %q", id)
	return t.read(h, id)
}

// read reads the events of a history.
func (t *T) read(h *store.History, id string) loaded {
	t.Helper()
	l := loaded{Run: plainRun(h.Run)}
	l.Branches = append(l.Branches, h.Branches...)
	for _, m := range h.Inbox {
		l.Inbox = append(l.Inbox, plainMessage(m))
	}
	for e, err := range h.Events {
		require.NoError(t, err, "reading the events of %q", id)
		l.Events = append(l.Events, plainEvent(e))
	}
	return l
}

// all reads everything about a run.
func (t *T) all(s store.Store, id string) loaded {
	t.Helper()
	return t.load(s, id, store.Cursor{All: true})
}

func (t *T) row(s store.Store, id string) store.Run {
	t.Helper()
	return t.load(s, id, store.Cursor{NoEvents: true}).Run
}

// list reads all pages of a listing.
func (t *T) list(s store.Store, f store.Filter) []store.Run {
	t.Helper()
	var runs []store.Run
	if f.Limit == 0 {
		f.Limit = 50
	}
	ctx := t.patient()
	for {
		p, err := s.List(ctx, f)
		require.NoError(t, err, "list %+v", f)
		require.LessOrEqual(t, len(p.Runs), f.Limit, "S16: a page is within its limit")
		for _, r := range p.Runs {
			runs = append(runs, plainRun(r))
		}
		if p.Next == "" {
			return runs
		}
		require.NotEqual(t, f.After, p.Next, "S16: a listing moves on")
		f.After = p.Next
	}
}

func (t *T) count(s store.Store, f store.Filter, by string) map[string]int64 {
	t.Helper()
	counts, err := s.Count(t.Context(), f, by)
	require.NoError(t, err)
	// A value that no run has may be listed with 0 or not at all.
	maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
	return counts
}

// dump reads all runs of a store, by id.
func (t *T) dump(s store.Store) map[string]loaded {
	t.Helper()
	m := make(map[string]loaded)
	for _, r := range t.list(s, store.Filter{}) {
		m[r.ID] = t.all(s, r.ID)
	}
	return m
}

func ids(runs []store.Run) []string {
	s := make([]string, len(runs))
	for i, r := range runs {
		s[i] = r.ID
	}
	return s
}

func sortedIDs(runs []store.Run) []string {
	s := ids(runs)
	slices.Sort(s)
	return s
}

func seqs(events []store.Event) []int64 {
	var s []int64
	for _, e := range events {
		s = append(s, e.Seq)
	}
	return s
}

func plainRun(r store.Run) store.Run {
	if len(r.Attributes) == 0 {
		r.Attributes = nil
	}
	if r.Last != nil {
		r.Last = ptr(plainEvent(*r.Last))
	}
	return r
}

func plainEvent(e store.Event) store.Event {
	e.Data, e.Payload = plainBytes(e.Data), plainBytes(e.Payload)
	return e
}

func plainMessage(m store.Message) store.Message {
	m.Data, m.Payload = plainBytes(m.Data), plainBytes(m.Payload)
	return m
}

func plainBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b) // so that what a broken store does with it later does not change the comparison
}

// stored returns the events of a Change as they should be read back.
func stored(c store.Change) []store.Event {
	events := make([]store.Event, len(c.Events))
	for i, e := range c.Events {
		e.Epoch = c.EventEpoch(i)
		events[i] = plainEvent(e)
	}
	return events
}
