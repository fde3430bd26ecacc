package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The kinds of errors, by the status of the answer; compare with errors.Is. *Error has
// the details.
var (
	ErrInvalid         = errors.New("client: the request is not valid")            // 400, 413, 415, 422
	ErrUnauthenticated = errors.New("client: the server wants to know who asks")   // 401
	ErrForbidden       = errors.New("client: not allowed")                         // 403, 421
	ErrNotFound        = errors.New("client: not found")                           // 404
	ErrConflict        = errors.New("client: the run's state does not allow this") // 409
	ErrBusy            = errors.New("client: the server has too much to do")       // 429
	ErrServer          = errors.New("client: something went wrong on the server")  // 5xx
	// ErrUnreachable: there was no answer.
	ErrUnreachable = errors.New("client: Server not running")
)

// Error is an answer of the server that is not a success.
type Error struct {
	Status  int    // HTTP status
	Code    string // for programs
	Message string // for people, in the server's words
	Next    string // what to do about it; empty if nothing is known to help
	// Holder is the run that has the deduplication key of a start that was refused
	// (Code "duplicate"); empty otherwise, and for who may not read that run.
	Holder string
}

// Error returns the server's message.
func (e *Error) Error() string { return e.Message }

// Is matches the sentinel of the status.
func (e *Error) Is(target error) bool { return target == sentinelOf(e.Status) }

func sentinelOf(status int) error {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return ErrInvalid
	case http.StatusUnauthorized:
		return ErrUnauthenticated
	case http.StatusForbidden, http.StatusMisdirectedRequest:
		return ErrForbidden
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	case http.StatusTooManyRequests:
		return ErrBusy
	}
	if status >= http.StatusInternalServerError {
		return ErrServer
	}
	return nil
}

// UnreachableError says that there was no answer.
type UnreachableError struct {
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("Server not running: no answer from %s: %v", e.Server, e.Err)
}

// Is matches ErrUnreachable.
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

func (e *UnreachableError) Unwrap() error { return e.Err }

// maxProblem is the most that is read of an answer that is an error.
const maxProblem = 1 << 20

// errorOf reads an answer that is not a success.
func errorOf(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p Problem
	e := &Error{Status: resp.StatusCode}
	if json.Unmarshal(body, &p) == nil && p.Error.Message != "" {
		e.Code, e.Message, e.Next, e.Holder = p.Error.Code, p.Error.Message, p.Error.Next, p.Error.Holder
		return e
	}
	// A proxy between us and the server has answered.
	e.Message = strings.TrimSpace(resp.Status + " " + firstLine(string(body)))
	return e
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if strings.HasPrefix(s, "<") || len(s) > 200 {
		return ""
	}
	return s
}
