package store

import (
	"slices"
	"time"
)

// Executor is one engine on one store, from its Open to its Close. Ids are
// never used twice.
type Executor struct {
	ID   string
	Name string // for people; need not be unique
	Host string
	Boot string // identity of the host's boot; empty: unknown
	PID  int
	// Lease is how long after a beat the executor counts as live.
	Lease  time.Duration
	Serves []Served

	// Leaving, given to Beat, ends the executor: its record is removed and it
	// is not live any more. Not stored.
	Leaving bool

	// Filled by the store.
	StartedAt Time // of the first beat
	BeatAt    Time // of the last one, by the store's clock
	Live      bool // by lease and, where the backend can tell, by presence
}

// Served is a workflow an executor has the code of. A run whose version is not
// among Versions is not for it.
type Served struct {
	Workflow string
	Versions []string
}

// Serves reports whether a run of this workflow and version can be executed
// with one of the served.
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

// Pulse is what a beat brings back.
type Pulse struct {
	Now Time // the store's clock during the beat
	// Next is when to beat again at the latest: the earliest WakeAt in the future
	// among runs that this executor owns or could claim or, where a store with
	// Presence has doubts whether an owner is gone, the time from which it knows;
	// 0: none.
	Next Time
	// Due reports that a run which this executor could claim is due now. S31 Due
	// and Next count runs of every queue, since a beat does not say which queues
	// the executor claims from.
	Due bool
	// Mail lists the runs of this executor with unseen messages (Inbox > Seen).
	Mail []Mail
	// Gone lists all executors that still own unfinished runs and are not live.
	Gone []string
	// Skew is by how much the clock of another executor is known to be ahead of
	// the one that judges this beat; 0: it is not known to be. Where processes
	// bring their own clocks, those must agree.
	Skew time.Duration
	// Late reports that this executor's lease had run out before the beat, so
	// others may have taken its runs in between.
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
// delayed start) has come; interrupted runs that are not parked (Code empty, or
// CodeNotRegistered: then this executor newly serves it); waiting runs without
// a live owner that have a WakeAt in the past, unseen messages or a cancel.
// Paused runs are left alone unless a cancel was asked for. Higher Priority
// first, then the one that waits longest.
//
// With IDs it takes those of them that are not terminal, not parked, not
// paused and without a live owner, whatever their WakeAt: this is how a run
// whose owner died is continued.
type Claim struct {
	Executor string
	Serves   []Served
	Max      int // of runs to take; 0 or less: none
	IDs      []string
	Queues   []QueueLimit
	// Data is put on every event this claim appends: JSON object or nil.
	Data []byte
	// DataOf, if set, returns what is put on the event of one run instead. It
	// is called with the row as it is before it is claimed, which it must not
	// keep or change, by one goroutine at a time, and again when the claim of
	// a run is tried again. It must not call the store.
	DataOf func(r *Run) []byte
	At     Time // of those events; the store raises it to the run's last event
}

// EventData returns what is put on the event by which c claims r.
func (c *Claim) EventData(r *Run) []byte {
	if c.DataOf != nil {
		return c.DataOf(r)
	}
	return c.Data
}

// MayTake reports whether c may take r at now, given whether a live executor owns
// r (S20). Only the limits of queues are not looked at: a claim with IDs takes no
// notice of queues, and one without needs a count of the runs of each.
func (c *Claim) MayTake(r *Run, now Time, ownerLive bool) bool {
	if ownerLive || !Serves(c.Serves, r.Workflow, r.Version) {
		return false
	}
	if len(c.IDs) > 0 {
		return r.Claimable()
	}
	return r.Due(now) && (r.Queue == "" || slices.ContainsFunc(c.Queues, func(q QueueLimit) bool { return q.Queue == r.Queue }))
}

// Take returns the row of r as it is after c has claimed it at now, the time of
// the store's clock, with Last set to the event to append, numbered and sealed.
// last is the last event of r's log. r is not changed; the copy shares its
// attributes.
//
// For example, a waiting run at epoch 7 whose log ends with event 4 comes back
// waiting, owned, at epoch 8, with event 5, run_claimed, of epoch 8.
func (c *Claim) Take(r *Run, last *Event, now Time) Run {
	e := &Event{
		Seq: last.Seq + 1, Epoch: r.Epoch + 1, Branch: r.Branch, Type: RunResumed, At: max(c.At, last.At),
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

// QueueLimit bounds how many runs of a queue are executed at a time, over all
// executors. A claim without IDs takes runs of the unnamed queue, "", always,
// and of a named queue only if it is listed.
type QueueLimit struct {
	Queue string
	Max   int // of runs running or resuming at once; 0: no limit
}

// Codes that a store itself looks at.
const (
	// CodeNotRegistered: no executor had the code of this workflow or version.
	CodeNotRegistered = "not_registered"
)
