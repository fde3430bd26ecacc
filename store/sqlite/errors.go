//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// busy reports that another process holds the lock, so nothing was done.
func busy(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	return ok && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}

// memberFault reports whether one member may have caused an error of the whole
// batch, so that it is worth trying the members separately.
func memberFault(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch, sqlite3.ErrRange, sqlite3.ErrError:
		return true
	}
	return false
}

// broken reports that the connection should no longer be trusted.
func broken(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	return ok && (e.Code == sqlite3.ErrIoErr || e.Code == sqlite3.ErrNomem || e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}

// fail words an SQLite error for people; it does so only once. wrote says that
// the error came while something was being made durable, so that after an I/O
// error it is unknown whether the commit is on the disk.
func (s *Store) fail(what string, err error, wrote bool) error { return fail(s.name, what, err, wrote) }

func fail(name, what string, err error, wrote bool) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[sqlite3.Error](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), !ok && !sqlstore.Blameless(err):
		return err // the caller's own or the contract's error needs no more words
	case !ok:
		return fmt.Errorf("sqlite: %s: %s: %w", name, what, err)
	}
	if e.Code == sqlite3.ErrFull || e.Code == sqlite3.ErrIoErr && e.SystemErrno == syscall.ENOSPC && !wrote {
		return fmt.Errorf("sqlite: %s: %s: the file %w: the disk is full or the file has reached its largest size; nothing was written; free some space and try again: %w", name, what, store.ErrReadOnly, err)
	}
	switch e.Code {
	case sqlite3.ErrIoErr:
		if wrote {
			return fmt.Errorf("sqlite: %s: %s: the disk reported an error: %w: %w", name, what, err, store.ErrUnknown)
		}
		return fmt.Errorf("sqlite: %s: %s: the disk reported an error: %w", name, what, err)
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return fmt.Errorf("sqlite: %s: %s: run PRAGMA integrity_check, and restore a backup if it reports damage: %w: %w", name, what, err, store.ErrCorrupt)
	case sqlite3.ErrReadonly, sqlite3.ErrPerm, sqlite3.ErrCantOpen, sqlite3.ErrAuth:
		return fmt.Errorf("sqlite: %s: %s: the process must be able to write the file and its directory; to look at it, copy it and its -wal to where that is so: %w", name, what, err)
	case sqlite3.ErrConstraint, sqlite3.ErrMismatch, sqlite3.ErrRange:
		return fmt.Errorf("sqlite: %s: %s: the schema does not allow this: %w: %w", name, what, err, store.ErrInvalid)
	case sqlite3.ErrTooBig:
		return fmt.Errorf("sqlite: %s: %s: %w: %w", name, what, err, store.ErrTooLarge)
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return fmt.Errorf("sqlite: %s: %s: another process holds the lock: %w", name, what, err)
	}
	return fmt.Errorf("sqlite: %s: %s: %w", name, what, err)
}
