// Package operate is for people who operate runs, and for the tools they use: it inspects,
// repairs, resumes and moves stored runs. Writing workflows takes only package durable.
//
//	eng, err := durable.Open(ctx, st, durable.Options{Workflows: workflows})
//	op := operate.On(eng)
//	plan, err := op.Resume(ctx, "order-42", operate.ResumeOptions{DryRun: true})
//
// Every act on a run is one durable change: after a crash the run is as it was, or as the act
// leaves it, and of two concurrent acts one wins. What an act leaves behind stays readable on
// its own branch. Resume, Jump, Edit and Fork return a Plan; DryRun, or PlanFork, returns the
// same plan without acting.
//
// The files, by purpose:
//
//	operator.go                   On, which returns an Operator
//	resume, uncancel              continue a run
//	resumable                     which runs could continue, and from where
//	jump, edit, view              cut the history of a run, or replace one result
//	fork, forkedit                start another run with its history
//	plan, revision                what an act means, shown before it is done
//	verify, repair                find damage and set it aside
//	carry, fromexport             move a run elsewhere: Export, Import
//	branches, derive              read what is recorded
//	standing, standings           where a run stands, once or continuously
//	stuck                         runs that cannot go on, with what to do
//	queue                         queues: how full, pause, why a run waits, dead letters
//	approval                      open questions to people, and their answers
//	startjson, form, payload      runs without Go types: start, definition, values
//	care                          delete ended runs, and find which keys are still needed
package operate
