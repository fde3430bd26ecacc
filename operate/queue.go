package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/schedules"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// A Queue is a queue, how many of its runs hold a place, are in line for one or are delayed,
// and why those in line wait.
type Queue struct {
	store.QueueState
	// Waits says why the runs in line wait. Each is counted for one reason, the first that
	// keeps it in line.
	Waits []QueueWait
	// Failed is how many runs of the queue have failed: its dead letters.
	Failed int64
}

// A QueueWait is a number of runs of a queue that are in line for the same reason.
type QueueWait struct {
	Reason    WaitReason
	Partition string     // PartitionAtLimit: which one
	Runs      int64      // of the queue
	Until     store.Time // QueueRate: when the next one begins
}

// A WaitReason says what keeps runs in line for a place in their queue. Its String is a sentence
// for people.
type WaitReason = outline.Reason

// The reasons.
const (
	QueuePaused      WaitReason = outline.QueuePaused      // somebody has paused the queue
	QueueUnserved    WaitReason = outline.Unserved         // no live executor has the code of their workflow
	QueueAtLimit     WaitReason = outline.AtLimit          // as many hold a place as the queue allows
	PartitionAtLimit WaitReason = outline.PartitionAtLimit // as many hold a place as it allows of their partition
	QueueRate        WaitReason = outline.ByRate           // the rate lets none begin before QueueWait.Until
	QueueFree        WaitReason = outline.Free             // nothing: an executor is about to take them, or none has room
)

// A Line says where a run stands in line for a place in its queue, and what holds it up.
type Line struct {
	Queue     store.QueueState
	Partition string
	Position  int64 // among the runs of its partition that are due; 1: it is next of them
	Served    bool  // a live executor serves its workflow and version
}

// Reason returns what keeps the run in line, and if that is the rate of the queue, until
// when.
func (l *Line) Reason() (WaitReason, store.Time) { return (*outline.Line)(l).Reason() }

// String says where the run stands: "3rd in line of emails, partition acme".
func (l *Line) String() string { return (*outline.Line)(l).Place().String() }

// Queues returns the queues with these names, or, without names, all that were defined or
// have unfinished runs, in the order of their names.
//
// Errors: durable.ErrNotFound for a name of which there is no queue; durable.ErrUnavailable;
// errors.ErrUnsupported when names are given and the store keeps no queues.
func (op *Operator) Queues(ctx context.Context, names ...string) ([]Queue, error) {
	kept, err := op.queues()
	if err != nil {
		if len(names) == 0 {
			err = nil // there are none
		}
		return nil, err
	}
	states, err := kept.Queues(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("durable: listing queues: %w", storeError(err))
	}
	failed, err := op.store.Count(ctx, store.Filter{Queues: names, Statuses: []store.Status{store.Failed}}, store.ByQueue)
	if err != nil {
		return nil, fmt.Errorf("durable: counting dead letters: %w", storeError(err))
	}
	delete(failed, "")
	// Of a queue that was never defined, dead letters may be all that is left.
	for name := range failed {
		if !slices.ContainsFunc(states, func(s store.QueueState) bool { return s.Name == name }) {
			states = append(states, store.QueueState{Queue: store.Queue{Name: name}})
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(states, func(s store.QueueState) bool { return s.Name == name }) {
			return nil, noQueue(name)
		}
	}
	slices.SortFunc(states, func(a, b store.QueueState) int { return cmp.Compare(a.Name, b.Name) })
	live, err := op.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("durable: listing executors: %w", storeError(err))
	}
	list := make([]Queue, 0, len(states))
	for i := range states {
		s := &states[i]
		unserved, err := op.unserved(ctx, live, s)
		if err != nil {
			return nil, err
		}
		q := Queue{QueueState: *s, Failed: failed[s.Name]}
		for _, w := range outline.WaitsOf(s, unserved) {
			q.Waits = append(q.Waits, QueueWait(w))
		}
		list = append(list, q)
	}
	return list, nil
}

// queues returns the queues of the store.
func (op *Operator) queues() (store.Queues, error) {
	if kept := store.CapabilitiesOf(op.store).Queues; kept != nil {
		return kept, nil
	}
	return nil, fmt.Errorf("durable: this store keeps no queues: %w", errors.ErrUnsupported)
}

// queue returns a queue as it was put, or, of one that was not, only its name; an error if there
// is no such queue. It counts the runs of a queue only if it was not put.
func (op *Operator) queue(ctx context.Context, kept store.Queues, name string) (store.Queue, error) {
	q, err := kept.Queue(ctx, name)
	switch {
	case err != nil:
		return store.Queue{}, fmt.Errorf("durable: looking at queue %q: %w", name, storeError(err))
	case q.Revision > 0:
		return q, nil
	}
	found, err := op.Queues(ctx, name)
	if err != nil {
		return store.Queue{}, err
	}
	return found[0].Queue, nil
}

// noQueue is the error for the name of a queue that does not exist.
type noQueue string

func (name noQueue) Error() string {
	return fmt.Sprintf("durable: there is no queue %q: none with that name was defined, and no unfinished run is on it", string(name))
}

// Is matches durable.ErrNotFound, whose own text is about runs.
func (noQueue) Is(target error) bool { return target == durable.ErrNotFound }

// maxUnserved is how many runs that nobody serves are looked at, to tell those in line from others
// such as delayed ones. If there are more, as many are taken to be delayed as there are at all.
const maxUnserved = 5000

// unserved counts the runs of a queue that are in line for a place and that no live executor serves.
func (op *Operator) unserved(ctx context.Context, live *stuck.Live, s *store.QueueState) (n int64, err error) {
	if s.InLine == 0 {
		return 0, nil
	}
	failed := func(err error) error {
		return fmt.Errorf("durable: queue %q: counting its runs: %w", s.Name, storeError(err))
	}
	kinds, err := stuck.KindsOf(ctx, op.store)
	if err != nil {
		return 0, failed(err)
	}
	seen := 0
	filters := live.UnservedIn(s.Name, kinds)
	for _, f := range filters {
		f.OldestFirst = true
		for row, err := range op.desk.Runs(ctx, f) {
			if err != nil {
				return 0, failed(err)
			}
			if seen++; seen > maxUnserved {
				all := -s.Delayed
				for _, f := range filters {
					runs, err := op.store.Count(ctx, f, "")
					if err != nil {
						return 0, failed(err)
					}
					all += runs[""]
				}
				return max(n, all), nil
			}
			if row.NeedsPlace() && row.Due(op.desk.Now()) {
				n++
			}
		}
	}
	return n, nil
}

// Line returns where a run stands in line for a place in its queue; nil: it is in no line,
// because it holds a place, has ended, is delayed, paused or parked, or has no queue.
//
// Errors: durable.ErrNotFound; durable.ErrUnavailable.
func (op *Operator) Line(ctx context.Context, runID string) (*Line, error) {
	kept, err := op.queues()
	if err != nil {
		return nil, nil // then no run is on a queue
	}
	ahead, inLine, err := kept.Ahead(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", runID, storeError(err))
	}
	if !inLine {
		return nil, nil
	}
	h, err := op.store.Load(ctx, runID, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", runID, storeError(err))
	}
	states, err := kept.Queues(ctx, h.Run.Queue)
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: reading queue %q: %w", runID, h.Run.Queue, storeError(err))
	}
	if len(states) == 0 {
		return nil, nil // it has got its place meanwhile, and has ended
	}
	live, err := op.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("durable: listing executors: %w", storeError(err))
	}
	return &Line{Queue: states[0], Partition: h.Run.Partition, Position: ahead + 1, Served: live.Serves(&h.Run)}, nil
}

// PauseQueue keeps runs of a queue from getting a place until ResumeQueue. Those that hold
// one go on, and new ones get in line. reason is shown to people. It holds for every
// claim that begins after PauseQueue has returned, in all processes, and outlives them.
// A queue that is paused stays so, for the new reason.
//
// Errors: durable.ErrNotFound; durable.ErrUnavailable.
func (op *Operator) PauseQueue(ctx context.Context, name, reason string) error {
	return op.changeQueue(ctx, name, func(q *store.Queue) { q.Paused, q.Reason = true, guard.Text(reason, schedules.MaxReason) })
}

// ResumeQueue lets the runs of a paused queue get places again. A queue that is not paused
// stays as it is.
//
// Errors: durable.ErrNotFound; durable.ErrUnavailable.
func (op *Operator) ResumeQueue(ctx context.Context, name string) error {
	err := op.changeQueue(ctx, name, func(q *store.Queue) { q.Paused, q.Reason = false, "" })
	if err == nil {
		op.desk.Nudge()
	}
	return err
}

// changeQueue stores the queue as change leaves it. Whoever else changes it at the same
// time, such as a program that opens with another definition, keeps what it has
// changed.
func (op *Operator) changeQueue(ctx context.Context, name string, change func(*store.Queue)) error {
	if err := op.desk.OutsideFunction(ctx, "a change of queue "+name); err != nil {
		return err
	}
	kept, err := op.queues()
	if err != nil {
		return err
	}
	for {
		was, err := op.queue(ctx, kept, name)
		if err != nil {
			return err
		}
		q := was
		if change(&q); q == was {
			return nil
		}
		err = kept.PutQueue(ctx, q)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrRevision):
			return fmt.Errorf("durable: changing queue %q: %w", name, storeError(err))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// DeadLetters returns a page of the failed runs of a queue, the oldest first: limit of
// them, 0: store.DefaultLimit. after is the Next of the page before; empty: the first.
//
// Errors: durable.ErrNotFound if there is no such queue; durable.ErrInvalid for an after
// that is no Next of these pages; durable.ErrUnavailable.
func (op *Operator) DeadLetters(ctx context.Context, queue string, limit int, after string) (store.Page, error) {
	if limit < 0 {
		return store.Page{}, fmt.Errorf("durable: queue %q: a page of %d dead letters: %w", queue, limit, durable.ErrInvalid)
	}
	kept, err := op.queues()
	if err != nil {
		return store.Page{}, err
	}
	if _, err := op.queue(ctx, kept, queue); err != nil {
		return store.Page{}, err
	}
	f := deadLetters(queue)
	f.Limit, f.After, f.WithLast = limit, after, true
	return op.eng.List(ctx, f)
}

func deadLetters(queue string) store.Filter {
	return store.Filter{Queues: []string{queue}, Statuses: []store.Status{store.Failed}, OldestFirst: true}
}

// RetryOptions change how dead letters are retried.
type RetryOptions struct {
	// DryRun returns the plans and changes nothing.
	DryRun bool
}

// RetryDeadLetter lets a failed run of a queue get in line again. Like Resume it goes on
// from the failure that ended it, with the attempts of that step again; a run in
// which nothing was recorded begins again from its input.
//
// Errors: those of Resume; *durable.NotResumableError for a run that has not failed, or is
// on no queue.
func (op *Operator) RetryDeadLetter(ctx context.Context, runID string, o RetryOptions) (Plan, error) {
	h, err := op.store.Load(ctx, runID, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1})
	switch {
	case err != nil:
		return Plan{}, fmt.Errorf("durable: run %s: %w", runID, storeError(err))
	case h.Run.Queue == "":
		return Plan{}, &durable.NotResumableError{RunID: runID, Status: h.Run.Status, Reason: "it is on no queue"}
	case h.Run.Status != store.Failed:
		return Plan{}, &durable.NotResumableError{RunID: runID, Status: h.Run.Status, Reason: "it has not failed"}
	}
	plan, err := op.Resume(ctx, runID, ResumeOptions{DryRun: o.DryRun})
	if none := (*CheckpointError)(nil); errors.As(err, &none) {
		// Nothing is recorded, so nothing can happen twice.
		return op.Resume(ctx, runID, ResumeOptions{DryRun: o.DryRun, Force: true})
	}
	return plan, err
}

// RetryDeadLetters does the same for all failed runs of a queue, the oldest first, and yields
// the plan of each, with an error if it was refused; Plan.RunID names the run. It ends after
// an error of the listing, which names no run, and when ctx ends. A run that fails
// again meanwhile is not tried twice.
//
// Errors are those of RetryDeadLetter, each beside its Plan; durable.ErrUnavailable ends the sequence.
func (op *Operator) RetryDeadLetters(ctx context.Context, queue string, o RetryOptions) iter.Seq2[Plan, error] {
	return func(yield func(Plan, error) bool) {
		kept, err := op.queues()
		if err == nil {
			_, err = op.queue(ctx, kept, queue)
		}
		if err != nil {
			yield(Plan{}, err)
			return
		}
		for row, err := range op.desk.Runs(ctx, deadLetters(queue)) {
			if err != nil {
				yield(Plan{}, fmt.Errorf("durable: listing the dead letters of queue %q: %w", queue, storeError(err)))
				return
			}
			plan, err := op.RetryDeadLetter(ctx, row.ID, o)
			plan.RunID = row.ID
			if !yield(plan, err) || ctx.Err() != nil {
				return
			}
		}
	}
}
