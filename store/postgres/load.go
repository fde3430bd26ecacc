package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// readAgain runs f, which only reads, again if a connection breaks or the server refuses it under SERIALIZABLE.
func (s *Store) readAgain(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil {
			return nil
		}
		if try >= 5 || faultOf(err).lasts() || pause(ctx, s.closing, jitter(try)) != nil {
			return err
		}
	}
}

// reading is what a range over events reads.
type reading struct {
	store    *Store
	no       int64
	after    int64
	tail     int   // the range ends with the last ones; 0: after says where it begins
	until    int64 // Seq of the last event at the moment of the row
	lineage  store.Lineage
	all      bool
	branches []int32
	head     []store.Event // the first events after after, of all branches
}

// events yields the events that were loaded with the row, and then those behind them.
// The first range hands the loaded ones out; a later one reads them again.
func (s *Store) events(ctx context.Context, f *found, c store.Cursor) iter.Seq2[store.Event, error] {
	h := f.h
	r := reading{store: s, no: f.no, after: c.After, tail: c.Tail, all: c.All}
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
	if low := r.until - int64(r.tail); r.tail > 0 && (low <= r.after || r.wants(f.head)) {
		r.after, r.tail = max(r.after, low), 0
	}
	if r.tail == 0 {
		head := f.head
		f.loaded.Store(&head)
	}
	id := h.Run.ID
	return func(yield func(store.Event, error) bool) {
		// Close does not wait for a range: the caller may close the store in the
		// middle of it, and finds out at the next event.
		if err := s.enter(ctx); err != nil {
			yield(store.Event{}, err)
			return
		}
		s.calls.Done()
		r := r // each range starts at the beginning
		if head := f.loaded.Swap(nil); head != nil {
			r.head = *head
		}
		if err := r.read(ctx, yield); err != nil {
			yield(store.Event{}, described(fmt.Sprintf("read events of run %q", id), err))
		}
	}
}

// wants reports whether head has all events behind r.after, and each is wanted. Without a record of a
// branch there may be events of one: the record can be lost.
func (r *reading) wants(head []store.Event) bool {
	foreign := func(e store.Event) bool { return !r.lineage.Has(&e) }
	return r.all || len(head) > 0 && head[len(head)-1].Seq == r.until && !slices.ContainsFunc(head, foreign)
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
		err := r.store.reading(ctx, func(w *wire) (err error) {
			after, err = r.tailFrom(w, r.after)
			return err
		})
		if err != nil {
			return err
		}
	}
	if n := len(r.head); n > 0 {
		if done, err := r.give(ctx, r.head, yield); done || err != nil {
			return err
		}
		if after = r.head[n-1].Seq; after >= r.until {
			return nil
		}
		limit = 4 * firstChunk
	}
	var c chunk
	for seen := after; ; {
		err := r.store.reading(ctx, func(w *wire) error {
			return r.chunk(w, after, limit, &c)
		})
		if err != nil {
			return err
		}
		if done, err := r.give(ctx, c.events, yield); done || err != nil {
			return err
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
			limit = min(maxChunk, limit*8)
		}
	}
}

// give yields those of the events that are wanted. done: the caller wants no more.
func (r *reading) give(ctx context.Context, events []store.Event, yield func(store.Event, error) bool) (done bool, err error) {
	for i := range events {
		select {
		case <-r.store.closing:
			return true, store.ErrClosed
		default:
		}
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if (r.all || r.lineage.Has(&events[i])) && !yield(events[i], nil) {
			return true, nil
		}
	}
	return false, nil
}

// chunk is a part of a log.
type chunk struct {
	events      []store.Event
	small       sqlstore.Room
	rows, bytes int   // that were read
	last        int64 // Seq of the last row
}

// chunk reads into c, whose memory is reused: the events already yielded were copied.
func (r *reading) chunk(w *wire, after int64, limit int, c *chunk) error {
	name, args := "events_up", []driverValue{r.no, after, min(after+int64(limit), r.until)}
	if !r.all {
		var branches array
		for _, n := range r.branches {
			branches.int(int64(n))
		}
		name, args = "events_of_branches", append(args, branches.value())
	}
	*c = chunk{events: slices.Grow(c.events[:0], int(max(0, min(int64(limit), r.until-after)))), small: c.small}
	return w.query(name, func(v []driverValue) error {
		row, err := scanEventInto(v, &c.small)
		if err != nil {
			return err
		}
		e := row.Event()
		c.rows++
		c.bytes += len(e.Data) + len(e.Payload)
		c.last = e.Seq
		c.events = append(c.events, e)
		return nil
	}, args...)
}

// ended is called when no more events were found after Seq last. If the run had
// more when it was loaded, and they are not on another branch, the run was deleted.
func (r *reading) ended(ctx context.Context, last int64) error {
	if last >= r.until {
		return nil
	}
	var left int64
	err := r.store.reading(ctx, func(w *wire) error {
		return w.query("runs_left", func(v []driverValue) error {
			left = v[0].(int64)
			return nil
		}, ints(r.no))
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
func (r *reading) tailFrom(w *wire, after int64) (int64, error) {
	n, top, width := r.tail, r.until+1, int64(max(r.tail, firstChunk))
	for low := r.until - width; ; low, width = low-width, min(4*width, maxChunk) {
		rows, from := 0, int64(0)
		err := w.query("places_down", func(v []driverValue) error {
			if rows++; n == 0 {
				return nil
			}
			e := store.Event{Seq: v[0].(int64), Branch: int32(v[1].(int64)), Key: v[2].(string)}
			top = e.Seq
			if n > 0 && (r.all || r.lineage.Has(&e)) {
				n--
				from = e.Seq
			}
			return nil
		}, r.no, max(low, after), top)
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
