// Package eventlog keeps the events of a run in memory that has no pointers: the collector
// does not look into it, and a long log is never copied to grow.
package eventlog

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Log is the events of a run. An event never changes once it is in the log, so a Snapshot,
// taken under the lock of the store, may be read without that lock.
type Log struct {
	pages []page
	types []store.Type // that its events have, in the order in which they came
	n     int64        // events in it
	// head has the Seq, the Epoch and the Sum of the last event, which every checkpoint
	// asks for, and nothing else.
	head store.Event
}

// page has some events. Their keys, data and payloads are in text, one after the other,
// but for parts so large that they are kept alone.
type page struct {
	records []record
	text    []byte
	large   [][]byte
}

// record is an event without its bytes.
type record struct {
	epoch, at, took, active         int64
	branch, attempt, ordinal, steps int32
	sum                             uint32
	typ                             int32  // place in types
	begin                           uint32 // of its bytes in text, or their place in large
	data, payload                   uint32 // bytes
	key                             uint16 // bytes; at most store.MaxKey
	apart                           bool   // its bytes are in large
}

const (
	pageBits  = 6 // a page of 64 is still allocated as a small object
	pageSize  = 1 << pageBits
	firstPage = 4 // most runs are short: the first page grows
	// maxTogether is the largest event, in bytes, that is kept with others.
	maxTogether = 4 << 10
	// maxReserved is for how many bytes a new page gets memory, by those of the page before.
	maxReserved = 16 << 10
)

// Append adds a copy of e, which is written with this epoch.
func (l *Log) Append(e *store.Event, epoch int64) {
	p := l.page()
	rec := record{
		epoch: epoch, at: int64(e.At), took: int64(e.Took), active: int64(e.Active),
		branch: e.Branch, attempt: e.Attempt, ordinal: e.Ordinal, steps: e.Steps, sum: e.Sum, typ: l.typeOf(e.Type),
		key: uint16(len(e.Key)), data: uint32(len(e.Data)), payload: uint32(len(e.Payload)),
	}
	if n := len(e.Key) + len(e.Data) + len(e.Payload); n <= maxTogether {
		rec.begin = uint32(len(p.text))
		p.text = append(p.text, e.Key...)
		p.text = append(p.text, e.Data...)
		p.text = append(p.text, e.Payload...)
	} else {
		rec.begin, rec.apart = uint32(len(p.large)), true
		p.large = append(p.large, append(append(append(make([]byte, 0, n), e.Key...), e.Data...), e.Payload...))
	}
	p.records = append(p.records, rec)
	l.n++
	l.head.Seq, l.head.Epoch, l.head.Sum = l.n, epoch, e.Sum
}

// page returns the page that has room for the next event.
func (l *Log) page() *page {
	if int(l.n>>pageBits) == len(l.pages) {
		size, text := firstPage, 0
		if l.n > 0 {
			before := &l.pages[len(l.pages)-1]
			size, text = pageSize, min(len(before.text)+len(before.text)/8, maxReserved)
		}
		l.pages = append(l.pages, page{records: make([]record, 0, size), text: make([]byte, 0, text)})
	}
	return &l.pages[len(l.pages)-1]
}

// typeOf returns the place of t in types.
func (l *Log) typeOf(t store.Type) int32 {
	for i := len(l.types) - 1; i >= 0; i-- {
		if l.types[i] == t {
			return int32(i)
		}
	}
	l.types = append(l.types, t)
	return int32(len(l.types) - 1)
}

// Len returns the Seq of the last event.
func (l *Log) Len() int64 { return l.n }

// At returns a copy of the event with this Seq, or nil.
func (l *Log) At(seq int64) *store.Event {
	if seq < 1 || seq > l.n {
		return nil
	}
	e := l.Read(seq)
	return &e
}

// Read returns a copy of the event with this Seq, which there is.
func (l *Log) Read(seq int64) store.Event {
	p := &l.pages[(seq-1)>>pageBits]
	rec := &p.records[(seq-1)&(pageSize-1)]
	var bytes []byte
	if rec.apart {
		bytes = p.large[rec.begin]
	} else {
		bytes = p.text[rec.begin:]
	}
	key, data, payload := uint32(rec.key), rec.data, rec.payload
	e := store.Event{
		Seq: seq, Epoch: rec.epoch, Branch: rec.branch, Type: l.types[rec.typ], Key: string(bytes[:key]),
		Attempt: rec.attempt, Ordinal: rec.ordinal, At: store.Time(rec.at), Took: time.Duration(rec.took),
		Active: time.Duration(rec.active), Steps: rec.steps, Sum: rec.sum,
	}
	if data+payload > 0 {
		own := slices.Clone(bytes[key : key+data+payload])
		if data > 0 {
			e.Data = own[:data:data]
		}
		if payload > 0 {
			e.Payload = own[data:]
		}
	}
	return e
}

// Last returns a copy of the last event, or nil.
func (l *Log) Last() *store.Event { return l.At(l.n) }

// End returns the Seq, the Epoch and the Sum of the last event; nil if there is none. It is
// not a copy.
func (l *Log) End() *store.Event {
	if l.n == 0 {
		return nil
	}
	return &l.head
}

// Snapshot returns the log as it is now.
func (l *Log) Snapshot() Log {
	return Log{pages: slices.Clone(l.pages), types: slices.Clip(l.types), n: l.n}
}
