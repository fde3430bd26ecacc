// Package stuck says why runs cannot go on by themselves, and what to do. Recover in
// package durable reports them, and Stuck in package operate lists them. The package
// looks at rows, and knows neither an engine nor a store.
//
//   - stuck.go: a run that is stuck, by the code that says why, and what has parked it
//   - live.go: the executors that are alive, and the runs that none of them serves
package stuck

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// The codes of stuck runs. Those that history knows, and store.CodeNotRegistered, are
// among them.
const (
	CodeChildMissing       = "child_missing"
	CodeChildNotRegistered = "child_not_registered"
	CodeDamaged            = "damaged"
	CodeDefinitionChanged  = "definition_changed"
	CodeOrphaned           = "orphaned"
	CodePaused             = "paused"
	CodeQuarantined        = "quarantined"
	CodeStranded           = "stranded"
	CodeQueueNotServed     = "queue_not_served"
	CodeUndecodable        = "undecodable"
	CodeUnrecorded         = "unrecorded"
	CodeUnrecoverable      = "unrecoverable"
)

// A Run is a run that cannot go on: why, and what to do.
type Run struct {
	RunID    string
	Workflow string
	Version  string
	Code     string
	Reason   string
	Next     string
	Since    store.Time
}

// Of describes the run with this row as stuck.
func Of(row *store.Run, code, reason string) Run {
	s := Run{RunID: row.ID, Workflow: row.Workflow, Version: row.Version, Code: code, Reason: reason, Since: row.UpdatedAt}
	switch code {
	case store.CodeNotRegistered:
		s.Next = "run a program that serves workflow " + row.Workflow
		if row.Version != "" {
			s.Next += fmt.Sprintf(" version %s (durable.Define with durable.Version(%q); several versions may be registered at once)", row.Version, row.Version)
		}
	case CodeDefinitionChanged:
		s.Next = fmt.Sprintf("run the code that recorded it, which the reason names, or mend the difference, then operate.On(engine).Resume(ctx, %q)", row.ID)
	case CodeDamaged:
		s.Next = fmt.Sprintf("see what operate.On(engine).Verify(ctx, %q) finds, then operate.On(engine).Repair", row.ID)
		if reason == history.ErrNoHistory.Error() {
			s.Next = "delete what is left of it, and import a copy if there is one"
		}
	case CodePaused:
		s.Next = fmt.Sprintf("Engine.Unpause(ctx, %q)", row.ID)
	case CodeUndecodable:
		if history.UnreadInput(code, reason) {
			s.Next = fmt.Sprintf("start another run with an input that the code can read, and Engine.Cancel(ctx, %q); or run a program that can read this one, then operate.On(engine).Resume", row.ID)
			break
		}
		s.Next = fmt.Sprintf("run a program that can read it (Options.Types, Encrypt and Codec; the type in the code), then operate.On(engine).Resume(ctx, %q)", row.ID)
	case CodeUnrecorded:
		s.Next = fmt.Sprintf("mend what the reason names: durable.Recover of another build (Options.Build) then continues it, and operate.On(engine).Resume(ctx, %q) makes the call again at once", row.ID)
	case CodeChildNotRegistered:
		s.Next = fmt.Sprintf("add the child's workflow to Options.Workflows, and call Recover or operate.On(engine).Resume(ctx, %q); what another program executes is started with durable.Ref", row.ID)
	case CodeChildMissing:
		s.Next = AdviceMissing(row)
	case history.CodeImporting:
		s.Next = "import the same file again, which finishes it; or delete the run"
	case CodeQuarantined:
		s.Next = AdviceQuarantined(row.ID)
	case CodeUnrecoverable:
		s.Next = fmt.Sprintf("look at its events (Engine.History(ctx, %q)) and decide from where it goes on", row.ID)
	default:
		s.Next = fmt.Sprintf("find the cause, then operate.On(engine).Resume(ctx, %q)", row.ID)
	}
	return s
}

// NotServed says why a program cannot execute the run with this row. The program has
// these versions of the run's workflow, none if nil, and these workflows.
func NotServed(row *store.Run, versions, workflows []string) string {
	switch {
	case versions == nil && len(workflows) == 0:
		return fmt.Sprintf("workflow %s is not registered here, and no other is", row.Workflow)
	case versions == nil:
		return fmt.Sprintf("workflow %s is not registered here; registered: %s", row.Workflow, someOf(workflows))
	}
	s := fmt.Sprintf("version %s of workflow %s is not registered here; registered: %s", row.Version, row.Workflow, someOf(versions))
	if row.InitialVersion != "" && row.InitialVersion != row.Version {
		s += fmt.Sprintf(" (and neither is version %s, with which the run was started)", row.InitialVersion)
	}
	return s
}

// someOf joins names, and says how many more there are.
func someOf(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Paused describes the run with this row as paused.
func Paused(row *store.Run) Run {
	reason := "paused"
	if row.Status == store.Interrupted && row.Code == "" && row.Reason != "" {
		reason = row.Reason
	}
	return Of(row, CodePaused, reason)
}

// Orphaned describes the run with this row as one that no executor executes.
func Orphaned(row *store.Run) Run {
	return Of(row, CodeOrphaned, "its process is gone, and no other has taken it over")
}

// Unheard describes the run with this row as one that waits for a child of whose end it
// will not hear; missing: the child is not in the store.
func Unheard(row *store.Run, missing bool, reason, next string) Run {
	code := CodeStranded
	if missing {
		code = CodeChildMissing
	}
	s := Of(row, code, reason)
	s.Next = next
	return s
}

// AdviceMissing says what lets a run go on that waits for a child that is not in the
// store. Importing a child that has ended tells the outcome to a run that waits for it.
func AdviceMissing(parent *store.Run) string {
	s := "import or restore the child"
	if parent.Status == store.Waiting {
		s += ", and resume that one if it has not ended"
	} else {
		s += fmt.Sprintf(", then operate.On(engine).Resume(ctx, %q)", parent.ID)
	}
	return s + fmt.Sprintf("; or go back to before the call that started it with operate.On(engine).Jump(ctx, %q, ...), so that another one is started", parent.ID)
}

// AdviceQuarantined says what to do about a run that has ended its processes.
func AdviceQuarantined(id string) string {
	return fmt.Sprintf("find out how those processes ended (their own last lines, the system's log for a lack of memory or a kill from outside); if it was this run, mend the step; then operate.On(engine).Resume(ctx, %q)", id)
}

// ParkedBy returns the error that has parked a run with these events, nil if none is recorded.
func ParkedBy(events []store.Event) *history.Error {
	for i := len(events) - 1; i >= 0; i-- {
		if ev := &events[i]; ev.Type == store.WorkflowInterrupted {
			d, err := history.Of[history.Stop](ev)
			if err != nil {
				return nil
			}
			return d.Error
		}
	}
	return nil
}

// ReadByBody returns the last event that holds what has this name, one of those below; nil: it is
// nothing that the body of a step reads.
func ReadByBody(events []store.Event, name string) *store.Event {
	for i := len(events) - 1; i >= 0; i-- {
		ev := &events[i]
		switch ev.Type {
		case store.ProgressSaved:
			if d, err := history.Of[history.Progress](ev); err == nil && NameOfProgress(ev.Key, d.Slot) == name {
				return ev
			}
		case store.AttemptFailed:
			if NameOfOutput(ev.Key, int(ev.Attempt)) == name {
				return ev
			}
		}
	}
	return nil
}

// NameOfProgress names the progress of a step, saved under the name slot, in an error.
func NameOfProgress(key, slot string) string {
	if slot == "" {
		return key + ", its progress"
	}
	return fmt.Sprintf("%s, its progress %q", key, slot)
}

// NameOfOutput names the output of a failed attempt in an error.
func NameOfOutput(key string, attempt int) string {
	return fmt.Sprintf("%s, output of attempt %d", key, attempt)
}
