package show

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// The exit codes of failures; package cli has all of them, for users.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitUnreachable = 5
	ExitInterrupted = 130
)

// A Failure is what a command prints when it cannot do what was requested: what
// happened, what to do next, a code for programs, and the exit code.
type Failure struct {
	Code    string
	Message string
	Next    string // lines, for people
	Exit    int
	Silent  bool // it has already been printed
	Lines   bool // the message has several lines of our own, which are not escaped as one
	Err     error
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap returns the error that was explained.
func (f *Failure) Unwrap() error { return f.Err }

// Usage is the failure of a command that was called wrongly.
func Usage(format string, args ...any) *Failure {
	return &Failure{Code: "usage", Message: fmt.Sprintf(format, args...), Exit: ExitUsage}
}

// Refused is the failure of a command that changed nothing; next says what helps.
func Refused(code, next, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), Next: next, Exit: ExitRefused}
}

// Quiet ends a command with a code and says nothing.
func Quiet(exit int) *Failure { return &Failure{Exit: exit, Silent: true} }

// Explain says what an error means, and which commands help. inProgress says which
// process has a run.
func Explain(err error, c *Commands, inProgress func(id, owner string) string) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	f = &Failure{Code: "internal", Message: Flags(err.Error()), Exit: ExitFailed, Err: err}
	var (
		no         *durable.NotResumableError
		ended      *durable.NotRunningError
		occupied   *store.OccupiedError
		changed    *durable.DefinitionChangedError
		crossing   *operate.CrossingError
		undone     *operate.UndoneError
		at         *operate.CheckpointError
		owned      *store.OwnedError
		edit       *operate.EditError
		unrecorded *durable.UnrecordedError
	)
	refuse := func(code string) { f.Code, f.Exit = code, ExitRefused }
	switch {
	case errors.As(err, &no):
		refuse("not_resumable")
		f.Message = no.Error()
	case errors.As(err, &ended):
		refuse("not_running")
		f.Message = ended.Error()
		f.Next = "Show it: " + c.Self("sessions", "show", ended.RunID)
	case errors.As(err, &occupied):
		refuse("occupied")
		f.Message = fmt.Sprintf("%s is occupied by %s", occupied.Key, occupied.Holder)
		f.Next = "Show it: " + c.Self("sessions", "show", occupied.Holder)
	case errors.As(err, &changed):
		refuse("definition_changed")
	case errors.As(err, &crossing):
		refuse("once")
		f.Next = "Choose a later checkpoint, or let it happen again with --force"
	case errors.As(err, &undone):
		refuse("undone")
		f.Next = fmt.Sprintf("Use --from-checkpoint %d (fork: --from %[1]d), or --force to treat it as done", undone.Before)
		if undone.Before == 0 {
			f.Next = "Use --force to treat it as done, or start a new run"
		}
	case errors.As(err, &unrecorded):
		refuse("unrecorded")
		f.Next = "Mend the cause, then: " + c.Self("resume", unrecorded.RunID)
	case errors.As(err, &edit):
		explainEdit(f, edit, c)
	case errors.As(err, &at):
		f.Code, f.Exit, f.Message = "checkpoint", ExitNotFound, strings.TrimSuffix(f.Message, ". List what there is with Engine.History")
		f.Next = "List: " + c.Self("checkpoints", "list", at.RunID)
	case errors.As(err, &owned):
		refuse("in_progress")
		f.Message = inProgress(owned.RunID, owned.Owner)
		f.Next = "Follow it: " + c.Self("watch", owned.RunID)
	default:
		return explainKind(f, err, c)
	}
	return f
}

// explainEdit says why a result is not edited.
func explainEdit(f *Failure, edit *operate.EditError, c *Commands) {
	f.Code, f.Exit, f.Message = "refused", ExitRefused, fmt.Sprintf("run %s: the result of %s cannot be edited: %s", edit.RunID, edit.Key, Flags(edit.Reason))
	f.Next = "Show it: " + c.Self("sessions", "show", edit.RunID)
	if edit.Forceable {
		f.Next = "With --force it is replaced all the same"
	}
	if edit.Unknown {
		f.Code, f.Exit, f.Next = "not_found", ExitNotFound, "List: "+c.Self("checkpoints", "list", edit.RunID)
	}
}

// explainKind is the rest of Explain: kinds of errors, and what is wrong with data.
func explainKind(f *Failure, err error, c *Commands) *Failure {
	var (
		damaged    *durable.DamagedError
		unreadable *durable.UndecodableError
		value      *durable.EncodeError
		schema     *store.SchemaError
		paused     *durable.NotPausedError
	)
	refuse := func(code string) { f.Code, f.Exit = code, ExitRefused }
	switch {
	case errors.As(err, &paused):
		refuse("not_paused")
		f.Next = "Show it: " + c.Self("sessions", "show", paused.RunID)
	case errors.Is(err, durable.ErrConflict), errors.Is(err, store.ErrExists):
		refuse("conflict")
		f.Next = "Choose another id."
	case errors.As(err, &value), errors.Is(err, operate.ErrUnrepairable), errors.Is(err, durable.ErrUnrecoverable), errors.Is(err, store.ErrStatus), errors.Is(err, durable.ErrNotRegistered):
		refuse("refused")
	case errors.Is(err, operate.ErrBadFile):
		refuse("bad_file")
		f.Next = "Write it again, from the store that has the run: durable checkpoints export ID"
	case errors.As(err, &damaged) && errors.Is(err, durable.ErrNoHistory):
		return NoHistory(damaged.RunID, c)
	case errors.As(err, &damaged):
		refuse("damaged")
		f.Next = "Mend: " + c.Self("checkpoints", "repair", damaged.RunID, "--dry-run")
	case errors.As(err, &unreadable):
		refuse("undecodable")
		f.Next = "Run a program that can read it, with the type as it was, durable.From that type, or the key: " + host.Page("guides/changing-data.md") + "\nLook at it: " + c.Self("checkpoints", "validate", unreadable.RunID)
		if unreadable.Recorded == "json.RawMessage" && unreadable.Key != "" && unreadable.Wanted != "" { // as an edit records it
			f.Next = "If an edit gave it, give one of type " + unreadable.Wanted + ": " + c.Self("checkpoints", "edit", unreadable.RunID, unreadable.Key) + " --value JSON\n" + f.Next
		}
	case errors.Is(err, store.ErrReadOnly):
		refuse("read_only")
		_, why, _ := strings.Cut(f.Message, store.ErrReadOnly.Error())
		f.Message, f.Next = "The store takes no writes"+why, "It can be looked at. To change something, name the server that takes writes, or the file where it can be written."
	case errors.Is(err, store.ErrCorrupt):
		refuse("damaged")
		f.Next = "Look at it: " + c.Self("checkpoints", "validate")
	case errors.Is(err, durable.ErrNotFound):
		f.Code, f.Exit = "not_found", ExitNotFound
	case errors.As(err, &schema):
		f.Code, f.Exit = "schema", ExitUnreachable
		f.Next = "Look: " + c.Self("schema", "status")
	case errors.Is(err, store.ErrInvalid):
		f.Code, f.Exit = "invalid", ExitUsage
		f.Message = strings.Replace(f.Message, ": "+store.ErrInvalid.Error(), "", 1) // the kind of error, which tells a person nothing
	case errors.Is(err, durable.ErrUnavailable):
		f.Code, f.Exit = "unavailable", ExitUnreachable
	case errors.Is(err, context.Canceled):
		f.Code, f.Exit = "interrupted", ExitInterrupted
	}
	return f
}

// NoHistory refuses a run that has no history left.
func NoHistory(id string, c *Commands) *Failure {
	return Refused("damaged", "See what is left of it: "+c.Self("checkpoints", "delete", id, "--dry-run"), "%s", (&durable.DamagedError{RunID: id, Err: durable.ErrNoHistory}).Error())
}
