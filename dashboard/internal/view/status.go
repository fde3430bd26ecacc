package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// An Icon is a symbol of the sheet and its colour.
type Icon struct{ Name, Class string }

// A Status is a status with its shape and colour. The word is always there, too.
type Status struct {
	Class string
	Icon  string
	Word  string
}

// StatusOf returns how the status of a run is shown.
func StatusOf(r *store.Run) Status {
	switch {
	case r.Status == store.Failed && r.Recoverable:
		return Status{"fail", "recoverable", "Failed"}
	case r.CancelAsked && !r.Status.Terminal():
		return Status{"off", "cancelled", "Cancelling"}
	case r.Paused:
		return Status{"off", "interrupted", "Paused"}
	case r.Status == store.Interrupted && r.Code != "":
		return Status{"fail", "stuck", "Parked"}
	}
	return Statuses[r.Status]
}

// HowFailed returns the status of a run that has failed, in words.
func HowFailed(o *outline.Outline) string {
	switch {
	case o.Damage != nil:
		return "Failed, damaged"
	case o.Run.Recoverable:
		return "Failed, can be resumed"
	}
	return "Failed, final"
}

// Statuses are how the statuses are shown where nothing but the status is known.
var Statuses = map[store.Status]Status{
	store.Pending:     {"off", "pending", "Pending"},
	store.Running:     {"run", "running", "Running"},
	store.Resuming:    {"resume", "resuming", "Resuming"},
	store.Waiting:     {"wait", "waiting", "Waiting"},
	store.Interrupted: {"off", "interrupted", "Interrupted"},
	store.Completed:   {"done", "done", "Completed"},
	store.Failed:      {"fail", "failed", "Failed"},
	store.Cancelled:   {"off", "cancelled", "Cancelled"},
}

// ToneIcons are the symbols of verdicts.
var ToneIcons = map[outline.Tone]Icon{
	outline.ToneDone:    {"done", "c-done"},
	outline.ToneRun:     {"running", "c-run"},
	outline.ToneResume:  {"resuming", "c-resume"},
	outline.ToneWait:    {"waiting", "c-wait"},
	outline.ToneIdle:    {"timer", "c-wait"},
	outline.ToneFail:    {"recoverable", "c-fail"},
	outline.ToneStuck:   {"stuck", "c-fail"},
	outline.ToneOff:     {"interrupted", "c-off"},
	outline.TonePending: {"pending", "c-off"},
}

// RowIcon is the symbol of a row of the timeline.
func RowIcon(r *outline.Row) Icon {
	if r.Kind == outline.Map && r.ItemsFailed > 0 {
		return Icon{"recoverable", "c-fail"} // however the workflow handled it
	}
	switch r.State {
	case outline.Expected:
		return Icon{"pending", "c-off"}
	case outline.Failed:
		if r.Kind == outline.Child {
			return Icon{"child", "c-fail"}
		}
		return Icon{"recoverable", "c-fail"}
	case outline.Backoff:
		return Icon{"retry", "c-fail"}
	case outline.Stopped:
		return Icon{"interrupted", "c-off"}
	case outline.Closed:
		return Icon{"cancelled", "c-off"}
	case outline.TimedOut:
		return Icon{"timer", "c-fail"}
	case outline.Waiting:
		switch r.Kind {
		case outline.Timer:
			return Icon{"timer", "c-wait"}
		case outline.Child:
			return Icon{"child", "c-wait"}
		}
		return Icon{"waiting", "c-wait"}
	case outline.Running:
		return Icon{"running", "c-run"}
	}
	switch {
	case r.Edited != nil:
		return Icon{"done", "c-resume"}
	case r.Kind == outline.Timer:
		return Icon{"timer", "c-off"}
	case r.Kind == outline.Child:
		return Icon{"child", "c-done"}
	}
	return Icon{"done", "c-done"}
}

// unclaimedFor is how long a run without an owner counts as about to be claimed.
const unclaimedFor = 5 * time.Second

// ShownStuck reports whether a run that operate.Operator.Stuck lists has that for its status: a
// cancel says more, and a program that is deployed anew is away for a moment.
func ShownStuck(run *store.Run, now store.Time) bool {
	if run.Status == store.Failed || run.Paused {
		return false
	}
	parked := run.Status == store.Interrupted && run.Code != ""
	return parked || !run.CancelAsked && now.Sub(run.UpdatedAt) >= unclaimedFor
}

// IsStuck reports whether a run is stuck although its status does not say so: its process
// is gone, or no live process has its code.
func IsStuck(o *outline.Outline) bool {
	run := &o.Run
	if run.Status.Terminal() || run.Code != "" || o.Verdict.Tone != outline.ToneStuck || !ShownStuck(run, o.Now) {
		return false
	}
	return !o.Served || run.Status == store.Running || run.Status == store.Resuming
}

// Nobody says why no process executes a run that has not ended, and what to do. It is
// empty if a process executes the run or will claim it, and if the run has ended.
func Nobody(r *store.Run, executors []store.Executor) string {
	if r.Status.Terminal() {
		return ""
	}
	served := ServedBy(executors, r)
	owned := slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && x.ID == r.Owner })
	code := "workflow " + r.Workflow
	if r.Version != "" && r.Version != durable.DefaultVersion {
		code += " version " + r.Version
	}
	switch {
	case r.Paused && !r.CancelAsked: // a cancel ends a pause
		return "it is paused: unpause it to let it go on"
	case r.Status == store.Interrupted && r.Code != "" && r.Code != store.CodeNotRegistered && !r.Paused:
		return "it was stopped and waits for a person: resume it"
	case owned:
		return ""
	case !served:
		return "nobody alive serves " + code + FromQueue(executors, r) + ": start a program that does"
	case r.Status == store.Running || r.Status == store.Resuming:
		return "its process is gone: another one that serves it takes it over, or resume it"
	}
	return ""
}

// ServedBy reports whether a live executor has the code of a run and takes runs from its
// queue.
func ServedBy(executors []store.Executor, r *store.Run) bool {
	return slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && store.Takes(x.Serves, r) })
}

// FromQueue says from which queue a process must take runs to take this one; empty: its code
// is enough, or what is missing is the code.
func FromQueue(executors []store.Executor, r *store.Run) string {
	coded := slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && store.Serves(x.Serves, r.Workflow, r.Version) })
	if r.Queue == "" || !coded {
		return ""
	}
	return " from queue " + r.Queue
}

// Cannot returns why an act without a plan would be refused; empty: it would not.
func Cannot(act string, o *outline.Outline) string {
	run := &o.Run
	ended := run.Status.Terminal()
	switch {
	case o.LastSeq == 0 && act != "edit":
		return fmt.Sprintf("No event of %s is left: nothing can be done with it but to delete what there is.", run.ID)
	case o.Damage != nil && (act == "resume" || act == "fork" || act == "edit"):
		return fmt.Sprintf("%s is damaged. First %s.", run.ID, MendAdvice(run.ID, false))
	case (act == "pause" || act == "unpause" || act == "cancel") && ended:
		return fmt.Sprintf("%s has ended (%s).", run.ID, run.Status)
	case act == "pause" && run.Paused:
		return run.ID + " is paused already."
	case act == "unpause" && !run.Paused:
		return fmt.Sprintf("%s is not paused (%s).", run.ID, run.Status)
	case act == "edit" && !ended && o.Attended:
		return run.ID + " is being executed. Pause it first: then its results can be edited."
	}
	return ""
}

// IsEditable reports whether the outcome of a row can be replaced: the result of a step,
// an item or a child, or an answer.
func IsEditable(r *outline.Row) bool {
	switch r.Kind {
	case outline.Step, outline.Item, outline.Wait, outline.Approval, outline.Child:
		return r.Outcome != 0 && r.State != outline.Closed
	}
	return false
}
