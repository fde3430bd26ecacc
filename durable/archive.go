package durable

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/archiver"
	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Archive is a place outside the store where copies of runs are kept; package
// archive has a git repository and a directory. The engine writes a copy when a
// run has ended and while it waits, in the background: neither the run nor its
// result waits for that or depends on it. A copy that could not be written is
// logged, and the next engine that is opened on the store tries again.
//
// An Archive may have a method Off() bool, which Open calls once: when it returns
// true there is no archive, as if Options.Archive were nil. A method StoreWord()
// string says what log lines call it; without one, they say git-store.
type Archive interface {
	// Store keeps a copy of a run, in place of the previous one. file is the run
	// as Export writes it; Store must not change it. When Store returns nil, the
	// copy is durable. It is called concurrently, also for the same run, and
	// possibly with an earlier state after a later one; the earlier state must
	// then change nothing. ctx ends some time after Close was called, or after
	// ArchiveTimeout.
	Store(ctx context.Context, runID string, file []byte) error
}

// ArchiveTimeout limits one write to the archive.
const ArchiveTimeout = archiver.Timeout

// orNone returns the archive that a program has given, nil if that is off: a run
// that is kept nowhere must not be marked as archived, or retention would delete
// it.
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

// newArchiver returns the Archiver that writes copies of the engine's runs.
func newArchiver(e *Engine) *archiver.Archiver {
	return archiver.New(archiver.Options{
		To: e.options.Archive, Store: e.store, Log: e.log.Logger, AboutID: e.log.AboutID,
		Known: func(err error) error { return storeError(damaged(err)) },
		Now:   e.now, RunsOf: e.runsOf, Commit: e.commitOne, Sync: e.options.ArchiveSync,
	})
}
