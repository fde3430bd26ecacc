//go:build cgo

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/pack"
)

// wanted returns the test for the branches that c asks for.
func wanted(h *store.History, c store.Cursor) func(*store.Event) bool {
	n := h.Run.Branch
	if c.Branch != nil {
		n = *c.Branch
	}
	if c.All {
		return func(*store.Event) bool { return true }
	}
	return store.LineageOf(h.Branches, n).Has
}

// A chunk ends after this many events or this many bytes of them.
const (
	chunkEvents = 512
	chunkBytes  = 4 << 20
)

// lastSeq returns the Seq of the last event at the moment of h.
func lastSeq(h *store.History) int64 {
	if h.Run.Last == nil {
		return 0
	}
	return h.Run.Last.Seq
}

// events yields the events up to the last one of f. The first range hands out those that were
// read along with the row; a later one reads them again. It reads the others in chunks and holds
// no connection in between, however long the caller takes.
func (s *Store) events(ctx context.Context, f *found, c store.Cursor) iter.Seq2[store.Event, error] {
	want, last, id := wanted(f.h, c), lastSeq(f.h), f.h.Run.ID
	return func(yield func(store.Event, error) bool) {
		after, before := span(f.no)
		after, before = max(after, place(f.no, min(max(c.After, 0), maxSeq))), min(before, place(f.no, last)+1)
		if c.Tail > 0 {
			s.tail(ctx, f.no, id, after, before, c.Tail, want, yield)
			return
		}
		for chunk, err := range s.chunks(ctx, f.no, f.head.Swap(nil), after, before) {
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			for i := range chunk {
				after = place(f.no, chunk[i].Seq)
				if want(&chunk[i]) && !yield(chunk[i], nil) {
					return
				}
			}
		}
		// The log has no gaps, so fewer events than expected mean that it ended
		// before its last event.
		if after < before-1 {
			if err := s.stillThere(ctx, f.no, id); err != nil {
				yield(store.Event{}, err)
			}
		}
	}
}

// chunks yields first, if there is one, and then what is behind it.
func (s *Store) chunks(ctx context.Context, no int64, first *prefix, after, before int64) iter.Seq2[[]store.Event, error] {
	return func(yield func([]store.Event, error) bool) {
		if first != nil {
			n := len(first.events)
			if err := s.usable(ctx); !yield(first.events, err) || err != nil || first.whole {
				return
			}
			if n > 0 {
				after = place(no, first.events[n-1].Seq)
			}
		}
		var chunk []store.Event
		for more, packed := true, true; more; {
			var err error
			if packed {
				upto := min(before, after+chunkEvents+1)
				chunk, _, err = s.chunk(ctx, s.q.eventsPacked, after, upto, chunkEvents, chunk[:0])
				// If some are not among them, the other statement reads on: one is large, or
				// the log ends before its last event.
				packed = after+int64(len(chunk)) == upto-1
				more = !packed || upto < before
			} else {
				chunk, more, err = s.chunk(ctx, s.q.eventsUp, after, before, chunkEvents, chunk[:0])
				packed = true
			}
			if !yield(chunk, err) || err != nil {
				return
			}
			if n := len(chunk); n > 0 {
				after = place(no, chunk[n-1].Seq)
			}
		}
	}
}

// stillThere returns an error if the run was deleted, whether or not another
// run has its id now.
func (s *Store) stillThere(ctx context.Context, no int64, id string) error {
	return s.read(ctx, "look whether run "+id+" is there", func(tx *sqlx.Tx) error {
		var rows []sqlstore.RunRow
		if err := s.selectAll(ctx, tx, &rows, s.q.runByNumber, no); err != nil || len(rows) > 0 {
			return err
		}
		return fmt.Errorf("sqlite: run %q was deleted while its events were read: %w", id, store.ErrNotFound)
	})
}

// tail reads backwards until it has n wanted events.
func (s *Store) tail(ctx context.Context, no int64, id string, after, before int64, n int, want func(*store.Event) bool, yield func(store.Event, error) bool) {
	var last, chunk []store.Event
	// Mostly all are wanted. If few are, it reads more each time.
	for more, most := true, n; more && len(last) < n; most = 2 * min(most, chunkEvents) {
		var err error
		if chunk, more, err = s.chunk(ctx, s.q.eventsDown, after, before, most, chunk[:0]); err != nil {
			yield(store.Event{}, err)
			return
		}
		for i := range chunk {
			before = place(no, chunk[i].Seq)
			if want(&chunk[i]) && len(last) < n {
				last = append(last, chunk[i])
			}
		}
	}
	if len(last) < n && before > after+1 {
		if err := s.stillThere(ctx, no, id); err != nil {
			yield(store.Event{}, err)
			return
		}
	}
	slices.Reverse(last)
	for _, e := range last {
		if !yield(e, nil) {
			return
		}
	}
}

// usable reports why events can no longer be read.
func (s *Store) usable(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.leave()
	return nil
}

// errEnough stops reading a chunk.
var errEnough = errors.New("sqlite: enough")

// chunk reads events between two places, at most most of them; more says that there may be others.
// It reads the rows from the driver, because database/sql would double the cost.
func (s *Store) chunk(ctx context.Context, q *query, after, before int64, most int, into []store.Event) (chunk []store.Event, more bool, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, false, err
	}
	defer s.leave()
	open, err := s.shut(ctx)
	if err != nil {
		return nil, false, err
	}
	defer open()
	conn, err := s.readers.Connx(ctx)
	if err != nil {
		return nil, false, s.fail("read events", err, false)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s.counts.statements.Add(1)
	s.counts.reads.Add(1)
	size := 0
	err = conn.Raw(func(dc any) error {
		return rawQuery(dc, q.text, func(row []driver.Value) (err error) {
			c := cells{row: row}
			if q == s.q.eventsPacked {
				into, err = pack.Events(c.bytes(), after&maxSeq, into)
				return err
			}
			e := c.event()
			into = append(into, e)
			size += len(e.Data) + len(e.Payload)
			if len(into) >= min(most, chunkEvents) || size >= chunkBytes {
				return errEnough
			}
			return nil
		}, after, before)
	})
	switch {
	case errors.Is(err, errEnough):
		return into, true, nil
	case err != nil:
		return nil, false, s.fail("read events", err, false)
	}
	return into, false, s.files.Gone()
}

func rawQuery(dc any, text string, each func([]driver.Value) error, args ...any) (err error) {
	c, err := pooledOf(dc)
	if err != nil {
		return err
	}
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	st, err := c.PrepareContext(context.Background(), text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	ds, ok := st.(driver.StmtQueryContext)
	if !ok {
		return fmt.Errorf("the driver returned a %T", st)
	}
	rows, err := ds.QueryContext(context.Background(), named)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return eachRow(rows, each)
}
