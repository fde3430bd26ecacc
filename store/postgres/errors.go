package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"

	"github.com/holdfast-dev/holdfast/store"
)

// lostError means that the connection broke. maybe says that the server may
// have carried out the operation in progress, or may still do so.
type lostError struct {
	err   error
	maybe bool
}

func (e *lostError) Error() string { return "connection lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// unanswered reports whether the server may have carried out what failed with err, or may still do so.
func unanswered(err error) bool {
	lost, ok := errors.AsType[*lostError](err)
	return ok && lost.maybe
}

// fault says how to react to a database error.
type fault int

const (
	faultOther    fault = iota
	faultLost           // the connection is gone: connect again
	faultRetry          // the transaction conflicted with another: begin it again
	faultConflict       // a row already exists: begin again, and see it
	faultSession        // the session is unusable: take another one
	faultBusy           // the server is short of something: wait
	faultData           // the server refuses a value
)

// lasts reports whether to do the same again comes to the same.
func (f fault) lasts() bool { return f == faultOther || f == faultData }

// faultOf classifies an error.
func faultOf(err error) fault {
	if _, ok := errors.AsType[*lostError](err); ok {
		return faultLost
	}
	if errors.Is(err, errAgain) {
		return faultConflict
	}
	if errors.Is(err, store.ErrTooLarge) {
		return faultData
	}
	code := sqlState(err)
	if len(code) != 5 {
		if connectionLost(err) {
			return faultLost
		}
		return faultOther
	}
	switch {
	case code == "40001", code == "40P01", code == "55P03":
		return faultRetry
	case code == "40003":
		return faultLost
	case code == "23505":
		return faultConflict
	case code == "25006", // an old primary after a failover
		code == "26000", code == "0A000", // a prepared statement is gone or outdated
		code == "25P03": // idle in transaction: this process was stopped for long
		return faultSession
	case code == "53100", code == "53200", code == "53300", code == "53400":
		return faultBusy
	case code[:2] == "08", code[:2] == "57" && code != "57014":
		return faultLost
	case code[:2] == "22", code[:2] == "54":
		return faultData
	}
	return faultOther
}

// connectionLost reports whether err, which is not an answer of the server,
// means that the connection is gone.
func connectionLost(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	// pgx says so of a connection that it finds closed. It is not true that nothing
	// was sent: the answer to a COMMIT that is lost looks the same.
	var unsent interface {
		error
		SafeToRetry() bool
	}
	return errors.As(err, &unsent) && unsent.SafeToRetry()
}

// described wraps a database error for the caller.
func described(what string, err error) error {
	if err == nil || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch f, code := faultOf(err), sqlState(err); {
	case errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrInvalid): // they say all
	case code == "25006", code == "0A000" && routineOf(err) == "call_bool_check_hook": // a write, or a transaction that may write
		return fmt.Errorf("postgres: %s: the server %w, because it is a standby or is set read-only: name the one that takes them, or all of them with target_session_attrs=read-write: %w", what, store.ErrReadOnly, err)
	case f == faultData:
		return fmt.Errorf("postgres: %s: the database refuses a value: %w: %w", what, store.ErrInvalid, err)
	case f == faultLost, f == faultBusy:
		return fmt.Errorf("postgres: %s: the database cannot be reached: %w", what, err)
	}
	return fmt.Errorf("postgres: %s: %w", what, err)
}

// after adds to the end of a context, or of the store, why the last attempt before it failed.
func after(cause, err error) error {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrClosed)
	if cause == nil || !ended {
		return err
	}
	return fmt.Errorf("%w; before that: %v", err, cause)
}

// lockTimedOut reports that another transaction held a lock for too long. Nothing of this one was written.
func lockTimedOut(err error) bool { return sqlState(err) == "55P03" }

func duplicateTable(err error) bool { return sqlState(err) == "42P07" }

// sqlState returns the server's code for an error; empty if it is not the server's. Drivers share its method.
func sqlState(err error) string {
	var e interface {
		error
		SQLState() string
	}
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// routineOf returns the name of the server's function that has reported an error, which unlike its text is
// the same in all languages; empty if it is not known. The drivers keep it in a field of one name.
func routineOf(err error) string {
	var e interface {
		error
		SQLState() string
	}
	if !errors.As(err, &e) {
		return ""
	}
	v := reflect.Indirect(reflect.ValueOf(e))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if f := v.FieldByName("Routine"); f.IsValid() && f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}
