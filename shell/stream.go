package shell

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The bounds of what waits for Workspace.Output.
const (
	// outputAhead is how many bytes a command may be ahead of Output before it is held
	// up, as by a full pipe.
	outputAhead = 256 << 10
	// outputRest is how many more are kept of a command that has ended.
	outputRest = 1 << 20
	// outputPatience is for how long Output may take nothing until the rest is left out.
	outputPatience = 5 * time.Second
	// outputStopped is how long it has when the command was stopped.
	outputStopped = 250 * time.Millisecond
	// outputPiece is how much it gets in one call at most.
	outputPiece = 32 << 10
)

// stream hands what two outputs write on to one writer, on a goroutine of its own:
// a writer that blocks holds up neither what is recorded nor, beyond its time, the
// step. One that fails is written to no more: the command must not fail for those
// who watch it.
type stream struct {
	w    io.Writer
	done chan struct{} // closed when the writer is called no more

	mu      sync.Mutex
	changed sync.Cond
	queue   []byte
	taken   int64 // bytes that the writer has taken
	dropped int64 // bytes that it did not get
	free    bool  // nobody is held up any more
	closed  bool  // nothing more comes
	over    bool  // nothing more is written
	failed  error // why not, if it is the writer's doing
}

// newStream begins to write to w; nil: there is nobody to write to.
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

// write hands p on. It waits while the writer is too far behind, until release.
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

// release lets nobody wait for the writer any more.
func (s *stream) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = true
	s.changed.Broadcast()
}

// finish waits until the writer has taken everything, or has taken nothing for
// outputPatience, or until ended. It returns why the writer did not get all; it may
// still be in a call then, which is its last one.
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

// pump calls the writer. What panics in it, or ends its goroutine, has failed.
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

// end lets nothing more be written; err: why not.
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

// next returns what the writer gets next, nil if it gets nothing more.
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
