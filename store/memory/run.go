package memory

import (
	"bytes"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// run is everything that belongs to one run.
type run struct {
	no       int64 // order of creation, never reused
	row      store.Run
	log      log
	branches []store.Branch
	inbox    []store.Message
	received map[messageID]struct{}
	bytes    arena
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

// append copies e to the end of the log.
func (r *run) append(e *store.Event, epoch int64) {
	kept := *e
	kept.Epoch = epoch
	kept.Data = r.bytes.keep(e.Data)
	kept.Payload = r.bytes.keep(e.Payload)
	r.log.append(&kept)
}

// view returns a copy of the row that shares nothing with it.
func (r *run) view(withLast bool) store.Run {
	row := r.row
	row.Attributes = maps.Clone(row.Attributes)
	row.Last = nil
	if withLast {
		if last := r.log.last(); last != nil {
			e := copyEvent(last)
			row.Last = &e
		}
	}
	return row
}

func copyEvent(e *store.Event) store.Event {
	c := *e
	c.Data, c.Payload = bytes.Clone(e.Data), bytes.Clone(e.Payload)
	return c
}

func copyMessage(m *store.Message) store.Message {
	c := *m
	c.Data, c.Payload = bytes.Clone(m.Data), bytes.Clone(m.Payload)
	return c
}

// log keeps events in pages, so that a long log is never copied to grow. An
// event never changes once it is in the log, so a copy of the page headers,
// taken under the lock, may be read without the lock.
type log struct {
	pages [][]store.Event
	n     int64 // events in them
}

const (
	pageBits  = 6 // a page of 64 is still allocated as a small object
	pageSize  = 1 << pageBits
	firstPage = 4 // most runs are short: the first page grows
)

func (l *log) append(e *store.Event) {
	k, i := int(l.n>>pageBits), int(l.n&(pageSize-1))
	switch {
	case k > 0 && i == 0:
		l.pages = append(l.pages, make([]store.Event, pageSize))
	case k > 0:
	case i == 0:
		l.pages = append(l.pages, make([]store.Event, firstPage))
	case i == len(l.pages[0]):
		grown := make([]store.Event, 2*i)
		copy(grown, l.pages[0])
		l.pages[0] = grown
	}
	l.pages[k][i] = *e
	l.n++
}

// len returns the Seq of the last event.
func (l *log) len() int64 { return l.n }

// at returns the event with this Seq, or nil.
func (l *log) at(seq int64) *store.Event {
	if seq < 1 || seq > l.len() {
		return nil
	}
	i := seq - 1
	return &l.pages[i>>pageBits][i&(pageSize-1)]
}

func (l *log) last() *store.Event { return l.at(l.len()) }

func (l *log) snapshot() log { return log{pages: slices.Clone(l.pages), n: l.n} }

// arena packs copies of small byte slices together, so that they cost a
// checkpoint less than one allocation.
type arena struct{ chunk []byte }

const (
	minChunk = 128
	maxChunk = 16 << 10
)

func (a *arena) keep(b []byte) []byte {
	if len(b) == 0 || len(b) > maxChunk/4 {
		return bytes.Clone(b)
	}
	if cap(a.chunk)-len(a.chunk) < len(b) {
		a.chunk = make([]byte, 0, max(min(2*cap(a.chunk), maxChunk), minChunk, len(b)))
	}
	n := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return a.chunk[n:len(a.chunk):len(a.chunk)]
}
