package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// requestError is an error of a request itself.
type requestError struct {
	status              int
	code, message, next string
}

func (e *requestError) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &requestError{status: http.StatusBadRequest, code: "invalid", message: fmt.Sprintf(format, args...)}
}

// badForm is why a form could not be read: it is too large, or no form.
func badForm(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return err
	}
	return badRequest("the form cannot be read: %v", err)
}

// deniedError is a no of Authorize.
type deniedError struct {
	Action Action
	RunID  string
	Err    error
}

func (e *deniedError) Error() string {
	if e.RunID == "" {
		return fmt.Sprintf("not authorized to %s: %v", e.Action, e.Err)
	}
	return fmt.Sprintf("not authorized to %s run %s: %v", e.Action, e.RunID, e.Err)
}

func (e *deniedError) Unwrap() error { return e.Err }

var (
	errNeedsAuthorize  = errors.New("this server was reached beyond loopback and has no dashboard.Options.Authorize: nothing can be changed")
	errNeedsMiddleware = errors.New("this server was reached beyond loopback and has neither dashboard.Options.Authorize nor Middleware: nothing is shown")

	errCrossOrigin = &requestError{http.StatusForbidden, "cross_origin", "the request comes from a page of another origin", "add that origin to dashboard.Options.Origins if it is one of yours"}
)

func errHost(host string) error {
	return &requestError{http.StatusMisdirectedRequest, "host_not_allowed", fmt.Sprintf("this server does not answer to the host %q", host),
		"add it to dashboard.Options.Hosts if it is a name of this server"}
}

func errNoRoute(status int, allow string, r *http.Request) error {
	if status == http.StatusMethodNotAllowed {
		return &requestError{status, "method_not_allowed", fmt.Sprintf("%s is not possible here", r.Method), "this address takes " + allow}
	}
	return &requestError{http.StatusNotFound, "no_route", fmt.Sprintf("there is nothing at %s", r.URL.Path), "the list of routes is at /api/openapi.json"}
}

// A meaning is what an error of the engine is over HTTP.
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

// meanings is the one table of errors; the first that fits decides. Types stand
// before the sentinels they match.
var meanings = []meaning{
	{is(ErrUnauthenticated), http.StatusUnauthorized, "unauthenticated", "sign in, or send the credentials the server wants"},
	{as[*deniedError](), http.StatusForbidden, "forbidden", ""},
	{as[*tooLargeError](), http.StatusInternalServerError, "answer_too_large", "ask for less at a time"},
	{as[*http.MaxBytesError](), http.StatusRequestEntityTooLarge, "too_large", "send less, or raise dashboard.Options.MaxBody"},
	{as[*durable.PayloadSizeError](), http.StatusRequestEntityTooLarge, "too_large", ""},
	{is(store.ErrTooLarge), http.StatusRequestEntityTooLarge, "too_large", ""},
	{as[*durable.NotResumableError](), http.StatusConflict, "not_resumable", ""},
	{as[*durable.NotRunningError](), http.StatusConflict, "ended", ""},
	{as[*durable.NotPausedError](), http.StatusConflict, "not_paused", ""},
	{as[*durable.CrossingError](), http.StatusConflict, "crosses_once", "choose a later checkpoint, or force it"},
	{as[*durable.UndoneError](), http.StatusConflict, "undone", "choose the checkpoint it names, or force it"},
	{as[*durable.BusyError](), http.StatusConflict, "busy", "pause the run and try again"},
	{as[*durable.TooLateError](), http.StatusConflict, "answered", "look at the run again"},
	{as[*durable.CheckpointError](), http.StatusConflict, "no_checkpoint", ""},
	{as[*durable.EditError](), http.StatusConflict, "not_editable", ""},
	{as[*durable.EncodeError](), http.StatusUnprocessableEntity, "not_encodable", ""},
	{as[*durable.DefinitionChangedError](), http.StatusConflict, "definition_changed", "run the code that recorded it, or mend the difference"},
	{as[*durable.UndecodableError](), http.StatusConflict, "undecodable", "run a program that can read it, then resume"},
	{as[*durable.UnrecordedError](), http.StatusConflict, "unrecorded", "mend the cause, then resume"},
	{as[*durable.DamagedError](), http.StatusConflict, "damaged", "repair the run"},
	{is(store.ErrCorrupt), http.StatusConflict, "damaged", "repair the run"},
	{is(durable.ErrUnrecoverable), http.StatusInternalServerError, "unrecoverable", "look at its events and decide from where it goes on"},
	{is(durable.ErrUnrepairable), http.StatusInternalServerError, "unrepairable", "look at its events and decide from where it goes on"},
	{is(durable.ErrConflict), http.StatusConflict, "conflict", "use another run id"},
	{is(store.ErrExists), http.StatusConflict, "conflict", "use another run id"},
	{is(durable.ErrOccupied), http.StatusConflict, "occupied", "try again once the other run has ended"},
	{is(store.ErrOwned), http.StatusConflict, "busy", "try again once it is not executed any more"},
	{is(store.ErrFenced), http.StatusConflict, "busy", "somebody else acted on it in the same moment: look at it again"},
	{is(store.ErrStatus), http.StatusConflict, "status", "look at the run again"},
	{is(durable.ErrNotFound), http.StatusNotFound, "not_found", ""},
	{is(durable.ErrNotRegistered), http.StatusNotFound, "workflow_not_registered", "start a program that serves it"},
	{is(durable.ErrInvalid), http.StatusBadRequest, "invalid", ""},
	{is(durable.ErrClosed), http.StatusServiceUnavailable, "closing", "try again in a moment"},
	{is(store.ErrClosed), http.StatusServiceUnavailable, "closing", "try again in a moment"},
	{is(durable.ErrUnavailable), http.StatusServiceUnavailable, "unavailable", "the store does not answer: try again in a moment"},
	{is(context.DeadlineExceeded), http.StatusGatewayTimeout, "timeout", "look at the run, then ask again"},
}

// problemOf returns what err is over HTTP.
func (h *handler) problemOf(err error) (status int, p client.Problem) {
	var own *requestError
	if errors.As(err, &own) {
		return own.status, problem(own.code, own.message, own.next)
	}
	for _, m := range meanings {
		if m.is(err) {
			return m.status, problem(m.code, h.redact(messageOf(err)), h.nextOf(err, m.next))
		}
	}
	return http.StatusInternalServerError, problem("internal", "something went wrong inside", "the log of the program has the details")
}

// maxMessage bounds what an answer says of an error, in bytes: a request is
// repeated in it, and what somebody's code has returned.
const maxMessage = 4000

// clip cuts the text of an error to what an answer has room for.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}

func problem(code, message, next string) client.Problem {
	message, next = clip(message), clip(next)
	return client.Problem{Error: client.ProblemError{Code: code, Message: message, Next: next}, Message: message}
}

// unavailable says of an error of the store that is none of its declared ones what
// it means: the store could not be reached.
func unavailable(err error) error {
	for _, m := range meanings {
		if m.is(err) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", durable.ErrUnavailable, err)
}

// messageOf is the text of an error for somebody at a browser: that of the
// innermost type that says it in full, without the prefixes of the calls
// around.
func messageOf(err error) string {
	var no *durable.NotResumableError
	if errors.As(err, &no) {
		return no.Error()
	}
	if m := notFound.FindStringSubmatch(err.Error()); m != nil {
		return "run " + m[1] + " was not found"
	}
	return strings.TrimPrefix(err.Error(), "durable: ")
}

// notFound is what stores say of a run that they do not have.
var notFound = regexp.MustCompile(`run "([^"]*)": store: run not found$`)

// refuse answers with an error in the form of the API.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	h.refuseAs(w, r, err, false)
}

// refuser is refuse as a handler.
func (h *handler) refuser(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.refuse(w, r, err) })
}

// refuseAs answers with an error, as a page or as JSON.
func (h *handler) refuseAs(w http.ResponseWriter, r *http.Request, err error, page bool) {
	if r.Context().Err() != nil {
		return // nobody listens
	}
	status, p := h.problemOf(err)
	if status >= http.StatusInternalServerError {
		h.options.Logger.Error("dashboard: a request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	if page && h.pageProblem(w, r, status, p) {
		return
	}
	writeJSON(w, status, p)
}

// writeJSON answers with a JSON document.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// What is answered is made of strings, numbers and JSON that was checked.
		panic(fmt.Errorf("dashboard: an answer cannot be encoded: %w", err))
	}
	sendJSON(w, status, body)
}

func sendJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// answerJSON answers a question with a JSON document of at most maxAnswer. What an
// act came to is written by writeJSON: it is done, whatever the size of the answer.
func answerJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("dashboard: an answer cannot be encoded: %w", err)
	}
	if len(body) > maxAnswer {
		return &tooLargeError{"the answer"}
	}
	sendJSON(w, http.StatusOK, body)
	return nil
}

// listBytes is how many bytes of JSON a page of a list has, its last element aside.
const listBytes = maxAnswer / 2

// A quota is what is left of the bytes of a list.
type quota int

// take reports whether v is within what was left.
func (q *quota) take(v any) bool {
	if *q <= 0 {
		return false
	}
	body, err := json.Marshal(v)
	if err != nil {
		return true // and the answer has the error
	}
	*q -= quota(len(body))
	return true
}
