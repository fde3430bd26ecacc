package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// Archive is a place outside of the store where copies of runs are kept; package
// archive has a git repository and a directory. The engine writes a copy when a
// run has ended and while it waits, in the background: neither the run nor its
// result waits for that or depends on it. What could not be written is logged,
// and tried again by the next engine that is opened on the store.
//
// An Archive may have a method Off() bool, which Open calls once: when it returns
// true there is no archive, as if Options.Archive were nil. With a method
// StoreWord() string it says what log lines call it; without: git-store.
type Archive interface {
	// Store keeps a copy of a run in place of the one before. file is the run as
	// Export writes it; it must not be changed. When Store returns nil the copy
	// is durable. It is called concurrently, also for the same run, and possibly
	// with an earlier state of it after a later one, which must then change
	// nothing. ctx ends some time after Close was called, or after
	// ArchiveTimeout.
	Store(ctx context.Context, runID string, file []byte) error
}

// ArchiveTimeout bounds one write to the archive.
const ArchiveTimeout = time.Minute

// orNone returns the archive that a program has given, nil if it is none: what is
// kept nowhere must not be marked as archived, or retention would delete it.
func orNone(a Archive) (Archive, error) {
	s, ok := a.(interface{ Off() bool })
	if !ok {
		return a, nil
	}
	off := false
	if fault := guard.Call(func() { off = s.Off() }); fault != nil {
		return nil, fmt.Errorf("durable: Options.Archive: its method Off: %w: %w", fault, ErrInvalid)
	}
	if off {
		return nil, nil
	}
	return a, nil
}

// The pace of the archive.
const (
	// archiveEvery is how often the store is asked for runs that are not
	// archived, besides at the start.
	archiveEvery = time.Hour
	// archivePause and archiveShare bound how often a run that waits again and
	// again is written: after a pause, and for this share of the time at most.
	archivePause = time.Second
	archiveShare = 20
	// maxArchiveDue bounds the list of what is to be written; what is beyond, the
	// store is asked for.
	maxArchiveDue = 10_000
)

// archiver writes copies of an engine's runs. Its goroutines belong to it: Open
// starts them, Close ends them by finish.
type archiver struct {
	eng  *Engine
	to   Archive
	ctx  context.Context // of the writes
	stop context.CancelFunc
	work sync.WaitGroup
	wake chan struct{}
	look chan struct{}

	mu      sync.Mutex
	due     map[string]store.Status // runs to be written, with what they have come to
	later   map[string]time.Time    // others, which rest until then
	resting map[string]time.Time    // runs that were written while they waited: until when they are left alone
	busy    map[string]*archiving   // runs that are being written
	again   map[string]store.Status // of those, the ones that have come to something else meanwhile
	closing bool
}

// archiving is one write of a run to the archive.
type archiving struct {
	done  chan struct{} // closed when it is over; what follows is set then
	row   *store.Run    // the run as it was written, nil if there was nothing to write
	kept  bool          // the archive has it
	stale store.Status  // what the run has come to meanwhile, empty if nothing
}

// has reports whether the archive got all events of a run by this write.
func (w *archiving) has(row *store.Run) bool {
	return w != nil && w.kept && w.row.CreatedAt == row.CreatedAt && w.row.Last.Seq >= row.Last.Seq
}

func newArchiver(e *Engine, to Archive) *archiver {
	a := &archiver{eng: e, to: to, wake: make(chan struct{}, 1), look: make(chan struct{}, 1), due: map[string]store.Status{}, later: map[string]time.Time{}, resting: map[string]time.Time{}, busy: map[string]*archiving{}, again: map[string]store.Status{}}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// start begins to write, first of all what earlier processes left undone.
func (a *archiver) start(until context.Context) {
	a.work.Go(a.writeLoop)
	before := a.eng.now() // what comes later is wanted when it comes
	a.work.Go(func() { a.lookLoop(until, before) })
}

// finish lets what is due be written for some time, and then ends.
func (a *archiver) finish(grace time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	nudge(a.wake)
	done := make(chan struct{})
	go func() {
		a.work.Wait()
		close(done)
	}()
	if !waitFor(done, max(grace, afterGrace)) {
		a.mu.Lock()
		left := len(a.due) + len(a.later)
		a.mu.Unlock()
		a.stop()
		<-done
		if left > 0 {
			a.eng.log.Warn("durable: Close did not wait for the archive; the next start writes what is missing", "runs", left)
		}
	}
	a.stop()
}

// archivable reports whether a run in this status is archived.
func archivable(s store.Status) bool { return s == store.Waiting || s.Terminal() }

// want says that a run has come to a state that is to be archived. It never
// waits, for its callers hold locks.
func (a *archiver) want(id string, s store.Status) {
	if a == nil || !archivable(s) {
		return
	}
	a.mu.Lock()
	rest := a.resting[id]
	switch {
	case len(a.due)+len(a.later) >= maxArchiveDue:
		nudge(a.look)
	case !s.Terminal() && rest.After(time.Now()):
		a.later[id] = rest
	default:
		delete(a.later, id)
		a.due[id] = s
	}
	a.mu.Unlock()
	nudge(a.wake)
}

// landed looks at a change of an executed run that has become durable. The
// committer's mutex is held.
func (a *archiver) landed(r *run, c *store.Change) {
	if a == nil {
		return
	}
	status := r.waits.rowSays.status
	if c.Row != nil && c.Row.Status != nil {
		status = *c.Row.Status
	}
	a.want(r.id, status)
}

// next takes a run off the list, or says how long there is nothing to do; more
// is false when there will be nothing.
func (a *archiver) next(now time.Time) (id string, status store.Status, pause time.Duration, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.due {
		delete(a.due, id)
		if rest := a.resting[id]; !s.Terminal() && rest.After(now) && !a.closing {
			a.later[id] = rest // it was written after this was asked for
			continue
		}
		return id, s, 0, true
	}
	for id, until := range a.resting {
		if !until.After(now) {
			delete(a.resting, id)
		}
	}
	pause = archiveEvery
	for id, at := range a.later {
		if wait := at.Sub(now); wait > 0 && !a.closing {
			pause = min(pause, wait)
			continue
		}
		delete(a.later, id)
		return id, store.Waiting, 0, true
	}
	return "", "", pause, !a.closing
}

func (a *archiver) writeLoop() {
	for {
		id, status, pause, more := a.next(time.Now())
		switch {
		case !more || a.ctx.Err() != nil:
			return
		case id != "":
			a.write(a.ctx, id, status, false)
			continue
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-a.wake:
		case <-a.ctx.Done():
		}
		t.Stop()
	}
}

// lookLoop asks the store, at the start and from time to time, for what is not
// archived: by a process that was killed, by one without an archive, by a write
// that failed.
func (a *archiver) lookLoop(until context.Context, before store.Time) {
	t := time.NewTicker(archiveEvery)
	defer t.Stop()
	for {
		f := store.Filter{Statuses: []store.Status{store.Waiting, store.Completed, store.Failed, store.Cancelled}, Unarchived: true, OldestFirst: true, UpdatedTo: before}
		for row, err := range a.eng.runsOf(until, f) {
			if err != nil {
				if until.Err() == nil {
					a.eng.log.Warn("durable: the store could not be asked for runs to archive; they are looked for again", "retry_in_ms", millis(archiveEvery), "error", err)
				}
				break
			}
			if until.Err() != nil {
				break
			}
			if !a.wanted(row.ID) {
				a.write(a.ctx, row.ID, row.Status, false)
			}
		}
		select {
		case <-until.Done():
			return
		case <-t.C:
		case <-a.look:
		}
		before = a.eng.now()
	}
}

// wanted reports whether a run is about to be written, or is being written.
func (a *archiver) wanted(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, later := a.later[id]
	return later || a.due[id] != "" || a.busy[id] != nil
}

// begin takes the right to write a run that has come to status, which one at a
// time has; nil without it. With wait it waits for that, and returns the write
// that it has waited for, too; else whoever writes the run sees to it that it is
// written again.
func (a *archiver) begin(ctx context.Context, id string, status store.Status, wait bool) (mine, before *archiving) {
	for {
		a.mu.Lock()
		other := a.busy[id]
		if other == nil {
			mine = &archiving{done: make(chan struct{})}
			a.busy[id] = mine
		} else if !wait {
			a.again[id] = status
		}
		a.mu.Unlock()
		if mine != nil || !wait {
			return mine, before
		}
		select {
		case <-other.done:
			before = other
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// end gives the right back. rest is until when the run is left alone while it
// waits.
func (a *archiver) end(id string, w *archiving, rest time.Time) {
	a.mu.Lock()
	close(w.done)
	delete(a.busy, id)
	if !rest.IsZero() {
		a.resting[id] = rest
	}
	again := a.again[id]
	delete(a.again, id)
	a.mu.Unlock()
	a.want(id, w.stale)
	a.want(id, again)
}

// write archives a run, which has come to status, as it is now, unless that is
// done; with wait also when it is being written already. A failure is logged; the
// mark in the store then says that it is to be done again.
func (a *archiver) write(ctx context.Context, id string, status store.Status, wait bool) {
	w, before := a.begin(ctx, id, status, wait)
	if w == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, ArchiveTimeout)
	defer cancel()
	began := time.Now()
	err := a.copy(limited, id, w, before)
	var rest time.Time
	if w.row != nil && !w.row.Status.Terminal() {
		// Written again at the earliest when it has cost only a share of the time.
		rest = time.Now().Add(max(archivePause, archiveShare*time.Since(began)))
	}
	a.end(id, w, rest)
	if err == nil || ctx.Err() != nil {
		return // who has ended it knows
	}
	a.eng.log.aboutID(ctx, slog.LevelError, id, fmt.Sprintf("[durable] %s write failed for %s: %v", storeWord(a.to), id, err))
}

// storeWord is what a log line calls an archive: git-store, unless the archive has a
// method StoreWord that says otherwise.
func storeWord(to Archive) (word string) {
	own, ok := to.(interface{ StoreWord() string })
	if fault := guard.Call(func() {
		if ok {
			word = own.StoreWord()
		}
	}); fault != nil || word == "" {
		return "git-store"
	}
	return word
}

// copy writes a run and then its mark, unless the archive has all of its events,
// by the mark or by the write before. A crash in between writes it again, which
// changes nothing.
func (a *archiver) copy(ctx context.Context, id string, w, before *archiving) error {
	h, err := a.eng.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if errors.Is(err, store.ErrNotFound) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	row := &h.Run
	if !archivable(row.Status) || row.Code == CodeImporting || row.Last == nil || row.ArchivedSeq >= row.Last.Seq || before.has(row) {
		return nil // it goes on, and is wanted again when it has come to something
	}
	var file bytes.Buffer
	row, err = runfile.Export(ctx, a.eng.store, id, &file, storeError)
	if err != nil {
		return err
	}
	w.row = row
	fault := guard.Call(func() { err = a.to.Store(ctx, id, file.Bytes()) })
	if fault != nil {
		err = fmt.Errorf("the archive's method Store: %w", fault)
	}
	if err != nil {
		if a.isGone(ctx, row) {
			err = nil
		}
		return err
	}
	w.kept = true
	err = a.eng.commitOne(ctx, store.Change{
		RunID: id, Expect: store.Expect{Epoch: row.Epoch, Inbox: &row.Inbox}, Row: &store.RowPatch{ArchivedSeq: &row.Last.Seq},
	})
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrNotFound) {
		// It has gone on meanwhile, or was sent a message, which wakes nobody if
		// nobody waits for it: what it has come to is archived, too.
		w.stale, err = row.Status, nil
	}
	return err
}

// isGone reports whether a run was deleted, so that nothing is left to archive:
// another one may have its id.
func (a *archiver) isGone(ctx context.Context, row *store.Run) bool {
	h, err := a.eng.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	return errors.Is(err, store.ErrNotFound) || err == nil && h.Run.CreatedAt != row.CreatedAt
}

// waits archives a run that has begun to wait before it goes on waiting, if
// Options.ArchiveSync asks for that. A wait beside which the run goes on is
// archived with the next one.
func (a *archiver) waits(ctx context.Context, id string) {
	if a != nil && a.eng.options.ArchiveSync {
		a.write(ctx, id, store.Waiting, true)
	}
}
