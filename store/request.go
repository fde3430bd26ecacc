package store

import (
	"context"
	"errors"
	"time"
)

// RequestKind says what a request asks for.
type RequestKind string

// The kinds of requests.
const (
	RequestStart  RequestKind = "start"
	RequestSignal RequestKind = "signal"
	RequestCancel RequestKind = "cancel"
)

// Request is a row of the requests table: what a program asks for that speaks SQL
// and writes it within its own transaction. The store gives it to an engine, which
// knows what a Change for it looks like. A column that is NULL is an empty field.
type Request struct {
	No    int64 // its number, in the order in which rows were inserted; never used twice
	Kind  RequestKind
	RunID string // of a start: empty if one is to be made for it

	// Of a start.
	Workflow, Version       string
	Queue, Partition, Dedup string
	Priority                int32
	WakeAt                  Time   // 0: at once
	Attributes, Headers     string // JSON objects whose values are strings

	Input string // JSON: the input of a start, the value of a signal

	// Of a signal. ID may be empty: then each request sends one.
	Name, ID string

	Reason    string // of a cancel
	CreatedAt Time   // by the clock of the database
}

// The codes of requests that could not be carried out. A program may branch on
// them; their texts are for people.
const (
	RequestInvalid  = "invalid"   // the request makes no sense
	RequestConflict = "conflict"  // the run id, or the deduplication key, is another run's
	RequestNotFound = "not_found" // there is no such run
	RequestEnded    = "ended"     // the run has ended, or its status does not allow this
	RequestTooLarge = "too_large" // it exceeds one of the Limits
	RequestRefused  = "refused"   // anything else
)

// RequestCode returns the code for the reason why a request was not carried out.
func RequestCode(err error) string {
	for _, c := range []struct {
		is   error
		code string
	}{
		{ErrTooLarge, RequestTooLarge}, {ErrNotFound, RequestNotFound}, {ErrExists, RequestConflict}, {ErrStatus, RequestEnded}, {ErrInvalid, RequestInvalid},
	} {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	return RequestRefused
}

// Answer is what became of a request.
type Answer struct {
	Request Request
	RunID   string // the run that it has started, or concerns
	Err     error  // why it was not carried out; nil: it was
}

// Drain says which requests to answer, and how.
type Drain struct {
	// After is the No after which to begin. A drain that begins at 0 and goes on at
	// Drained.Last meets every request that was committed before it began.
	After int64
	// Max is how many requests to answer at most, in one transaction; 0 or less:
	// none.
	Max int
	// Serves are the workflows whose code is here. Starts of other workflows are left
	// to the executors that have it, for as long as Leave after they were inserted.
	Serves []string
	Leave  time.Duration
	// Form returns the Change that carries a request out, or why there is none. It is
	// called within the transaction: it must not call the store, and may be called
	// again for the same request.
	Form func(r Request) (Change, error)
}

// Drained is what became of the requests of a Drain.
type Drained struct {
	// Answers are durable, in the order of No.
	Answers []Answer
	// Last is where the next drain goes on; 0: there is nothing behind.
	Last int64
	// Left: some requests must be tried again, such as those that concern a run
	// whose row somebody has locked, or that follow one of the same run which another
	// engine is about to answer.
	Left bool
}

// Requests is a store with a table of requests, which programs fill by SQL of their
// own. Its methods may be called concurrently, by many processes.
type Requests interface {
	// DrainRequests answers open requests in the order of No.
	//
	// S38 A request is answered once, by one drain, in the transaction that carries
	// its Change out: the effect and the answer are durable together or not at all.
	// One that cannot be carried out is answered with the reason and has no effect.
	// Requests that name the same run are carried out in the order of No; two that are
	// inserted in one transaction are therefore carried out in their order.
	//
	// S39 A request that is refused, or that cannot be answered yet, does not keep
	// those behind it from being answered, except those that name the same run. What a
	// transaction has inserted that has not committed is not seen.
	//
	// After an error, any part of what was asked for may have been done.
	DrainRequests(ctx context.Context, d Drain) (Drained, error)

	// DropRequests deletes requests that were answered before a time, by the clock of
	// the store, the oldest first and at most limit of them. It returns how many.
	DropRequests(ctx context.Context, before Time, limit int) (int, error)
}

// Again reports whether a request that was refused with err, for the Change that was
// formed for it, is to be formed again: the id that was made for the run is in use. For
// use by stores.
func (r *Request) Again(c *Change, err error) bool {
	e, ok := errors.AsType[*ExistsError](err)
	return ok && r.Kind == RequestStart && r.RunID == "" && e.RunID == c.RequestedRun()
}

// RequestedRun returns the run that c concerns, for the answer to the request it was
// formed for. For use by stores.
func (c *Change) RequestedRun() string {
	switch {
	case c.RunID != "":
		return c.RunID
	case len(c.Start) > 0:
		return c.Start[0].RunID
	case len(c.Send) > 0:
		return c.Send[0].To
	}
	return ""
}
