package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The exit codes. They are part of what scripts rely on, and never change.
const (
	ExitDone        = 0   // done
	ExitFailed      = 1   // the run failed, or something unexpected happened
	ExitUsage       = 2   // wrong usage, --yes is missing, or it was declined
	ExitNotFound    = 3   // no such run, nothing to resume
	ExitRefused     = 4   // refused; nothing changed
	ExitUnreachable = 5   // the store or the server cannot be reached
	ExitFound       = 6   // validate, doctor or stuck found something
	ExitInterrupted = 130 // by Ctrl-C
	ExitTerminated  = 143 // by SIGTERM
)

// ExitError is how a command ended that did not end with 0. It was printed
// already.
type ExitError struct {
	Code int
	Err  error // what was printed; nil: nothing but the code
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for what Execute of a command has returned: 0
// for nil, 1 for an error that is none of this package's.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &exit):
		return exit.Code
	}
	return ExitFailed
}

// A failure is what a command says when it cannot do what was asked: what
// happened, what to do next, the code for programs, and the one to exit with.
type failure struct {
	code    string
	message string
	next    string // lines, for people
	exit    int
	silent  bool // it was said already
	lines   bool // the message has several, of our own making
	err     error
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.err }

func usage(format string, args ...any) *failure {
	return &failure{code: "usage", message: fmt.Sprintf(format, args...), exit: ExitUsage}
}

func refused(code, next, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...), next: next, exit: ExitRefused}
}

// quiet ends a command with a code and says nothing.
func quiet(exit int) *failure { return &failure{exit: exit, silent: true} }

// explain makes of any error what a command says of it. id is the run it is
// about, if there is one.
func (c *call) explain(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{code: "internal", message: err.Error(), exit: ExitFailed, err: err}
	var (
		no         *durable.NotResumableError
		ended      *durable.NotRunningError
		occupied   *store.OccupiedError
		changed    *durable.DefinitionChangedError
		schema     *store.SchemaError
		crossing   *durable.CrossingError
		undone     *durable.UndoneError
		at         *durable.CheckpointError
		owned      *store.OwnedError
		damaged    *durable.DamagedError
		unreadable *durable.UndecodableError
		edit       *durable.EditError
		value      *durable.EncodeError
		unrecorded *durable.UnrecordedError
	)
	refuse := func(code string) { f.code, f.exit = code, ExitRefused }
	switch {
	case errors.As(err, &no):
		refuse("not_resumable")
		f.message = no.Error()
	case errors.As(err, &ended):
		refuse("not_running")
		f.message = ended.Error()
	case errors.As(err, &occupied):
		refuse("occupied")
		f.message = fmt.Sprintf("%s is occupied by %s", occupied.Key, occupied.Holder)
		f.next = "Show it: " + c.self("sessions", "show", occupied.Holder)
	case errors.As(err, &changed):
		refuse("definition_changed")
	case errors.As(err, &crossing):
		refuse("once")
		f.next = "Choose a later checkpoint, or let it happen again with --force"
	case errors.As(err, &undone):
		refuse("undone")
		f.next = fmt.Sprintf("Go on from --from-checkpoint %d (fork: --from %[1]d), or take it for done with --force", undone.Before)
		if undone.Before == 0 {
			f.next = "Take it for done with --force, or start a new run"
		}
	case errors.As(err, &unrecorded):
		refuse("unrecorded")
		f.next = "Mend the cause, then: " + c.self("resume", unrecorded.RunID)
	case errors.As(err, &edit):
		refuse("refused")
		if edit.Forceable {
			f.message = fmt.Sprintf("run %s: the result of %s cannot be edited: %s", edit.RunID, edit.Key, edit.Reason)
			f.next = "With --force it is replaced all the same"
		}
	case errors.As(err, &value):
		refuse("refused")
		f.message = strings.Replace(f.message, ". Force ", ". --force ", 1)
	case errors.As(err, &at):
		f.code, f.exit = "checkpoint", ExitNotFound
		f.next = "List: " + c.self("checkpoints", "list", at.RunID)
	case errors.As(err, &owned):
		refuse("in_progress")
		f.message = c.inProgress(owned.RunID, owned.Owner)
		f.next = "Follow it: " + c.self("watch", owned.RunID)
	case errors.Is(err, durable.ErrNotPaused):
		refuse("not_paused")
	case errors.Is(err, durable.ErrConflict), errors.Is(err, store.ErrExists):
		refuse("conflict")
	case errors.Is(err, durable.ErrUnrepairable), errors.Is(err, durable.ErrUnrecoverable), errors.Is(err, store.ErrStatus), errors.Is(err, durable.ErrNotRegistered):
		refuse("refused")
	case errors.Is(err, durable.ErrBadFile):
		refuse("bad_file")
	case errors.As(err, &damaged) && errors.Is(err, durable.ErrNoHistory):
		return c.rowOnly(damaged.RunID)
	case errors.As(err, &damaged):
		refuse("damaged")
		f.next = "Mend: " + c.self("checkpoints", "repair", damaged.RunID, "--dry-run")
	case errors.As(err, &unreadable):
		refuse("undecodable")
		f.next = "Look at it: " + c.self("checkpoints", "validate", unreadable.RunID) + "\nThen run a program that can read it"
	case errors.Is(err, store.ErrCorrupt):
		refuse("damaged")
		f.next = "Look at it: " + c.self("checkpoints", "validate")
	case errors.Is(err, durable.ErrNotFound):
		f.code, f.exit = "not_found", ExitNotFound
	case errors.As(err, &schema):
		f.code, f.exit = "schema", ExitUnreachable
		f.next = "Look: " + c.self("schema", "status")
	case errors.Is(err, store.ErrInvalid):
		f.code, f.exit = "invalid", ExitUsage
	case errors.Is(err, durable.ErrUnavailable):
		f.code, f.exit = "unavailable", ExitUnreachable
	case errors.Is(err, context.Canceled):
		f.code, f.exit = "interrupted", ExitInterrupted
	}
	return f
}

// rowOnly is the refusal of a run that has no history left.
func (c *call) rowOnly(id string) *failure {
	err := &durable.DamagedError{RunID: id, Err: durable.ErrNoHistory}
	return refused("damaged", "See what is left of it: "+c.self("checkpoints", "delete", id, "--dry-run"), "%s", err.Error())
}
