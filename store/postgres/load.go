package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Load implements store.Store. The row, the branches and the inbox come from one
// snapshot.
func (s *Store) Load(ctx context.Context, runID string, c store.Cursor) (*store.History, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	if !holdable(runID) {
		return nil, sqlstore.NotFound(runID)
	}
	var h *store.History
	var no int64
	err := s.moment(ctx, func(tx *sqlx.Tx) (err error) {
		h, no, err = s.load(ctx, tx, runID, c)
		return err
	})
	if err != nil {
		return nil, described(fmt.Sprintf("load run %q", runID), err)
	}
	h.Events = func(func(store.Event, error) bool) {}
	if !c.NoEvents {
		h.Events = s.events(ctx, no, h, c)
	}
	return h, nil
}

// moment runs f in a read transaction that sees one moment. It may run f again:
// compatible servers refuse readers under SERIALIZABLE, and a connection may break.
func (s *Store) moment(ctx context.Context, f func(*sqlx.Tx) error) error {
	for try := 0; ; try++ {
		err := s.readOnce(ctx, f)
		if err == nil {
			return nil
		}
		if k := faultOf(err); try >= 5 || k == faultOther || k == faultData || pause(ctx, s.closing, jitter(try)) != nil {
			return err
		}
	}
}

func (s *Store) readOnce(ctx context.Context, f func(*sqlx.Tx) error) error {
	tx, err := s.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	// It only read, so nothing is lost.
	defer func() { _ = tx.Rollback() }()
	return f(tx)
}

func (s *Store) load(ctx context.Context, tx *sqlx.Tx, runID string, c store.Cursor) (*store.History, int64, error) {
	get := func(dest any, name string, args ...any) error {
		s.count(name)
		return tx.SelectContext(ctx, dest, s.sql.Text(name), args...)
	}
	var rows []sqlstore.RunRow
	if err := get(&rows, "run_by_id", runID); err != nil {
		return nil, 0, err
	}
	if len(rows) == 0 {
		return nil, 0, sqlstore.NotFound(runID)
	}
	no := rows[0].No
	h := &store.History{Run: rows[0].Run()}
	var last []sqlstore.EventRow
	if err := get(&last, "event_last", no); err != nil {
		return nil, 0, err
	}
	if len(last) > 0 {
		e := last[0].Event()
		h.Run.Last = &e
	}
	var branches []sqlstore.BranchRow
	if err := get(&branches, "branches_of", no); err != nil {
		return nil, 0, err
	}
	for i := range branches {
		h.Branches = append(h.Branches, branches[i].Branch())
	}
	if rows[0].Inbox > c.AfterMessage {
		var inbox []sqlstore.MessageRow
		if err := get(&inbox, "messages_of", no, c.AfterMessage); err != nil {
			return nil, 0, err
		}
		for i := range inbox {
			h.Inbox = append(h.Inbox, inbox[i].Message(runID))
		}
	}
	if rows[0].Attributes > 0 {
		if err := s.loadAttributes(ctx, tx, no, &h.Run); err != nil {
			return nil, 0, err
		}
	}
	s.numbers.put(runID, no)
	return h, no, nil
}

func (s *Store) loadAttributes(ctx context.Context, tx *sqlx.Tx, no int64, run *store.Run) error {
	s.count("attributes_of")
	rows, err := tx.QueryxContext(ctx, s.sql.Text("attributes_of"), ints(no))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&no, &name, &value); err != nil {
			return err
		}
		setAttribute(run, name, value)
	}
	return rows.Err()
}

// reading is what a range over events reads.
type reading struct {
	store    *Store
	no       int64
	after    int64
	tail     int
	until    int64 // Seq of the last event at the moment of the row
	lineage  store.Lineage
	all      bool
	branches []int32
}

func (s *Store) events(ctx context.Context, no int64, h *store.History, c store.Cursor) iter.Seq2[store.Event, error] {
	r := reading{store: s, no: no, after: min(max(c.After, 0), math.MaxInt64-maxChunk), tail: c.Tail, all: c.All}
	if h.Run.Last != nil {
		r.until = h.Run.Last.Seq
	}
	if !c.All {
		n := h.Run.Branch
		if c.Branch != nil {
			n = *c.Branch
		}
		r.lineage = store.LineageOf(h.Branches, n)
		r.branches = r.lineage.Branches()
	}
	return func(yield func(store.Event, error) bool) {
		// Close does not wait for a range: the caller may close the store in the
		// middle of it, and finds out at the next event.
		if err := s.enter(ctx); err != nil {
			yield(store.Event{}, err)
			return
		}
		s.calls.Done()
		r := r // each range starts at the beginning
		if err := r.read(ctx, yield); err != nil {
			yield(store.Event{}, described(fmt.Sprintf("read events of run %q", h.Run.ID), err))
		}
	}
}

// The width of the Seq windows in which events are read: narrow at first,
// because most runs have few events, then wider as long as events are small. The
// windows limit Seq and not rows: a server without statistics of a new log would
// read and sort the whole rest of it for each chunk.
const (
	firstChunk = 16
	maxChunk   = 2048
	fullChunk  = 4 << 20 // bytes
)

// read yields the events, chunk by chunk. It holds no connection while the
// caller works. It returns the error it ended with, unless yield ended it.
func (r *reading) read(ctx context.Context, yield func(store.Event, error) bool) error {
	after, limit := r.after, firstChunk
	if r.tail > 0 {
		err := r.on(ctx, func(q driver.QueryerContext) (err error) {
			after, err = r.tailFrom(ctx, q, r.after)
			return err
		})
		if err != nil {
			return err
		}
	}
	var c chunk
	for seen := after; ; {
		err := r.on(ctx, func(q driver.QueryerContext) error {
			return r.chunk(ctx, q, after, limit, &c)
		})
		if err != nil {
			return err
		}
		for i := range c.events {
			select {
			case <-r.store.closing:
				return store.ErrClosed
			default:
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(c.events[i], nil) {
				return nil
			}
		}
		seen = max(seen, c.last)
		after += int64(limit)
		// The log has no gaps, so a window that is not full is the last one.
		// When only some branches are read, a window proves nothing, so reading
		// goes on to the last event there was.
		if after >= r.until || r.all && c.rows < limit {
			return r.ended(ctx, seen)
		}
		switch {
		case c.bytes > fullChunk:
			limit = max(1, limit/4)
		case limit < maxChunk && c.bytes < fullChunk/8:
			limit = min(maxChunk, limit*4)
		}
	}
}

// on runs f with a driver connection, again if the connection breaks: through
// database/sql a long history takes twice as long.
func (r *reading) on(ctx context.Context, f func(driver.QueryerContext) error) error {
	for try := 0; ; try++ {
		err := r.once(ctx, f)
		if k := faultOf(err); err == nil || try >= 5 || (k != faultLost && k != faultBusy) {
			return err
		}
		if e := pause(ctx, r.store.closing, jitter(try)); e != nil {
			return e
		}
	}
}

func (r *reading) once(ctx context.Context, f func(driver.QueryerContext) error) error {
	conn, err := r.store.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(dc any) error { return f(dc.(driver.QueryerContext)) })
}

// chunk is a part of a log.
type chunk struct {
	events      []store.Event // that are wanted
	rows, bytes int           // that were read
	last        int64         // Seq of the last row
}

// chunk reads into c, whose memory is reused: the events already yielded were copied.
func (r *reading) chunk(ctx context.Context, q driver.QueryerContext, after int64, limit int, c *chunk) error {
	name, args := "events_up", []driverValue{r.no, after, min(after+int64(limit), r.until)}
	if !r.all {
		var branches array
		for _, n := range r.branches {
			branches.int(int64(n))
		}
		name, args = "events_of_branches", append(args, branches.value())
	}
	*c = chunk{events: c.events[:0]}
	return r.store.rows(ctx, q, name, args, func(v []driverValue) (bool, error) {
		row, err := scanEvent(v)
		if err != nil {
			return false, err
		}
		e := row.Event()
		c.rows++
		c.bytes += len(e.Data) + len(e.Payload)
		c.last = e.Seq
		if r.all || r.lineage.Has(&e) {
			c.events = append(c.events, e)
		}
		return true, nil
	})
}

// ended is called when no more events were found after Seq last. If the run had
// more when it was loaded, and they are not on another branch, the run was deleted.
func (r *reading) ended(ctx context.Context, last int64) error {
	if last >= r.until {
		return nil
	}
	var left int64
	err := r.on(ctx, func(q driver.QueryerContext) error {
		return r.store.rows(ctx, q, "runs_left", []driverValue{ints(r.no)}, func(v []driverValue) (bool, error) {
			left = v[0].(int64)
			return true, nil
		})
	})
	if err == nil && left == 0 {
		err = fmt.Errorf("it was deleted meanwhile: %w", store.ErrNotFound)
	}
	return err
}

// tailFrom returns the Seq after which the last n wanted events come. It goes
// backwards in windows, the first as narrow as possible, the next ones wider, to skip
// events of other branches. They are windows of Seq, not of rows: a server without
// statistics of a new log would read and sort all of it to find its last rows.
func (r *reading) tailFrom(ctx context.Context, q driver.QueryerContext, after int64) (int64, error) {
	n, top, width := r.tail, r.until+1, int64(max(r.tail, firstChunk))
	for low := r.until - width; ; low, width = low-width, min(4*width, maxChunk) {
		rows, from := 0, int64(0)
		err := r.store.rows(ctx, q, "places_down", []driverValue{r.no, max(low, after), top}, func(v []driverValue) (bool, error) {
			rows++
			e := store.Event{Seq: v[0].(int64), Branch: int32(v[1].(int64)), Key: v[2].(string)}
			top = e.Seq
			if n > 0 && (r.all || r.lineage.Has(&e)) {
				n--
				from = e.Seq
			}
			return n > 0, nil
		})
		switch {
		case err != nil:
			return after, err
		case n == 0:
			return from - 1, nil
		case rows == 0 || low <= after:
			return after, nil // there are fewer than n, or the run was deleted
		}
	}
}

// rows runs a query on a driver connection until row says that it has enough.
func (s *Store) rows(ctx context.Context, q driver.QueryerContext, name string, args []driverValue, row func([]driverValue) (bool, error)) error {
	s.count(name)
	rows, err := q.QueryContext(ctx, s.sql.Text(name), named(args))
	if err != nil {
		return err
	}
	dest := make([]driverValue, len(rows.Columns()))
	for {
		if err := rows.Next(dest); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return cmpErr(err, rows.Close(), ctx)
		}
		more, err := row(dest)
		if err != nil || !more {
			// Close drains what the server still sends.
			return cmpErr(err, rows.Close(), ctx)
		}
	}
}

// cmpErr returns the first error; if there is one and the context has ended, it
// returns the context's error instead.
func cmpErr(err, closing error, ctx context.Context) error {
	if err == nil {
		err = closing
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
