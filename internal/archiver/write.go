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
	done  chan struct{} // closed when it is over; what follows is set then
	row   *store.Run    // the run as it was written, nil if there was nothing to write
	kept  bool          // the archive has it
	stale store.Status  // what the run has come to meanwhile, empty if nothing
}

// has reports whether the archive got all events of a run by this write.
func (w *writing) has(row *store.Run) bool {
	return w != nil && w.kept && w.row.CreatedAt == row.CreatedAt && w.row.Last.Seq >= row.Last.Seq
}

// begin takes the right to write a run that has come to status, which one at a
// time has; nil without it. With wait it waits for that, and returns the write
// that it has waited for, too; else whoever writes the run sees to it that it is
// written again.
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

// end gives the right back. rest is until when the run is left alone while it
// waits.
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
// returns then. A wait beside which the run goes on is archived with the next one.
func (a *Archiver) Waits(ctx context.Context, id string) {
	if a != nil && a.atWaits {
		a.write(ctx, id, store.Waiting, true)
	}
}

// write archives a run, which has come to status, as it is now, unless that is
// done; with wait also when it is being written already. A failure is logged; the
// mark in the store then says that it is to be done again.
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
		// Written again at the earliest when it has cost only a share of the time.
		rest = time.Now().Add(max(minRest, share*time.Since(began)))
	}
	a.end(id, w, rest)
	if err == nil || ctx.Err() != nil {
		return // who has ended it knows
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

// copy writes a run and then its mark, unless the archive has all of its events,
// by the mark or by the write before. A crash in between writes it again, which
// changes nothing.
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
		return nil // it goes on, and is wanted again when it has come to something
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
		// It has gone on meanwhile, or was sent a message, which wakes nobody if
		// nobody waits for it: what it has come to is archived, too.
		w.stale, err = row.Status, nil
	}
	return err
}

// isGone reports whether a run was deleted, so that nothing is left to archive:
// another one may have its id.
func (a *Archiver) isGone(ctx context.Context, row *store.Run) bool {
	h, err := a.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	return errors.Is(err, store.ErrNotFound) || err == nil && h.Run.CreatedAt != row.CreatedAt
}
