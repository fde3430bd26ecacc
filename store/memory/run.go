package memory

import (
	"bytes"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory/internal/eventlog"
)

// run is everything that belongs to one run.
type run struct {
	no       int64 // order of creation, never reused
	row      store.Run
	log      eventlog.Log
	branches []store.Branch
	inbox    []store.Message
	received map[messageID]struct{}
}

type messageID struct {
	kind store.Kind
	id   string
}

func (r *run) has(m *store.Message) bool {
	_, ok := r.received[messageID{m.Kind, m.ID}]
	return ok
}

// receive puts a message into the inbox.
func (r *run) receive(m *store.Message) {
	if r.received == nil {
		r.received = make(map[messageID]struct{})
	}
	r.received[messageID{m.Kind, m.ID}] = struct{}{}
	r.inbox = append(r.inbox, copyMessage(m))
}

func (r *run) hasBranch(n int32) bool {
	return slices.ContainsFunc(r.branches, func(b store.Branch) bool { return b.N == n })
}

// view returns a copy of the row that shares nothing with it.
func (r *run) view(withLast bool) store.Run {
	row := r.row
	row.Attributes = maps.Clone(row.Attributes)
	row.Last = nil
	if withLast {
		row.Last = r.log.Last()
	}
	return row
}

func copyMessage(m *store.Message) store.Message {
	c := *m
	c.Data, c.Payload = bytes.Clone(m.Data), bytes.Clone(m.Payload)
	return c
}
