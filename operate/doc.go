// Package operate is for those who mend runs, and for the tools that do: it looks at runs
// that are stored, decides what becomes of them, and carries them elsewhere. Whoever writes
// workflows needs package durable alone.
//
//	eng, err := durable.Open(ctx, st, durable.Options{Workflows: workflows})
//	op := operate.On(eng)
//	plan, err := op.Resume(ctx, "order-42", operate.ResumeOptions{DryRun: true})
//
// Every act on a run is one durable change: after a crash the run is as it was, or as the act
// leaves it, and of two acts at once one wins. What an act leaves behind stays readable on
// a branch of its own. Resume, Jump, Edit and Fork return a Plan, and with DryRun, or by
// PlanFork, the same plan without the act.
//
// The files, by what one comes for:
//
//	operator.go                   how one gets here: On
//	resume, uncancel              a run goes on
//	resumable                     what could go on, and from where
//	jump, edit, view              its history is cut, or one result replaced
//	fork, forkedit                another run begins with its history
//	plan, revision                what that means, told before it is done
//	verify, repair                damage is found and set aside
//	carry, fromexport             a run is carried elsewhere: Export, Import
//	branches, derive              what is recorded is read
//	standing, standings           where a run stands, once or all the time
//	care                          ended runs are deleted, and which keys are still needed
package operate
