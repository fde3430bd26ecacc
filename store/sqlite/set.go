//go:build cgo

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Loader = (*Store)(nil)

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, runID string, c store.Cursor) (*store.History, error) {
	l := s.LoadAll(ctx, []store.RunCursor{{RunID: runID, Cursor: c}})[0]
	return l.History, l.Err
}

// maxSet bounds how many runs one read transaction loads.
const maxSet = 100

// LoadAll implements store.Loader: one read transaction for each hundred runs, and so one
// moment. It reads the first events along with the rows.
func (s *Store) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	return sqlstore.LoadInSets(loads, maxSet, func(loads []store.RunCursor, into []store.Loaded) { s.loadSet(ctx, loads, into) })
}

// found is a run that was loaded.
type found struct {
	h    *store.History
	no   int64
	head atomic.Pointer[prefix] // until a range has handed it out
}

// prefix is the first events that a cursor reads, of all branches.
type prefix struct {
	events []store.Event
	whole  bool // there are no others
}

// The events read along with a row end after this many, or this many bytes of them.
const (
	headEvents = 128
	headBytes  = 64 << 10
)

func (s *Store) loadSet(ctx context.Context, loads []store.RunCursor, into []store.Loaded) {
	what := "load run " + loads[0].RunID
	if len(loads) > 1 {
		what = fmt.Sprintf("load run %s and %d more", loads[0].RunID, len(loads)-1)
	}
	list := make([]*found, len(loads))
	err := s.snapshot(ctx, what, func(sn *snapshot) (err error) {
		for i := range loads {
			if err := ctx.Err(); err != nil {
				return err
			}
			if list[i], err = sn.load(loads[i].RunID, loads[i].Cursor); err != nil {
				return err
			}
		}
		return nil
	})
	if len(loads) > 1 && (errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrInvalid)) {
		for i := range loads { // what one cannot be read for does not concern the others
			s.loadSet(ctx, loads[i:i+1], into[i:i+1])
		}
		return
	}
	for i := range loads {
		l := &loads[i]
		switch f := list[i]; {
		case err != nil:
			into[i].Err = err
		case f == nil:
			into[i].Err = sqlstore.NotFound(l.RunID)
		default:
			if f.h.Events = func(func(store.Event, error) bool) {}; !l.NoEvents {
				f.h.Events = s.events(ctx, f, l.Cursor)
			}
			into[i].History = f.h
		}
	}
}

// load reads a run, nil if there is none.
func (sn *snapshot) load(id string, c store.Cursor) (*found, error) {
	var row sqlstore.RunRow
	ok := false
	err := sn.query(sn.s.q.runByID, func(c *cells) error {
		row, ok = c.run(), true
		return nil
	}, id)
	if err != nil || !ok {
		return nil, err
	}
	f := &found{h: &store.History{Run: row.Run()}, no: row.No}
	if row.Attributes > 0 {
		f.h.Run.Attributes = make(map[string]string, row.Attributes)
		err := sn.query(sn.s.q.attributesOf, func(c *cells) error {
			c.next()
			name := c.text()
			f.h.Run.Attributes[name] = c.text()
			return nil
		}, jsonNumbers([]int64{row.No}))
		if err != nil {
			return nil, err
		}
	}
	if err := sn.loadBranches(f); err != nil {
		return nil, err
	}
	after, before := span(row.No)
	if row.Inbox > c.AfterMessage {
		err := sn.query(sn.s.q.messagesOf, func(c *cells) error {
			m := sqlstore.MessageRow{Seq: c.int(), Kind: c.text(), Name: c.text(), ID: c.text(), At: c.int(), Data: c.bytes(), Payload: c.bytes()}
			f.h.Inbox = append(f.h.Inbox, m.Message(id))
			return nil
		}, place(row.No, min(max(c.AfterMessage, 0), maxSeq)), before)
		if err != nil {
			return nil, err
		}
	}
	return f, sn.loadEvents(f, c, after, before)
}

func (sn *snapshot) loadBranches(f *found) error {
	return sn.query(sn.s.q.branchesOf, func(c *cells) error {
		b := sqlstore.BranchRow{
			N: c.int32(), Parent: c.int32(), Generation: c.int32(), Cutoff: c.int(), CutScope: c.text(), Reason: c.text(), CreatedAt: c.int(),
		}
		f.h.Branches = append(f.h.Branches, b.Branch())
		return nil
	}, f.no)
}

// loadEvents reads the last event, and the first ones that c asks for.
func (sn *snapshot) loadEvents(f *found, c store.Cursor, after, before int64) error {
	if !c.NoEvents && c.Tail <= 0 {
		var h prefix
		var err error
		if h.events, h.whole, err = sn.firstEvents(max(after, place(f.no, min(max(c.After, 0), maxSeq))), before); err != nil {
			return err
		}
		f.head.Store(&h)
		if n := len(h.events); h.whole && n > 0 {
			last := h.events[n-1]
			last.Data, last.Payload = clone(last.Data), clone(last.Payload)
			f.h.Run.Last = &last
			return nil
		}
	}
	return sn.query(sn.s.q.eventLast, func(c *cells) error {
		e := c.event()
		f.h.Run.Last = &e
		return nil
	}, after, before)
}

// clone copies b; nil stays nil.
func clone(b []byte) []byte { return append(b[:0:0], b...) }

func (sn *snapshot) firstEvents(after, before int64) (list []store.Event, whole bool, err error) {
	size := 0
	err = sn.query(sn.s.q.eventsUp, func(c *cells) error {
		e := c.event()
		if size += len(e.Data) + len(e.Payload); len(list) == headEvents || size > headBytes {
			return errEnough
		}
		list = append(list, e)
		return nil
	}, after, before)
	if errors.Is(err, errEnough) {
		return list, false, nil
	}
	return list, err == nil, err
}

// snapshot reads in one read transaction on a driver connection, because database/sql would
// double the cost.
type snapshot struct {
	s  *Store
	dc *pooled
}

func (s *Store) snapshot(ctx context.Context, what string, f func(*snapshot) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	open, err := s.shut(ctx)
	if err != nil {
		return err
	}
	defer open()
	conn, err := s.readers.Connx(ctx)
	if err != nil {
		return s.fail(what, err, false)
	}
	var ferr error
	err = conn.Raw(func(dc any) error {
		c, err := pooledOf(dc)
		if err != nil {
			return err
		}
		if _, ferr = c.ExecContext(context.Background(), "BEGIN", nil); ferr != nil {
			return nil
		}
		ferr = f(&snapshot{s: s, dc: c})
		// It has written nothing, so it only has to end.
		_, _ = c.ExecContext(context.Background(), "ROLLBACK", nil)
		return nil
	})
	if err = errors.Join(err, conn.Close()); ferr == nil {
		ferr = err
	}
	if ferr != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return s.fail(what, ferr, false)
}

func (sn *snapshot) query(q *query, each func(*cells) error, args ...any) error {
	sn.s.counts.statements.Add(1)
	sn.s.counts.reads.Add(1)
	var c cells
	return rawQuery(sn.dc, q.text, func(row []driver.Value) error {
		c = cells{row: row}
		return each(&c)
	}, args...)
}
