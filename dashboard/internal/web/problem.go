package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A RequestError is an error in the request itself.
type RequestError struct {
	status              int
	code, message, next string
}

func (e *RequestError) Error() string { return e.message }

// NewError returns a RequestError: what is answered, and what to do next.
func NewError(status int, code, message, next string) error {
	return &RequestError{status: status, code: code, message: message, next: next}
}

// BadRequest returns the RequestError of a request that makes no sense.
func BadRequest(format string, args ...any) error {
	return NewError(http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...), "")
}

// BadForm says why a form could not be read: it is too large, or not a form.
func BadForm(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return err
	}
	return BadRequest("the form cannot be read: %v", err)
}

// A DeniedError says that the caller may not do something.
type DeniedError struct {
	Action string
	RunID  string
	Err    error
}

func (e *DeniedError) Error() string {
	if e.RunID == "" {
		return fmt.Sprintf("not authorized to %s: %v", e.Action, e.Err)
	}
	return fmt.Sprintf("not authorized to %s run %s: %v", e.Action, e.RunID, e.Err)
}

func (e *DeniedError) Unwrap() error { return e.Err }

// ErrCrossOrigin is a request from a page of another origin.
var ErrCrossOrigin = NewError(http.StatusForbidden, "cross_origin", "the request comes from a page of another origin", "add that origin to dashboard.Options.Origins if it is one of yours")

// ErrUnauthenticated: the caller is not known.
var ErrUnauthenticated = errors.New("dashboard: sign in first")

// A meaning is the HTTP form of an error of the engine.
type meaning struct {
	is     func(error) bool
	status int
	code   string
	next   string
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error]() func(error) bool {
	return func(err error) bool {
		_, ok := errors.AsType[E](err)
		return ok
	}
}

// meanings is the one table of errors; the first row that fits decides. Types come before
// the sentinels that they match.
var meanings = []meaning{
	{is(ErrUnauthenticated), http.StatusUnauthorized, "unauthenticated", "sign in, or send the credentials the server wants"},
	{as[*DeniedError](), http.StatusForbidden, "forbidden", ""},
	{as[*TooLargeError](), http.StatusInternalServerError, "answer_too_large", "ask for less at a time"},
	{as[*http.MaxBytesError](), http.StatusRequestEntityTooLarge, "too_large", "send less, or raise dashboard.Options.MaxBody"},
	{as[*durable.PayloadSizeError](), http.StatusRequestEntityTooLarge, "too_large", ""},
	{is(store.ErrTooLarge), http.StatusRequestEntityTooLarge, "too_large", ""},
	{as[*durable.NotResumableError](), http.StatusConflict, "not_resumable", ""},
	{as[*durable.NotRunningError](), http.StatusConflict, "ended", ""},
	{as[*durable.NotPausedError](), http.StatusConflict, "not_paused", ""},
	{as[*operate.CrossingError](), http.StatusConflict, "crosses_once", "choose a later checkpoint, or force it"},
	{as[*operate.UndoneError](), http.StatusConflict, "undone", "choose the checkpoint it names, or force it"},
	{as[*operate.BusyError](), http.StatusConflict, "busy", "pause the run and try again"},
	{as[*operate.TooLateError](), http.StatusConflict, "answered", "look at the run again"},
	{as[*operate.CheckpointError](), http.StatusConflict, "no_checkpoint", ""},
	{as[*operate.EditError](), http.StatusConflict, "not_editable", ""},
	{as[*durable.EncodeError](), http.StatusUnprocessableEntity, "not_encodable", ""},
	{as[*durable.DefinitionChangedError](), http.StatusConflict, "definition_changed", "run the code that recorded it, or mend the difference"},
	{as[*durable.UndecodableError](), http.StatusConflict, "undecodable", "run a program that can read it, then resume"},
	{as[*durable.UnrecordedError](), http.StatusConflict, "unrecorded", "mend the cause, then resume"},
	{as[*durable.DamagedError](), http.StatusConflict, "damaged", "repair the run"},
	{is(store.ErrCorrupt), http.StatusConflict, "damaged", "repair the run"},
	{is(durable.ErrUnrecoverable), http.StatusInternalServerError, "unrecoverable", "look at its events and decide from where it goes on"},
	{is(operate.ErrUnrepairable), http.StatusInternalServerError, "unrepairable", "look at its events and decide from where it goes on"},
	{is(durable.ErrConflict), http.StatusConflict, "conflict", "use another run id"},
	{is(store.ErrExists), http.StatusConflict, "conflict", "use another run id"},
	{is(durable.ErrOccupied), http.StatusConflict, "occupied", "try again once the other run has ended"},
	{is(store.ErrOwned), http.StatusConflict, "busy", "try again once it is not executed any more"},
	{is(store.ErrFenced), http.StatusConflict, "busy", "somebody else acted on it in the same moment: look at it again"},
	{is(store.ErrStatus), http.StatusConflict, "status", "look at the run again"},
	{is(durable.ErrNotFound), http.StatusNotFound, "not_found", ""},
	{is(operate.ErrScheduleNotFound), http.StatusNotFound, "not_found", ""},
	{is(durable.ErrNotRegistered), http.StatusNotFound, "workflow_not_registered", "start a program that serves it"},
	{is(errors.ErrUnsupported), http.StatusConflict, "unsupported", "the store of this program cannot do that"},
	{is(durable.ErrInvalid), http.StatusBadRequest, "invalid", ""},
	{is(durable.ErrClosed), http.StatusServiceUnavailable, "closing", "try again in a moment"},
	{is(store.ErrClosed), http.StatusServiceUnavailable, "closing", "try again in a moment"},
	{is(durable.ErrUnavailable), http.StatusServiceUnavailable, "unavailable", "the store does not answer: try again in a moment"},
	{is(context.DeadlineExceeded), http.StatusGatewayTimeout, "timeout", "look at the run, then ask again"},
}

// Problem returns the HTTP form of err.
func (e *Env) Problem(err error) (status int, p client.Problem) {
	var own *RequestError
	if errors.As(err, &own) {
		return own.status, problem(own.code, own.message, own.next)
	}
	var taken *durable.ConflictError
	if errors.As(err, &taken) && taken.Dedup != "" {
		p := problem("duplicate", e.Redact.Text(taken.Error()), "wait for that run, or start this one once it has ended")
		p.Error.Holder = taken.Holder
		return http.StatusConflict, p
	}
	for _, m := range meanings {
		if m.is(err) {
			return m.status, problem(m.code, e.Redact.Text(view.Message(err)), e.nextOf(err, m.next))
		}
	}
	return http.StatusInternalServerError, problem("internal", "something went wrong inside", "the log of the program has the details")
}

func problem(code, message, next string) client.Problem {
	message, next = view.Clip(message), view.Clip(next)
	return client.Problem{Error: client.ProblemError{Code: code, Message: message, Next: next}, Message: message}
}

// Unavailable marks an error of the store that the table does not know: the store could
// not be reached.
func Unavailable(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return commit.StoreError(err)
	}
	for _, m := range meanings {
		if m.is(err) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", durable.ErrUnavailable, err)
}

// A caller over HTTP is advised something that it can do: a route, in the form "POST
// /api/runs/order-42/pause", or a command of the terminal where there is no route. A test
// carries out every piece of advice.

// nextOf says what to do about an error that concerns one run; for all other errors it
// returns otherwise.
func (e *Env) nextOf(err error, otherwise string) string {
	var (
		damaged *durable.DamagedError
		busy    *operate.BusyError
		no      *durable.NotResumableError
		at      *operate.CheckpointError
		lost    *durable.UnrecoverableError
	)
	switch {
	case errors.As(err, &damaged):
		return view.MendAdvice(damaged.RunID, errors.Is(err, durable.ErrNoHistory))
	case errors.As(err, &busy) && busy.RunID != "":
		return fmt.Sprintf("pause the run, POST %s, and try again once it is paused", e.Site.Route(busy.RunID, "pause"))
	case errors.As(err, &no) && no.Paused:
		return "POST " + e.Site.Route(no.RunID, "unpause")
	case errors.As(err, &lost) && lost.Code == durable.CodeE2:
		return "run a program that serves the version of the run"
	case errors.As(err, &at) && at.Seq == 0 && at.Key == "":
		return fmt.Sprintf("POST %s with {\"force\": true} to start it again from its input", e.Site.Route(at.RunID, "resume"))
	}
	return otherwise
}
