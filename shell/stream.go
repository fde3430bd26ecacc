package shell

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The limits of buffering for Workspace.Output.
const (
	// outputAhead is how many bytes a command may be ahead of Output before it gets
	// back-pressure, as from a full pipe.
	outputAhead = 256 << 10
	// outputRest is how many more bytes are kept once a command has ended.
	outputRest = 1 << 20
	// outputPatience is how long Output may accept nothing before the rest is dropped.
	outputPatience = 5 * time.Second
	// outputStopped is how long Output has when the command was stopped.
	outputStopped = 250 * time.Millisecond
	// outputPiece is the most that Output gets in one call.
	outputPiece = 32 << 10
)

// stream passes the data of two outputs on to one writer, on its own goroutine: a writer
// that blocks holds up neither what is recorded nor, beyond its time limit, the step. A
// writer that fails gets no more: the command must not fail because of an observer.
type stream struct {
	w    io.Writer
	done chan struct{} // closed when the writer is no longer called

	mu      sync.Mutex
	changed sync.Cond
	queue   []byte
	taken   int64 // bytes that the writer has accepted
	dropped int64 // bytes that it did not get
	free    bool  // no command is held up any more
	closed  bool  // no more data will arrive
	over    bool  // no more data will be written
	failed  error // why not, if the writer failed
}

// newStream starts writing to w; it returns nil if there is no writer.
func newStream(w io.Writer) *stream {
	s := &stream{w: w, done: make(chan struct{})}
	s.changed.L = &s.mu
	if w == nil {
		close(s.done)
		return s
	}
	go s.pump()
	return s
}

// write passes p on. It waits while the writer is too far behind, until release.
func (s *stream) write(p []byte) {
	if s == nil || s.w == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.free && !s.over && len(s.queue) > outputAhead {
		s.changed.Wait()
	}
	if s.over || len(s.queue) > outputAhead+outputRest {
		s.dropped += int64(len(p))
		return
	}
	s.queue = append(s.queue, p...)
	s.changed.Broadcast()
}

// release ends all waiting for the writer.
func (s *stream) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = true
	s.changed.Broadcast()
}

// finish waits until the writer has accepted everything, or nothing for outputPatience,
// or until ended. It returns why the writer did not get everything; the writer may then
// still be in a call, which is its last one.
func (s *stream) finish(ended <-chan struct{}) error {
	s.mu.Lock()
	s.free, s.closed = true, true
	before := s.taken
	s.changed.Broadcast()
	s.mu.Unlock()
	t := time.NewTicker(outputPatience)
	defer t.Stop()
	var stopped <-chan time.Time
	for more := true; more; {
		select {
		case <-s.done:
			more = false
		case <-ended:
			ended, stopped = nil, time.After(outputStopped)
		case <-stopped:
			more = false
		case <-t.C:
			s.mu.Lock()
			more = s.taken != before
			before = s.taken
			s.mu.Unlock()
		}
	}
	s.end(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
		return s.failed
	case s.dropped > 0:
		return fmt.Errorf("it was too slow, and did not get %d bytes", s.dropped)
	}
	return nil
}

// errGoexit: the writer did not return.
var errGoexit = errors.New("it has ended its goroutine")

// pump calls the writer. A writer that panics or ends its goroutine has failed.
func (s *stream) pump() {
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked: %v", v)
		}
		s.end(err)
		close(s.done)
	}()
	for {
		piece := s.next()
		if piece == nil {
			err = nil
			return
		}
		if _, err = s.w.Write(piece); err != nil {
			return
		}
		err = errGoexit
		s.mu.Lock()
		s.taken += int64(len(piece))
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// end stops all further writing because of err.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped += int64(len(s.queue))
	s.queue = nil
	if s.failed == nil {
		s.failed = err
	}
	s.over = true
	s.changed.Broadcast()
}

// next returns the data to write next, nil if there is no more.
func (s *stream) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed && !s.over {
		s.changed.Wait()
	}
	if len(s.queue) == 0 {
		return nil
	}
	n := min(len(s.queue), outputPiece)
	piece := s.queue[:n:n]
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return piece
}
