package archiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// writing is one write of a run to the archive.
type writing struct {
	done  chan struct{} // closed when it is over; the following fields are set by then
	row   *store.Run    // the run as it was written, nil if there was nothing to write
	kept  bool          // the archive has it
	stale store.Status  // the status the run has reached meanwhile, empty if none
}

// has reports whether this write gave the archive all events of a run.
func (w *writing) has(row *store.Run) bool {
	return w != nil && w.kept && w.row.CreatedAt == row.CreatedAt && w.row.Last.Seq >= row.Last.Seq
}

// begin takes the exclusive right to write a run that has reached status; mine is
// nil without it. With wait it waits for a write in progress, and also returns that
// write. Without wait, the writer in progress will write the run again.
func (a *Archiver) begin(ctx context.Context, id string, status store.Status, wait bool) (mine, before *writing) {
	for {
		a.mu.Lock()
		other := a.busy[id]
		if other == nil {
			mine = &writing{done: make(chan struct{})}
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

// end returns the right. Until rest, the run is left alone while it waits.
func (a *Archiver) end(id string, w *writing, rest time.Time) {
	a.mu.Lock()
	close(w.done)
	delete(a.busy, id)
	if !rest.IsZero() {
		a.resting[id] = rest
	}
	again := a.again[id]
	delete(a.again, id)
	a.mu.Unlock()
	a.Want(id, w.stale)
	a.Want(id, again)
}

// Waits archives a run that has begun to wait, if Options.Sync asks for that, and
// returns when that is done. A wait during which the run goes on is archived with
// the next one.
func (a *Archiver) Waits(ctx context.Context, id string) {
	if a != nil && a.atWaits {
		a.write(ctx, id, store.Waiting, true)
	}
}

// write archives a run that has reached status, as it is now, unless that has been
// done; with wait also if it is already being written. A failure is logged; the mark
// in the store then says that the run must be archived again.
func (a *Archiver) write(ctx context.Context, id string, status store.Status, wait bool) {
	w, before := a.begin(ctx, id, status, wait)
	if w == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	began := time.Now()
	err := a.copy(limited, id, w, before)
	var rest time.Time
	if w.row != nil && !w.row.Status.Terminal() {
		// Do not write it again before this write has cost no more than its share of
		// the time.
		rest = time.Now().Add(max(minRest, share*time.Since(began)))
	}
	a.end(id, w, rest)
	if err == nil || ctx.Err() != nil {
		return // the caller that ended it knows
	}
	a.aboutID(ctx, slog.LevelError, id, fmt.Sprintf("[durable] %s write failed for %s: %v", storeWord(a.to), id, err))
}

// storeWord is what a log line calls an archive: git-store, unless the archive has a
// method StoreWord that says otherwise.
func storeWord(to Target) (word string) {
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

// copy writes a run and then its mark, unless the mark or the previous write shows
// that the archive has all of its events. After a crash in between, the run is
// written again, which changes nothing.
func (a *Archiver) copy(ctx context.Context, id string, w, before *writing) error {
	h, err := a.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if errors.Is(err, store.ErrNotFound) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	row := &h.Run
	if !archivable(row.Status) || row.Code == history.CodeImporting || row.Last == nil || row.ArchivedSeq >= row.Last.Seq || before.has(row) {
		return nil // it is running again, and Want will report its next state
	}
	var file bytes.Buffer
	row, err = runfile.Export(ctx, a.store, id, &file, a.known)
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
	err = a.commit(ctx, store.Change{
		RunID: id, Expect: store.Expect{Epoch: row.Epoch, Inbox: &row.Inbox}, Row: &store.RowPatch{ArchivedSeq: &row.Last.Seq},
	})
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrNotFound) {
		// The run has gone on meanwhile, or has received a message, which wakes
		// nothing if nothing waits for it. Archive its new state too.
		w.stale, err = row.Status, nil
	}
	return err
}

// isGone reports whether a run was deleted, so that there is nothing left to
// archive: another run may have its id now.
func (a *Archiver) isGone(ctx context.Context, row *store.Run) bool {
	h, err := a.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	return errors.Is(err, store.ErrNotFound) || err == nil && h.Run.CreatedAt != row.CreatedAt
}
