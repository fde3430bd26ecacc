package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/queues"
	"github.com/holdfast-dev/holdfast/store"
)

// Queue says how many runs of a queue are executed at once, and how many begin in a time. A start
// with OnQueue puts its run on a queue; runs on a queue that nobody has declared begin without
// limits.
//
// A run holds a place in its queue from when it begins until it has ended, or has stopped without an
// outcome (it was interrupted, parked, or paused while it was executed): also while it sleeps or
// waits, and if it is paused then. So a limit holds
// for runs that wake up, too, and a run that waits for another run of its own queue may wait for
// ever: let a child have another queue than its parent, if either has a limit.
//
// All limits but MaxPerProcess are stored, and hold exactly over all processes, whichever of them
// has declared them. A program declares its queues with Options.Queues, and the first call of Recover
// on its engine stores them: a program that never calls it, such as one that only mounts the
// terminal, changes no limits. If other limits are stored already, the engine that is recovered last
// wins, and logs a warning with both; an engine that has stored its own never changes them again. A
// queue that is no longer declared keeps its limits: declare it without any to lift them.
type Queue struct {
	// Name of the queue: 1 to 255 bytes of UTF-8 without control characters.
	Name string
	// Max is how many runs may hold a place at once, over all processes. Zero: any number.
	Max int
	// MaxPerProcess is how many of them may be in one process. It holds for the engines that
	// declare it, each by its own number. Zero: any number, within Options.MaxRuns.
	MaxPerProcess int
	// MaxPerPartition is how many runs of one Partition may hold a place at once, over all
	// processes. Zero: any number.
	MaxPerPartition int
	// Rate is how many runs may begin in any time as long as Per, over all processes, by the
	// store's clock: at most 100,000 in at least a millisecond. Zero: any number.
	//
	// It counts runs that begin, at the moment of their claim, which may be some milliseconds
	// from the time of workflow_started in the history. It does not count the calls that the
	// runs make: one that goes on after an interruption does not begin again, and makes its
	// call again. To keep to the rate of a service, leave that much room below it.
	Rate int
	Per  time.Duration
}

// stored returns what a store keeps of q.
func (q *Queue) stored() store.Queue {
	return store.Queue{Name: q.Name, Max: q.Max, MaxPerPartition: q.MaxPerPartition, Rate: q.Rate, Per: q.Per}
}

// QueueError says why a queue cannot be used. It matches ErrInvalid; if the reason is that the
// store cannot keep limits of queues, it also matches errors.ErrUnsupported.
type QueueError struct {
	Queue  string
	Reason string
	err    error
}

func (e *QueueError) Error() string { return fmt.Sprintf("durable: queue %q: %s", e.Queue, e.Reason) }

// Is matches ErrInvalid.
func (e *QueueError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the error behind the reason, nil if there is none.
func (e *QueueError) Unwrap() error { return e.err }

// checkQueues returns why the queues of the options cannot be used.
func (o *Options) checkQueues() error {
	seen := map[string]bool{}
	for i := range o.Queues {
		q := &o.Queues[i]
		stored := q.stored()
		switch err := stored.Check(); {
		case err != nil:
			return &QueueError{Queue: q.Name, Reason: err.Error(), err: err}
		case q.MaxPerProcess < 0:
			return &QueueError{Queue: q.Name, Reason: "MaxPerProcess is negative"}
		case seen[q.Name]:
			return &QueueError{Queue: q.Name, Reason: "it is declared twice in Options.Queues"}
		}
		seen[q.Name] = true
	}
	for _, name := range o.ServeQueues {
		if err := store.CheckName("queue", name); err != nil {
			return &QueueError{Queue: name, Reason: err.Error(), err: err}
		}
	}
	return nil
}

// roomHere returns the limits of queues that hold for this process alone.
func (o *Options) roomHere() map[string]int {
	limits := map[string]int{}
	for i := range o.Queues {
		if q := &o.Queues[i]; q.MaxPerProcess > 0 {
			limits[q.Name] = q.MaxPerProcess
		}
	}
	return limits
}

// queuesFor returns the queues of the options as st keeps them, or why it cannot keep their limits;
// nothing if it keeps no queues and none has any.
func (o *Options) queuesFor(st store.Store) (list []store.Queue, err error) {
	keeps := store.CapabilitiesOf(st).Queues != nil
	for i := range o.Queues {
		q := o.Queues[i].stored()
		switch {
		case keeps:
			list = append(list, q)
		case queues.Limited(&q):
			return nil, &QueueError{
				Queue: q.Name, err: errors.ErrUnsupported,
				Reason: fmt.Sprintf("this store (%T) cannot keep its limits over all processes: use another store, or set MaxPerProcess alone", st),
			}
		}
	}
	return list, nil
}

// inLine is where a run that is started gets in line.
type inLine struct {
	enqueue   bool // only an engine's claim begins it
	queue     string
	partition string
	dedup     string
	priority  int32
	delay     time.Duration // from the start
	at        store.Time    // 0: as delay says
	debounce  *debounce     // nil: the start is one run
}

// waits reports whether the run is only put in line by its start.
func (l *inLine) waits() bool { return l.enqueue || l.queue != "" || l.delay > 0 || l.at != 0 }

// put notes in the row of a new run where it gets in line.
func (l *inLine) put(row *store.Run) {
	row.Queue, row.Partition, row.Dedup, row.Priority, row.WakeAt = l.queue, l.partition, l.dedup, l.priority, l.at
	if l.delay > 0 {
		row.WakeAt = row.CreatedAt.Add(l.delay)
	}
}

// check returns why the options of a start about its queue do not go together.
func (l *inLine) check() error {
	switch {
	case l.partition != "" && l.queue == "":
		return fmt.Errorf("Partition %q needs a queue that it is part of: add OnQueue: %w", l.partition, ErrInvalid)
	case l.delay > 0 && l.at != 0:
		return fmt.Errorf("Delay and StartAt were both given: %w", ErrInvalid)
	}
	return nil
}

// OnQueue puts the run on a queue. Its start only records it, here or in any process; engines that
// serve the queue (Options.ServeQueues), have the workflow's code and have called Recover take it
// when its turn comes and the limits of the queue let it in (Queue). The children of a run are not
// on its queue; started with OnQueue they spread over the processes that serve theirs.
//
// Within a queue the partitions take turns, so that a tenant with a million runs does not hold up one
// with a single run. Within a partition the run comes first that has waited longest; see Priority.
func OnQueue(name string) StartOption {
	return func(o *startOptions) {
		if err := store.CheckName("queue", name); err != nil {
			o.refuse(err)
			return
		}
		o.line.queue = name
	}
}

// Partition names the part of the queue that the run belongs to, such as a tenant: partitions take
// turns, and Queue.MaxPerPartition limits each. It needs OnQueue. A run without one is in the
// partition "".
func Partition(key string) StartOption {
	return func(o *startOptions) {
		if err := store.CheckName("partition", key); err != nil {
			o.refuse(err)
			return
		}
		o.line.partition = key
	}
}

// maxPriority bounds Priority: a run of the highest overtakes those of the lowest that have been
// waiting for up to 83 days, which is as good as always.
const maxPriority = 1000

// Priority lets the run begin before others of its queue and partition: each step counts as an hour
// of waiting. A run of priority 2 begins before one of priority 0 that has been waiting for up to
// two hours longer, and after one that has been waiting for more than that. So no run waits for ever
// behind others, and runs of the same priority begin in the order in which they became due. Among
// runs on no queue, those of higher priority always begin first.
//
// n is from -1000 to 1000; without the option it is 0. Partitions take turns whatever the priorities
// of their runs are.
func Priority(n int) StartOption {
	return func(o *startOptions) {
		if n < -maxPriority || n > maxPriority {
			o.refuse(fmt.Errorf("Priority: %d is not between %d and %d: %w", n, -maxPriority, maxPriority, ErrInvalid))
			return
		}
		o.line.priority = int32(n)
	}
}

// Delay lets the run begin no earlier than this time after its start, by the store's clock. d is at
// most MaxSleep; zero means no delay. The start only records the run; see Enqueue.
func Delay(d time.Duration) StartOption {
	return func(o *startOptions) {
		if d < 0 || d > MaxSleep {
			o.refuse(fmt.Errorf("Delay: %s is not between 0 and %s: %w", d, MaxSleep, ErrInvalid))
			return
		}
		o.line.delay = d
	}
}

// StartAt lets the run begin no earlier than t, by the store's clock. If t has passed, the run
// begins as if it had become due then. t is after the beginning of 1970 and before the year
// 10000. The start only records the run; see Enqueue.
func StartAt(t time.Time) StartOption {
	return func(o *startOptions) {
		if year := t.UTC().Year(); year < 1970 || year > 9999 || t.UnixMicro() <= 0 {
			o.refuse(fmt.Errorf("StartAt: %s is not after 1970 and before the year 10000: %w", t, ErrInvalid))
			return
		}
		o.line.at = store.TimeOf(t)
	}
}

// Dedup gives the run a key that at most one run of the same queue has: as long as that run has not
// ended, another start with the key returns a *ConflictError, whose Holder is the run that has it,
// and changes nothing. (Holder is empty in the conflict of a run id.) The run frees the key when it ends (completed, failed or cancelled), and takes
// it again when Resume continues it after a failure. Starting a run that exists finds it, whoever has
// the key. Runs on no queue share their keys.
func Dedup(key string) StartOption {
	return func(o *startOptions) {
		if err := store.CheckName("deduplication key", key); err != nil {
			o.refuse(err)
			return
		}
		o.line.dedup = key
	}
}

// Enqueue is the start that only records the run: any engine that has the workflow's code and has
// called Recover executes it, this one or another, as it has room. Start executes the run here at
// once, if the code is here, unless OnQueue, Delay, StartAt or Debounce put it in line. Otherwise
// Enqueue is like Start.
//
// Errors are those of Start, except ErrNotRegistered: the code may be elsewhere.
func (w *Workflow[I, O]) Enqueue(ctx context.Context, id string, in I, o ...StartOption) (*Run[O], error) {
	return w.Start(ctx, id, in, append(slices.Clip(o), func(o *startOptions) { o.line.enqueue = true })...)
}

// heldBy returns err, or what it says to a caller of a start if another run has the key of Dedup.
func (o *startOptions) heldBy(err error, id, workflow string) error {
	var other *store.ExistsError
	if o.line.dedup == "" || !errors.As(err, &other) || other.RunID == id {
		return err
	}
	return &ConflictError{RunID: id, Want: workflow, Queue: o.line.queue, Dedup: o.line.dedup, Holder: other.RunID}
}
