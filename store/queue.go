package store

import (
	"context"
	"fmt"
	"time"
)

// Queue says how the runs of a queue are let in. It is stored, so it holds for all
// executors. A queue that was never put has no limits and is not paused.
type Queue struct {
	Name string
	// Revision is 1 after the first PutQueue, and grows by one with each.
	Revision int64
	// Max is how many runs may hold a place at once, over all executors; 0: any number.
	Max int
	// MaxPerPartition is the same for the runs of each partition; 0: any number.
	MaxPerPartition int
	// Rate is how many runs may begin in any window as long as Per; 0: any number. Per is
	// kept in microseconds.
	Rate int
	Per  time.Duration
	// Paused keeps runs from getting a place. Those that hold one go on.
	Paused bool
	Reason string // why it is paused, for people

	UpdatedAt Time // by the store's clock; filled by the store
}

// Queues is a store that keeps queues and lets runs in by them.
//
// S33 A run holds a place in its queue from the claim that begins or resumes it until it
// ends or is interrupted, also while it waits (Run.Placed). A claim, by ids or not, gives a
// place only within Queue.Max, Queue.MaxPerPartition and Queue.Rate, and none while the queue
// is paused, whatever else happens at the same time: the limits are exact over all
// executors. A run that was cancelled before it began needs no place, because it executes
// nothing: it is taken whatever the limits are, and its claim is not counted as one that
// begins a run. Of a queue with a Rate, the claims that begin a run are remembered by the
// store's clock, and no window of Per holds more than Rate of them. If the clock has gone
// back, the next claim that finds a run in line takes those remembered for later as ones of
// its own time. A PutQueue without a Rate forgets them; one with another Rate or Per counts those that are
// remembered.
// S34 Within a queue the partitions take turns, in the order of their bytes: a partition that
// has had its turn gets the next one when each other one with a run that could be let in has
// had one. Concurrent claims may each begin at the same partition, and a claim by ids is no
// turn. Within a
// partition the run with the lowest Rank comes first. Between queues, and between them and
// the runs that need no place, the one that comes first is the one with the lowest Rank
// among those that are next.
// S35 PutQueue is a compare-and-set: it is refused with ErrRevision unless Revision is that of
// the stored queue, 0 if there is none, and once it has returned nil, it holds for every
// claim that begins afterwards.
type Queues interface {
	// PutQueue stores q under its name, at the next revision. It returns ErrInvalid for a
	// queue that Check refuses.
	PutQueue(ctx context.Context, q Queue) error
	// Queue returns a queue as it was put; with Revision 0, and nothing but its name, if it
	// was not. It counts nothing: it costs the same however many runs there are.
	Queue(ctx context.Context, name string) (Queue, error)
	// Queues returns the queues that were put or have unfinished runs, without the others
	// if names are given; in the order of their names. It counts their runs, which takes the
	// longer the more there are.
	Queues(ctx context.Context, names ...string) ([]QueueState, error)
	// Ahead returns how many runs of the same queue and partition come before the run (S34) among
	// those that are due; false if the run is not in line for a place.
	Ahead(ctx context.Context, runID string) (n int64, inLine bool, err error)
}

// QueueState is a queue and its runs.
type QueueState struct {
	Queue
	Placed  int64 // runs that hold a place
	InLine  int64 // runs that are due and need a place
	Delayed int64 // runs that need a place, are not paused, and whose WakeAt has not come
	// Oldest is since when the oldest run in line has been due; 0: none is in line.
	Oldest Time
	// Begun is how many runs have begun within the last Per, of a queue with a Rate, and
	// NextAt is when the rate lets the next one begin; 0: now.
	Begun  int64
	NextAt Time
	// Partitions are those with the most runs in line, then with the most that hold a place,
	// then in the order of their names; at most MaxPartitionsShown, and none without either.
	Partitions []PartitionState
}

// PartitionState is what QueueState says of a partition.
type PartitionState struct {
	Name   string
	Placed int64
	InLine int64
}

// MaxPartitionsShown is how many partitions a QueueState describes.
const MaxPartitionsShown = 100

// Check returns an error that matches ErrInvalid if q makes no sense.
func (q *Queue) Check() error {
	if err := CheckName("queue", q.Name); err != nil {
		return err
	}
	switch {
	case q.Max < 0 || q.MaxPerPartition < 0 || q.Rate < 0 || q.Per < 0:
		return fmt.Errorf("store: queue %q: a limit is negative: %w", q.Name, ErrInvalid)
	case (q.Rate > 0) != (q.Per > 0):
		return fmt.Errorf("store: queue %q: Rate and Per go together: %w", q.Name, ErrInvalid)
	case q.Rate > MaxRate:
		return fmt.Errorf("store: queue %q: a rate of %d; at most %d in a window are supported: choose a shorter Per: %w", q.Name, q.Rate, MaxRate, ErrInvalid)
	case q.Per > 0 && q.Per < time.Millisecond:
		return fmt.Errorf("store: queue %q: Per is %v; the shortest window is a millisecond: %w", q.Name, q.Per, ErrInvalid)
	}
	return nil
}

// MaxRate bounds Queue.Rate, because a store remembers that many claims of a queue.
const MaxRate = 100_000

// QueueRoom is a queue that a Claim may take runs from.
type QueueRoom struct {
	Queue string
	Max   int // how many of its runs this claim may give a place; negative: any number
}

// PriorityStep is what one step of priority is worth in waiting (Run.Rank). It bounds how long
// runs of higher priority can overtake: a run is overtaken by those that are due up to an
// hour later for each step that they are above it.
const PriorityStep = time.Hour

// Placed reports whether r holds a place in its queue (S33).
func (r *Run) Placed() bool {
	return r.Queue != "" && (r.Status == Running || r.Status == Resuming || r.Status == Waiting)
}

// NeedsPlace reports whether a claim of r has to get it a place in its queue. A run that
// was cancelled before it began needs none: it executes nothing.
func (r *Run) NeedsPlace() bool {
	return r.Queue != "" && (r.Status == Interrupted || r.Status == Pending && !r.CancelAsked)
}

// Since returns since when r has been due, if it is due at now: its WakeAt, or its creation
// if it has none or was interrupted. So an interrupted run goes on before runs that were
// created later.
func (r *Run) Since(now Time) Time {
	if r.WakeAt != 0 && r.WakeAt <= now && r.Status != Interrupted {
		return r.WakeAt
	}
	return r.CreatedAt
}

// Rank returns the place in line of a run that is due: the lower, the sooner. It is since when
// the run has been due, earlier by PriorityStep for each step of priority.
//
// For example, a run of priority 2 that has been due since 10:00 ranks like one of
// priority 0 that has been due since 8:00.
func Rank(since Time, priority int32) Time {
	return since - Time(priority)*Time(PriorityStep/time.Microsecond)
}
