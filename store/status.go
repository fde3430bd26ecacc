package store

import "slices"

// Status is the state of a run as its row says it. The row is a cache: the
// events decide (guarantee G6).
type Status string

// The statuses of a run.
const (
	// Pending: created, nothing executed yet; an executor may claim it.
	Pending Status = "pending"
	// Running: its owner executes it.
	Running Status = "running"
	// Resuming: claimed after an interruption; its owner is replaying the
	// history, or has not written anything since. An engine sets Running before
	// the first new body begins.
	Resuming Status = "resuming"
	// Waiting: every branch of it waits for a timer, a signal or a child.
	Waiting Status = "waiting"
	// Interrupted: stopped without an outcome. With an empty Code it is
	// claimable at once; with a Code it is parked until it is resumed.
	Interrupted Status = "interrupted"
	// Completed: the workflow function returned a result.
	Completed Status = "completed"
	// Failed: the workflow ended in an error, or recovery failed it. It may be
	// resumed; Recoverable says whether Resume is offered.
	Failed Status = "failed"
	// Cancelled: ended on request.
	Cancelled Status = "cancelled"
)

// Statuses returns every status, in the order of a run's life.
func Statuses() []Status {
	return []Status{Pending, Running, Resuming, Waiting, Interrupted, Completed, Failed, Cancelled}
}

// Terminal reports whether a run in s has ended. A failed run has ended too,
// though it may be resumed.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Valid reports whether s is one of the declared statuses.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// transitions is the one place where the state machine of a run is declared.
var transitions = map[Status][]Status{
	Pending:  {Running, Interrupted, Failed, Cancelled},
	Running:  {Waiting, Resuming, Interrupted, Completed, Failed, Cancelled},
	Resuming: {Running, Waiting, Resuming, Interrupted, Completed, Failed, Cancelled},
	// Waiting to Completed: recovery may find that there was nothing left to do.
	Waiting:     {Running, Resuming, Interrupted, Completed, Failed, Cancelled},
	Interrupted: {Running, Resuming, Waiting, Failed, Cancelled},
	// A failed run is resumed; a cancelled one only by force.
	Failed:    {Interrupted, Running, Resuming},
	Cancelled: {Interrupted},
	Completed: {},
}

// MayFollow reports whether a run may go from one status to another. Staying in
// a status that is not terminal is always allowed. A Change that asks for any
// other transition is refused with ErrStatus (S9).
func MayFollow(from, to Status) bool {
	if from == to {
		return from.Valid() && !from.Terminal()
	}
	return slices.Contains(transitions[from], to)
}
