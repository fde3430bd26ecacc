package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Update is one message of a stream; of its pointers one is set.
type Update struct {
	Event    *Event    // what happened
	Run      *Run      // the row has changed
	Approval *Approval // a person is asked, or was before the stream began
	Executor *Executed // whether a process executes the run
	Counts   *Counts   // of the list of runs
	Answered string    // id of an approval that is no longer open
	// Reconnected says that the stream was broken and goes on; nothing was missed.
	Reconnected bool
}

// Executed says whether a live process executes a run.
type Executed struct {
	Executed bool   `json:"executed"`
	Nobody   string `json:"nobody"` // why not, and what to do
}

// The shortest and the longest time that Watch and Wait wait before they connect again, and how
// long a connection may be silent: the server sends heartbeats more often.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
	maxSilence = time.Minute
)

// Watch yields what happens to a run: at once its row, whether it is executed and what
// it asks; then its events after the given number, and new ones as they come. It ends
// without an error after the event that ends the run, or when ctx ends. It also ends
// when no process has executed the run for one heartbeat of the server, with an Update
// whose Executor says why: call Watch again to go on waiting. A connection that breaks
// is made again, and continues after the last event. A refusal by the server is an
// error: ErrNotFound, ErrForbidden, ErrBusy. A server that cannot be reached, or is not
// well, is tried again until ctx ends.
func (c *Client) Watch(ctx context.Context, id string, after int64) iter.Seq2[Update, error] {
	return c.watch(ctx, runPath(id, "stream"), after)
}

// WatchRuns yields what changes in the list of runs: counts and approvals at once, then
// rows, counts and approvals. It goes on until ctx ends, and otherwise behaves like
// Watch.
func (c *Client) WatchRuns(ctx context.Context) iter.Seq2[Update, error] {
	return c.watch(ctx, path("api", "stream"), 0)
}

func (c *Client) watch(ctx context.Context, path string, after int64) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		s := &stream{c: c, path: path, last: after, yield: yield}
		for retry := firstRetry; ; {
			s.moved = false
			err := s.once(ctx)
			switch {
			case s.stopped || s.ended || ctx.Err() != nil:
				return
			case err != nil && !passing(err):
				yield(Update{}, err)
				return
			}
			if s.moved {
				retry = firstRetry
			}
			if retry = pause(ctx, retry); ctx.Err() != nil {
				return
			}
			s.again = true
		}
	}
}

// pause waits before the next try, and returns how long to wait before the one after.
func pause(ctx context.Context, retry time.Duration) time.Duration {
	t := time.NewTimer(retry)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return min(2*retry, lastRetry)
}

// passing reports whether an error may be temporary.
func passing(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		switch e.Status {
		case http.StatusRequestTimeout, http.StatusTooEarly: // of a proxy
			return true
		}
		return e.Status >= http.StatusInternalServerError
	}
	var redirect *redirectError
	if errors.As(err, &redirect) {
		return false
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errSilent)
}

var errSilent = errors.New("client: the server fell silent")

// stream is a watch in progress.
type stream struct {
	c       *Client
	path    string
	last    int64 // id of the last message that had one
	moved   bool  // this connection has delivered something new
	again   bool  // it was broken
	ended   bool  // the server says that nothing more will come
	stopped bool  // the caller has stopped iterating
	yield   func(Update, error) bool
}

// once opens one connection and reads it to its end.
func (s *stream) once(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	r, err := s.c.request(ctx, http.MethodGet, s.path, url.Values{}, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	if s.last > 0 {
		r.Header.Set("Last-Event-ID", itoa(s.last))
	}
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	resp, err := s.c.http.Do(r)
	if err != nil {
		return s.c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errorOf(resp)
	}
	if s.again {
		s.again = false
		if !s.give(Update{Reconnected: true}) {
			return nil
		}
	}
	err = s.read(resp.Body, func() { silence.Reset(maxSilence) })
	if ctx.Err() != nil && parent.Err() == nil && !s.stopped {
		return context.Cause(ctx)
	}
	return err
}

func (s *stream) give(u Update) bool {
	s.stopped = !s.yield(u, nil)
	return !s.stopped
}

// read reads messages until the connection ends.
func (s *stream) read(body io.Reader, heard func()) error {
	in := bufio.NewScanner(body)
	in.Buffer(nil, maxAnswer)
	var event, id string
	var data strings.Builder
	for in.Scan() {
		heard()
		line := in.Text()
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data.Len() > 0 {
				if err := s.message(event, id, data.String()); err != nil || s.stopped || s.ended {
					return err
				}
			}
			event, id = "", ""
			data.Reset()
		case name == "event":
			event = value
		case name == "id":
			id = value
		case name == "data":
			if data.Len()+len(value) > maxAnswer {
				return errTooLarge
			}
			data.WriteString(value)
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return errTooLarge
	}
	return io.ErrUnexpectedEOF // a server announces the end of a stream
}

var errTooLarge = errors.New("client: a message of the server is too large")

// message passes one message on.
func (s *stream) message(event, id, data string) error {
	var u Update
	var into any
	var answered struct{ ID string }
	var problem Problem
	switch event {
	case "event":
		u.Event = new(Event)
		into = u.Event
	case "run":
		u.Run = new(Run)
		into = u.Run
	case "approval":
		u.Approval = new(Approval)
		into = u.Approval
	case "executor":
		u.Executor = new(Executed)
		into = u.Executor
	case "counts":
		u.Counts = new(Counts)
		into = u.Counts
	case "answered":
		into = &answered
	case "problem":
		into = &problem
	case "end":
		s.ended = true
		return nil
	default:
		return nil // a newer server sends it
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		return fmt.Errorf("client: a message of the server cannot be read: %w", err)
	}
	if event == "problem" {
		// The server then ends the stream, or keeps trying.
		return &Error{Status: http.StatusServiceUnavailable, Code: problem.Error.Code, Message: problem.Error.Message, Next: problem.Error.Next}
	}
	u.Answered = answered.ID
	if !s.give(u) {
		return nil
	}
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		s.last, s.moved = n, true
	}
	return nil
}
