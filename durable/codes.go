package durable

import (
	"github.com/holdfast-dev/holdfast/internal/claims"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// The codes of interrupted, failed and waiting runs, in Info.Code and in metrics.
const (
	CodeDefinitionChanged = stuck.CodeDefinitionChanged
	CodeUndecodable       = stuck.CodeUndecodable
	CodeDamaged           = stuck.CodeDamaged
	CodeNotRegistered     = store.CodeNotRegistered
	// CodeQueueNotServed, in lists alone: nobody alive who has its code takes runs from its queue.
	CodeQueueNotServed = stuck.CodeQueueNotServed
	CodeQuarantined    = stuck.CodeQuarantined
	CodeRestarted      = claims.CodeRestarted  // FailOnBoot
	CodeShutdown       = "shutdown"            // stopped gracefully; its policy leaves resuming to a person
	CodeError          = "error"               // the workflow returned an error
	CodeRepaired       = history.CodeRepaired  // it had failed, and was repaired; Resume continues it
	CodeImporting      = history.CodeImporting // its import has not finished; import it again
	CodeImported       = history.CodeImported  // it had not ended when it was exported; Resume continues it here
	CodePanic          = "panic"
	CodeDeadline       = "deadline"           // the run's deadline has passed
	CodeApproval       = history.CodeApproval // waiting for a person
	// CodeChildMissing: it waits for a child that is not in the store.
	CodeChildMissing = stuck.CodeChildMissing
	// CodeChildNotRegistered: it is about to start a child whose code is not in the program.
	CodeChildNotRegistered = stuck.CodeChildNotRegistered
	// CodeRecovered: it was repaired; its policy leaves resuming to a person.
	CodeRecovered = history.CodeRecovered
	// CodeUnrecorded: the outcome of a durable call could not be recorded.
	CodeUnrecorded = stuck.CodeUnrecorded
	// CodeUnrecoverable: it is inconsistent and was left as it is.
	CodeUnrecoverable = stuck.CodeUnrecoverable
	// CodeJump: a jump was requested and not carried out.
	CodeJump = history.CodeJump
	// CodeEdited: its history was edited; Resume continues it.
	CodeEdited = history.CodeEdited
)

// CodePaused is the code of a paused run in Report.Stuck. The row of a paused run
// says so in Paused, and keeps its own code.
const CodePaused = stuck.CodePaused

// CodeStranded is the code, in a list of stuck runs, of a run that waits for a child
// which has ended without the run being told. Verify reports the same. The row of a run
// never has this code. Resume tells the run.
const CodeStranded = stuck.CodeStranded
