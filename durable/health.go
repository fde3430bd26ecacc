package durable

import (
	"errors"
	"fmt"
	"time"
)

// Health is the state of an engine, for a readiness probe and for people.
type Health struct {
	// BeatAge is how long ago the store last took a heartbeat of this executor;
	// when it reaches Lease, others may take its runs.
	BeatAge, Lease time.Duration
	// Recovered: Recover was called, so runs of earlier processes are taken.
	Recovered bool
	// Closing: Close was called.
	Closing bool
	// Executing runs have goroutines here; Unloaded ones wait without any.
	Executing, Unloaded int
	// Backlog is how many runs of the store wait to be executed: pending, or
	// interrupted without a reason that keeps them from going on.
	Backlog int64
	// CommitP99 is the time that 99 of 100 of the store's commits did not exceed.
	// It counts the last Commits ones that recorded something of a run executed
	// here: at most 1,024, none older than five minutes, including those that
	// failed. Both are 0 if there was none.
	CommitP99 time.Duration
	Commits   int
	// TimersLate is how many unloaded runs of this engine should have gone on by
	// now: the end of a sleep or of a time limit passed more than a second ago,
	// and the run has not been read yet. It does not count runs that no engine
	// holds: operate.Operator.Stuck lists those that no executor can take up.
	TimersLate int
	// Stuck is how many runs of the store cannot go on, by code.
	Stuck map[string]int64
}

// Ready returns nil if the engine can take work, else why not.
//
// Errors: ErrClosed; others say that Recover was not called, or that the lease has run out.
func (h Health) Ready() error {
	switch {
	case h.Closing:
		return ErrClosed
	case !h.Recovered:
		return errors.New("durable: Recover has not been called")
	case h.BeatAge >= h.Lease:
		return fmt.Errorf("durable: the last beat was taken %s ago and the lease is %s: others may have taken the runs of this executor", h.BeatAge.Round(time.Millisecond), h.Lease)
	}
	return nil
}
