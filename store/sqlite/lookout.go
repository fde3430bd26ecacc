//go:build cgo

package sqlite

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/watch"
)

// A lookout looks out for what others do to the database, for one Notify call: for their
// notices, and for the requests of programs that know nothing of notices, for which it looks
// into the table when the WAL has changed, at most once in Options.Watch.
//
// It looks when the kernel says that a file was written. The kernel is trusted once it has
// told of one change of the file, on a local disk; until then, and where it never does, the
// lookout polls.
type lookout struct {
	s *Store

	notices reader
	watch   *watch.File // nil: the kernel does not watch the notices
	noticed chan struct{}
	heard   bool      // the kernel has told of a change of the notices
	began   time.Time // when it should have told of one
	looked  time.Time
	lookAt  time.Time // zero: when the kernel tells
	pause   time.Duration

	requests requestWatch
	wal      *watch.File
	written  chan struct{}
	walHeard bool
	walAt    time.Time
	version  int64         // of the data, as the writer's connection saw it
	patience time.Duration // how long a look waits for the writer
}

const (
	// watchFirst is the pause after something happened; it doubles from there, while the
	// lookout polls.
	watchFirst = 2 * time.Millisecond
	// watchLeast is the least time between two looks at the notices, so that processes that
	// write all the time do not cost more than that.
	watchLeast = time.Millisecond
	// proofTime is how long the kernel may take to tell of a change.
	proofTime = time.Second
	// writerWait is how long a look waits for the writer, to learn whether only we have
	// written: the kernel tells of a commit of ours before it has ended.
	writerWait = 20 * time.Millisecond
)

func newLookout(s *Store) *lookout {
	o := &lookout{s: s, notices: reader{n: &s.listeners.out}, noticed: make(chan struct{}, 1), written: make(chan struct{}, 1), pause: watchFirst, patience: writerWait}
	if s.listeners.out.path == "" {
		return o // alone
	}
	o.version, _ = o.dataVersion()
	o.open()
	now := time.Now()
	o.lookAt, o.walAt = now.Add(o.pause), now.Add(s.opts.Watch)
	return o
}

// open opens the file of notices, and has the kernel watch it.
func (o *lookout) open() {
	o.unwatch()
	err := o.notices.open()
	if err == nil && localDisk(filepath.Dir(o.s.file)) {
		if o.watch, err = watch.Open(o.notices.n.path, o.noticed); err == nil {
			o.wal, err = watch.Open(o.s.file+"-wal", o.written)
		}
	}
	if o.watch == nil {
		o.tellPolling(err)
		return
	}
	// A change that others do not take for a notice shows whether the kernel tells.
	o.began = time.Now()
	_ = os.Chtimes(o.notices.n.path, o.began, o.began) // if it fails, a notice will show it
}

func (o *lookout) unwatch() {
	for _, f := range []*watch.File{o.watch, o.wal} {
		if f != nil {
			_ = f.Close() // nothing can be lost
		}
	}
	o.watch, o.wal, o.heard, o.walHeard = nil, nil, false, false
}

func (o *lookout) close() {
	o.unwatch()
	o.notices.close()
}

// tellPolling says once for each Store that it polls.
func (o *lookout) tellPolling(err error) {
	o.s.listeners.polls.Do(func() {
		slog.Info("sqlite: the kernel does not tell of changes of this file; it is polled for those of other processes", "file", o.s.name, "every_ms", float64(o.s.opts.Watch.Microseconds())/1000, "error", err)
	})
}

// hear notes that the kernel has told of a change of the notices.
func (o *lookout) hear() {
	o.heard = true
	o.lookAt = o.looked.Add(watchLeast)
}

// hearWAL notes that the kernel has told of a change of the WAL. It tells of no other until
// this one was looked into: our own commits change it all the time.
func (o *lookout) hearWAL() {
	if o.wal == nil {
		return // an old one told
	}
	o.walHeard = true
	o.wal.Disarm()
	o.walAt = o.requests.last.Add(o.s.opts.Watch)
}

// timer returns a timer for the next look.
func (o *lookout) timer() *time.Timer {
	t := time.NewTimer(time.Hour)
	o.reset(t)
	return t
}

func (o *lookout) reset(t *time.Timer) {
	next := o.lookAt
	if next.IsZero() || !o.walAt.IsZero() && o.walAt.Before(next) {
		next = o.walAt
	}
	if next.IsZero() {
		t.Stop()
		return
	}
	t.Reset(max(0, time.Until(next)))
}

// look does what is due.
func (o *lookout) look(ctx context.Context, fn func(store.Notice)) {
	now := time.Now()
	if !o.lookAt.IsZero() && !now.Before(o.lookAt) {
		o.looked, o.lookAt = now, time.Time{}
		if o.changed(fn) {
			o.pause = watchFirst
		} else {
			o.pause = min(2*o.pause, o.s.opts.Watch)
		}
		if !o.heard {
			o.lookAt = now.Add(o.pause)
			if o.watch != nil && now.Sub(o.began) > proofTime {
				o.tellPolling(nil)
			}
		}
	}
	if !o.walAt.IsZero() && !now.Before(o.walAt) {
		o.walAt = time.Time{}
		o.lookForRequests(ctx, now, fn)
		if !o.walHeard {
			o.walAt = now.Add(o.s.opts.Watch)
		}
	}
}

// changed passes on the notices of others, and reports whether there were any.
func (o *lookout) changed(fn func(store.Notice)) bool {
	if !o.notices.same() {
		lost := o.notices.file != nil
		if o.open(); lost && o.notices.file != nil {
			fn(store.Notice{}) // some may have been written to the file that is gone
		}
		return lost
	}
	news := o.notices.read()
	news.Tell(fn)
	return !news.Empty()
}

// lookForRequests looks for requests if others may have inserted some.
func (o *lookout) lookForRequests(ctx context.Context, now time.Time, fn func(store.Notice)) {
	changed := o.walHeard
	if o.walHeard {
		o.requests.last = now
		// First, so that the kernel tells of what comes after the look.
		if o.wal.Arm() != nil {
			o.walHeard = false // it is polled from now on
		}
	} else {
		changed = o.requests.changed(o.s)
	}
	if !changed {
		return
	}
	if version, known := o.dataVersion(); known {
		if version == o.version {
			return // only we have written
		}
		o.version = version
	}
	if waiting, err := o.s.requestsWait(ctx, 0); err == nil && waiting {
		fn(store.Notice{Requests: true})
	}
}

// dataVersion returns a number that changes when another connection than the writer commits.
// It is not known if the writer stays in use.
func (o *lookout) dataVersion() (version int64, known bool) {
	s := o.s
	wait := time.NewTimer(o.patience)
	defer wait.Stop()
	select {
	case c := <-s.writer:
		defer func() { s.writer <- c }()
		if c.raw == nil {
			return 0, false
		}
		err := c.ask("PRAGMA data_version", func(row []driver.Value) { version, known = row[0].(int64) })
		return version, known && err == nil
	case <-wait.C:
		return 0, false
	}
}
