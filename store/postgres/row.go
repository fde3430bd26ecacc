package postgres

import (
	"database/sql/driver"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

type driverValue = driver.Value

// runColumns is the number of columns in sqlstore.RunColumns, and eventColumns
// that of an event with its run number.
const (
	runColumns   = 36
	eventColumns = 15
)

// scanRun reads a row in the order of sqlstore.RunColumns.
func scanRun(v []driverValue) (r sqlstore.RunRow, err error) {
	if len(v) < runColumns {
		return r, fmt.Errorf("postgres: a run has %d columns, not %d", runColumns, len(v))
	}
	sc := scanner{v: v}
	r = sqlstore.RunRow{
		No: sc.int(), ID: sc.text(), Workflow: sc.text(), InitialVersion: sc.text(), Parent: sc.text(), ParentKey: sc.text(),
		ForkedFrom: sc.text(), InputHash: sc.bytes(), Queue: sc.text(), Partition: sc.text(), Dedup: sc.text(), Trace: sc.text(),
		CreatedAt: sc.int(), Version: sc.text(), Status: sc.text(), Code: sc.text(), Reason: sc.text(), Recoverable: sc.bool(),
		Owner: sc.text(), Epoch: sc.int(), Branch: int32(sc.int()), Generation: int32(sc.int()), Resumes: int32(sc.int()),
		Strikes: int32(sc.int()), Priority: int32(sc.int()), Inbox: sc.int(), Seen: sc.int(), CancelAsked: sc.bool(),
		Paused: sc.bool(), ArchivedSeq: sc.int(), StartedAt: sc.int(), UpdatedAt: sc.int(), EndedAt: sc.int(), WakeAt: sc.int(),
		DeadlineAt: sc.int(), Attributes: sc.int(),
	}
	return r, sc.err
}

// scanEvent reads an event, with its run number before it.
func scanEvent(v []driverValue) (r sqlstore.EventRow, err error) { return scanEventInto(v, nil) }

// scanEventInto is scanEvent for one of many events, whose small values share the memory of a room.
func scanEventInto(v []driverValue, small *sqlstore.Room) (r sqlstore.EventRow, err error) {
	if len(v) < eventColumns {
		return r, fmt.Errorf("postgres: an event has %d columns, not %d", eventColumns, len(v))
	}
	sc := scanner{v: v, small: small}
	r = sqlstore.EventRow{
		No: sc.int(), Seq: sc.int(), Epoch: sc.int(), Branch: int32(sc.int()), Type: sc.text(), Key: sc.text(), Attempt: int32(sc.int()),
		Ordinal: int32(sc.int()), At: sc.int(), Took: sc.int(), Active: sc.int(), Steps: int32(sc.int()), Data: sc.textBytes(),
		Payload: sc.bytes(), Sum: sc.int(),
	}
	return r, sc.err
}

// scanner takes values off a row, left to right.
type scanner struct {
	v     []driverValue
	i     int
	err   error
	small *sqlstore.Room // of the bytes
}

func take[T any](s *scanner) (t T) {
	v := s.v[s.i]
	s.i++
	if v == nil {
		return t
	}
	t, ok := v.(T)
	if !ok && s.err == nil {
		s.err = fmt.Errorf("postgres: column %d is a %T, not a %T: %w", s.i, v, t, store.ErrCorrupt)
	}
	return t
}

func (s *scanner) int() int64   { return take[int64](s) }
func (s *scanner) text() string { return take[string](s) }
func (s *scanner) bool() bool   { return take[bool](s) }

// bytes returns a copy: in the binary format the driver hands out its read
// buffer, which the next row overwrites.
func (s *scanner) bytes() []byte { return s.small.Clone(take[[]byte](s)) }

func (s *scanner) textBytes() []byte {
	if s.v[s.i] == nil {
		s.i++
		return nil
	}
	return []byte(s.text())
}

func appendEventValues(list []driverValue, e *store.Event) []driverValue {
	for _, v := range sqlstore.AppendEventValues(make([]any, 0, 12), e) {
		list = append(list, v)
	}
	return list
}

// addRun adds all columns of a row to insert, in the order of
// sqlstore.RunColumns without no.
func addRun(a []array, r *store.Run) {
	for i, v := range sqlstore.RunValues(r) {
		switch v := v.(type) {
		case string:
			a[i].text(v)
		case int64:
			a[i].int(v)
		case bool:
			a[i].bool(v)
		case []byte:
			a[i].bytes(v)
		}
	}
}

// addPatched adds the columns of a row that can change, as update_runs has
// them. attributes is how many the run has.
func addPatched(a *[24]array, no int64, r *store.Run, attributes int64) {
	a[0].int(no)
	a[1].text(r.Version)
	a[2].text(string(r.Status))
	a[3].text(r.Code)
	a[4].text(r.Reason)
	a[5].bool(r.Recoverable)
	a[6].text(r.Owner)
	for i, n := range []int64{
		r.Epoch, int64(r.Branch), int64(r.Generation), int64(r.Resumes), int64(r.Strikes), int64(r.Priority), r.Inbox, r.Seen,
	} {
		a[7+i].int(n)
	}
	a[15].bool(r.CancelAsked)
	a[16].bool(r.Paused)
	for i, n := range []int64{
		r.ArchivedSeq, int64(r.StartedAt), int64(r.UpdatedAt), int64(r.EndedAt), int64(r.WakeAt), int64(r.DeadlineAt), attributes,
	} {
		a[17+i].int(n)
	}
}
