package store

import (
	"slices"
	"time"
)

// Type says what an event records.
type Type string

// The types of events. Past tense, one word for one thing; Claims and Stable
// say how recovery treats them.
const (
	// Life of a run.
	WorkflowCreated     Type = "workflow_created"     // Payload: input
	WorkflowStarted     Type = "workflow_started"     // first claim of a pending run
	WorkflowCompleted   Type = "workflow_completed"   // Payload: output
	WorkflowFailed      Type = "workflow_failed"      // Data: error, recoverable
	WorkflowCancelled   Type = "workflow_cancelled"   // Data: reason
	WorkflowInterrupted Type = "workflow_interrupted" // Data: code, reason
	WorkflowRecovered   Type = "workflow_recovered"   // Data: reason, branches, cutoff
	WorkflowContinued   Type = "workflow_continued"   // Payload: next input
	RunResumed          Type = "run_resumed"          // claim of a running or interrupted run
	RunClaimed          Type = "run_claimed"          // claim of a waiting run
	WorkflowPaused      Type = "workflow_paused"      // Data: reason
	WorkflowUnpaused    Type = "workflow_unpaused"
	FailuresReset       Type = "failures_reset"
	AttributesSet       Type = "attributes_set" // Data: the whole set from now on
	InputReplaced       Type = "input_replaced" // of a pending run; Payload: its input from now on

	// Steps.
	StepStarted   Type = "step_started"   // only where the workflow asks for it
	StepCompleted Type = "step_completed" // Payload: result
	StepFailed    Type = "step_failed"    // final failure; it is also the last failed attempt
	AttemptFailed Type = "attempt_failed" // Data: error, next attempt time
	ProgressSaved Type = "progress_saved"

	// Waiting.
	WaitRequested  Type = "wait_requested"
	SignalReceived Type = "signal_received"
	WaitTimedOut   Type = "wait_timed_out"
	WaitClosed     Type = "wait_closed"
	TimerSet       Type = "timer_set"
	TimerFired     Type = "timer_fired"

	// Structure.
	ChildStarted  Type = "child_started"
	ChildFinished Type = "child_finished"
	ItemCompleted Type = "item_completed"
	ItemFailed    Type = "item_failed"
	FirstWon      Type = "first_won"

	// Control.
	CancelReceived Type = "cancel_received"
	Compensated    Type = "compensated"
	Patched        Type = "patched"
	Published      Type = "published"
	Edited         Type = "edited"
	JumpRequested  Type = "jump_requested"
	JumpActivated  Type = "jump_activated"
)

// Types returns every type of event this version knows.
func Types() []Type {
	return []Type{
		WorkflowCreated, WorkflowStarted, WorkflowCompleted, WorkflowFailed, WorkflowCancelled, WorkflowInterrupted,
		WorkflowRecovered, WorkflowContinued, RunResumed, RunClaimed, WorkflowPaused, WorkflowUnpaused, FailuresReset, AttributesSet, InputReplaced,
		StepStarted, StepCompleted, StepFailed, AttemptFailed, ProgressSaved,
		WaitRequested, SignalReceived, WaitTimedOut, WaitClosed, TimerSet, TimerFired,
		ChildStarted, ChildFinished, ItemCompleted, ItemFailed, FirstWon,
		CancelReceived, Compensated, Patched, Published, Edited, JumpRequested, JumpActivated,
	}
}

// Known reports whether t is among Types. A reader must not skip an event that
// it does not know.
func (t Type) Known() bool { return slices.Contains(Types(), t) }

// Claims reports whether t is an event that a claim appends. Claim events at
// the very end of a log mean that the owner has recorded nothing since.
func (t Type) Claims() bool {
	return t == WorkflowStarted || t == RunResumed || t == RunClaimed
}

// Stable reports whether recovery may cut a branch after an event of type t:
// the outcome of a step, child or item, or the answer to a wait.
func (t Type) Stable() bool {
	switch t {
	case StepCompleted, ChildFinished, ItemCompleted, SignalReceived:
		return true
	}
	return false
}

// Event is one entry of a run's log. Backends store every field as given. The
// run id is not part of the record; it is where the event is kept.
type Event struct {
	Seq     int64 // from 1, +1 per event of the run, over all branches
	Epoch   int64 // of its writer; it serves the fence and is not part of history (see Seal)
	Branch  int32
	Type    Type
	Key     string        // of the durable call: "charge", "items[17]/resize#2"; empty for the run itself
	Attempt int32         // 1-based; 0 where it has no meaning
	Ordinal int32         // 1-based place of the call in its scope; 0 for the run itself
	At      Time          // never earlier than that of the event before
	Took    time.Duration // microseconds are kept
	Active  time.Duration // running total of the time the run was executed; microseconds are kept
	Steps   int32         // running total of steps done in this generation
	Data    []byte        // what the event says besides the payload: a JSON object, or nil
	Payload []byte        // user data in its envelope, or nil; any bytes
	Sum     uint32        // Seal of this event and the sum before it
}
