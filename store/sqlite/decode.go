//go:build cgo

package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// seqBits is the number of bits of a place that hold the seq.
const (
	seqBits = 28
	maxSeq  = 1<<seqBits - 1
	maxRun  = 1<<(63-seqBits) - 1
)

// place packs a run number and a seq into the key of the log and of the inbox.
func place(no, seq int64) int64 { return no<<seqBits | seq }

// span returns the places just outside those of a run; both are exclusive bounds.
func span(no int64) (after, before int64) { return place(no, 0), place(no+1, 0) }

// checkSeq refuses a seq that does not fit into a place.
func checkSeq(run, what string, seq int64) error {
	if seq > maxSeq {
		return fmt.Errorf("sqlite: run %q: %s %d: a run has at most %d here; continue it as a new run: %w", run, what, seq, maxSeq, store.ErrTooLarge)
	}
	return nil
}

// cells reads the columns of a row in order. The schema is STRICT, so a column
// has the type it was declared with, or is NULL where that is allowed.
type cells struct {
	row []driver.Value
	i   int
}

func (c *cells) next() driver.Value {
	v := c.row[c.i]
	c.i++
	return v
}

func (c *cells) int() int64 {
	n, _ := c.next().(int64)
	return n
}

func (c *cells) int32() int32 { return int32(c.int()) }
func (c *cells) bool() bool   { return c.int() != 0 }

func (c *cells) text() string {
	s, _ := c.next().(string)
	return s
}

// bytes reads a BLOB or a TEXT; NULL is nil.
func (c *cells) bytes() []byte {
	switch v := c.next().(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

func (c *cells) run() sqlstore.RunRow {
	return sqlstore.RunRow{
		No: c.int(), ID: c.text(), Workflow: c.text(), InitialVersion: c.text(), Parent: c.text(), ParentKey: c.text(),
		ForkedFrom: c.text(), InputHash: c.bytes(), Queue: c.text(), Partition: c.text(), Dedup: c.text(), Trace: c.text(),
		CreatedAt: c.int(), Version: c.text(), Status: c.text(), Code: c.text(), Reason: c.text(), Recoverable: c.bool(),
		Owner: c.text(), Epoch: c.int(), Branch: c.int32(), Generation: c.int32(), Resumes: c.int32(), Strikes: c.int32(),
		Priority: c.int32(), Inbox: c.int(), Seen: c.int(), CancelAsked: c.bool(), Paused: c.bool(), ArchivedSeq: c.int(),
		StartedAt: c.int(), UpdatedAt: c.int(), EndedAt: c.int(), WakeAt: c.int(), DeadlineAt: c.int(), Attributes: c.int(),
	}
}

func (c *cells) event() store.Event {
	return store.Event{
		Seq: c.int(), Epoch: c.int(), Branch: c.int32(), Type: sqlstore.TypeOf(c.text()), Key: c.text(), Attempt: c.int32(),
		Ordinal: c.int32(), At: store.Time(c.int()), Took: time.Duration(c.int()) * time.Microsecond,
		Active: time.Duration(c.int()) * time.Microsecond, Steps: c.int32(), Data: c.bytes(), Payload: c.bytes(), Sum: uint32(c.int()),
	}
}

func (c *cells) executor() sqlstore.ExecutorRow {
	return sqlstore.ExecutorRow{
		ID: c.text(), Name: c.text(), Host: c.text(), Boot: c.text(), PID: c.int(), Lease: c.int(), Serves: c.text(),
		StartedAt: c.int(), BeatAt: c.int(), Presence: c.text(),
	}
}

// jsonArray encodes a list for json_each.
func jsonArray(list []string) any {
	// JSON has no place for other bytes, and would make names of other things of them.
	list = slices.DeleteFunc(append([]string{}, list...), func(s string) bool { return !utf8.ValidString(s) })
	b, err := json.Marshal(list)
	if err != nil {
		panic("sqlite: encode a list of strings: " + err.Error()) // cannot happen
	}
	return string(b)
}

func jsonNumbers(list []int64) string {
	b, err := json.Marshal(list)
	if err != nil {
		panic("sqlite: encode a list of numbers: " + err.Error()) // cannot happen
	}
	return string(b)
}
