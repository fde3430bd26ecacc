package store

import (
	"slices"
	"time"
)

// Executor is one engine on one store, from Open to Close. Its id is never reused.
type Executor struct {
	ID   string
	Name string // for people; need not be unique
	Host string
	Boot string // identity of the host's boot; empty: unknown
	PID  int
	// Lease is how long the executor counts as live after a beat.
	Lease  time.Duration
	Serves []Served

	// Leaving, passed to Beat, ends the executor: its record is removed and it is
	// no longer live. Not stored.
	Leaving bool

	// Filled by the store.
	StartedAt Time // of the first beat
	BeatAt    Time // of the last one, by the store's clock
	Live      bool // by lease and, where the backend can tell, by presence
}

// Served is a workflow whose code an executor has. The executor does not take
// runs whose version is not among Versions.
type Served struct {
	Workflow string
	Versions []string
	// Queues are the named queues from which the executor takes runs of the workflow; empty:
	// every one. Runs on no queue are always taken. It is for those who look who takes a run:
	// what a claim takes is what the Claim says, and no beat looks at it (S31).
	Queues []string `json:",omitempty"`
}

// Takes reports whether an executor that has said that it serves these takes r: it serves
// its workflow and version, and takes runs from its queue.
func Takes(served []Served, r *Run) bool {
	for i := range served {
		s := &served[i]
		if s.Workflow == r.Workflow && slices.Contains(s.Versions, r.Version) && (r.Queue == "" || len(s.Queues) == 0 || slices.Contains(s.Queues, r.Queue)) {
			return true
		}
	}
	return false
}

// Serves reports whether one of served can execute a run of this workflow and
// version.
func Serves(served []Served, workflow, version string) bool {
	for _, s := range served {
		if s.Workflow != workflow {
			continue
		}
		for _, v := range s.Versions {
			if v == version {
				return true
			}
		}
	}
	return false
}

// Pulse is the result of a beat.
type Pulse struct {
	Now Time // the store's clock during the beat
	// Next is the latest time for the next beat: the earliest future WakeAt among
	// the runs that this executor owns or could claim, or, if that is earlier,
	// the time at which a store with Presence that suspects an owner to be gone
	// will know. 0: none.
	Next Time
	// Due reports that a run which this executor could claim is due now. S31 Due
	// and Next count runs of every queue, because a beat does not say which
	// queues the executor claims from.
	Due bool
	// Mail lists the runs of this executor with unseen messages (Inbox > Seen).
	Mail []Mail
	// Gone lists all executors that still own unfinished runs and are not live.
	Gone []string
	// Skew is how far another executor's clock is known to be ahead of the clock
	// that judges this beat; 0: no clock is known to be ahead. Where each process
	// uses its own clock, the clocks must agree.
	Skew time.Duration
	// Late reports that this executor's lease had expired before the beat, so
	// other executors may have taken its runs in between. A store that sends a beat
	// again, because the answer was lost, says so where it does not know.
	Late bool
}

// Mail says how many messages a run has received in all.
type Mail struct {
	RunID string
	Inbox int64
}

// Claim asks for runs to execute.
//
// Without IDs it takes what is due and free: pending runs whose WakeAt (a
// delayed start) has come; interrupted runs that are not parked (Code is empty,
// or CodeNotRegistered and this executor now serves the run); waiting runs
// without a live owner that have a WakeAt in the past, unseen messages or a
// cancel. Paused runs are left alone unless a cancel was requested. Higher
// Priority comes first, then the longest wait. In a named queue runs get a place in the
// order, and within the limits, that Queues states.
//
// With IDs it takes those of the named runs that are not terminal, not parked,
// not paused and without a live owner, whatever their WakeAt. This is how a run
// is continued whose owner died. Queues are ignored, but not the limits of a named
// queue (S33).
type Claim struct {
	Executor string
	Serves   []Served
	Max      int // of runs to take; 0 or less: none
	IDs      []string
	// Queues are the named queues to take runs from, each listed once. A claim without IDs
	// always takes runs of the unnamed queue, "", and takes those of a named queue only if it
	// is listed or AnyQueue is set.
	Queues []QueueRoom
	// AnyQueue: the claim also takes runs of the named queues that are not listed, any
	// number of each.
	AnyQueue bool
	// Held, if set, is called, before Claim returns, for each queue that it takes runs from
	// with a due run that it could not give a place because of a limit of the queue: not if
	// the claim took Max runs, nor of a queue for which it has no room left. until is when
	// the rate lets one of those runs begin; 0 if for each of them a place must become free or
	// the queue be resumed first. A claim with IDs does not call it. It must not call the store.
	Held func(queue string, until Time)
	// Data is put on every event this claim appends: JSON object or nil.
	Data []byte
	// DataOf, if set, replaces Data: it returns what is put on the event of one
	// run. It receives the row as it was before the claim, and must neither keep
	// nor change it. One goroutine at a time calls it, and calls it again when
	// the claim of a run is retried. It must not call the store.
	DataOf func(r *Run) []byte
	// Spare, if set, reports whether the claim passes over a run that it would take, and leaves
	// it as it is. It receives the row as it was before the claim, with the last event of its
	// log in Last, whose data and payload may be missing, and must neither keep nor change it.
	// One goroutine at a time calls it, perhaps more than once for a run. It must not call the
	// store.
	Spare func(r *Run) bool
	// Created, if set, may be called, before Claim returns, for a run it takes that nobody had
	// touched since its creation: its log was one event, and it has neither messages nor
	// branches. Then created, as Load would return it, and the Last of the run are the whole
	// history, and the caller need not load the run. A store calls it as it likes, and with
	// small events only; one goroutine at a time. It must not call the store.
	Created func(runID string, created Event)
	At      Time // time of those events; the store raises it to that of the run's last event, and to the time it waited for
}

// EventData returns the data of the event by which c claims r.
func (c *Claim) EventData(r *Run) []byte {
	if c.DataOf != nil {
		return c.DataOf(r)
	}
	return c.Data
}

// MayTake reports whether c may take r at now, given whether a live executor owns
// r (S20). It checks everything except the limits of queues (S33).
func (c *Claim) MayTake(r *Run, now Time, ownerLive bool) bool {
	if ownerLive || !Serves(c.Serves, r.Workflow, r.Version) {
		return false
	}
	if len(c.IDs) > 0 {
		return r.Claimable()
	}
	_, takes := c.Room(r.Queue)
	return takes && r.Due(now)
}

// Spares reports whether c passes over r, whose log ends with last, although it may take it.
func (c *Claim) Spares(r *Run, last *Event) bool {
	if c.Spare == nil {
		return false
	}
	row := *r
	row.Last = last
	return c.Spare(&row)
}

// Room returns how many runs of a queue c may give a place, negative if any number, and
// whether it takes runs from that queue at all. A claim with IDs takes them from any.
func (c *Claim) Room(queue string) (most int, takes bool) {
	if queue == "" || len(c.IDs) > 0 {
		return -1, true
	}
	for i := range c.Queues {
		if c.Queues[i].Queue == queue {
			return c.Queues[i].Max, true
		}
	}
	return -1, c.AnyQueue
}

// Take returns the row of r after c has claimed it at now, by the store's clock,
// with Last set to the event to append, numbered and sealed. last is the last
// event of r's log. r is not changed; the copy shares its attributes.
//
// For example, a waiting run at epoch 7 whose log ends with event 4 comes back
// waiting, owned, at epoch 8, with event 5, run_claimed, of epoch 8.
func (c *Claim) Take(r *Run, last *Event, now Time) Run {
	at := max(c.At, last.At)
	if r.WakeAt <= now {
		at = max(at, r.WakeAt) // which may have come since c was made: it waits for whoever writes
	}
	e := &Event{
		Seq: last.Seq + 1, Epoch: r.Epoch + 1, Branch: r.Branch, Type: RunResumed, At: at,
		Active: last.Active, Steps: last.Steps, Data: c.EventData(r),
	}
	t := *r
	t.Strikes = r.NextStrikes(last.Type)
	switch r.Status {
	case Pending:
		e.Type, t.Status, t.StartedAt = WorkflowStarted, Running, e.At
	case Waiting:
		e.Type = RunClaimed
	default:
		t.Status = Resuming
		t.Resumes++
	}
	e.Sum = Seal(r.ID, last.Sum, e)
	t.Epoch, t.Owner, t.UpdatedAt, t.Last = e.Epoch, c.Executor, max(r.UpdatedAt, now), e
	return t
}

// Codes that stores themselves check.
const (
	// CodeNotRegistered: no executor had the code of this workflow or version.
	CodeNotRegistered = "not_registered"
)
