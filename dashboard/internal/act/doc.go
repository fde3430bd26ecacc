// Package act changes runs: it has one entry point for each act, which the routes of the
// API and the forms of the pages share, so that an act is checked, authorized and
// reported in one place.
//
//   - acts.go: Acts; cancel, pause, unpause, signal, and what all acts answer
//   - start.go, edit.go: a new run; a fork, a jump, an edited result
//   - resume.go: resume, its plan, and the variants that people know from elsewhere
//   - answer.go: what is asked of people
//   - queues.go: a queue is paused and resumed; a dead letter is retried
//   - bulk.go: an act on all runs that a filter selects
//   - selection.go: the runs of one request, and where the next one goes on
package act
