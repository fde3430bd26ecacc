// Package misuse has the errors of workflow code that makes durable calls as it must not.
// Only a change of the code mends them, so callers have no reason to distinguish them:
// package durable exports only ErrConcurrent.
package misuse

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConcurrent is durable.ErrConcurrent.
var ErrConcurrent = errors.New("durable: two durable calls at once in one scope")

// ConcurrentCallError names the two calls that were made at once.
type ConcurrentCallError struct {
	RunID   string
	Running string // key of the call in progress
	Second  string // name of the call that was refused
}

func (e *ConcurrentCallError) Error() string {
	return fmt.Sprintf("durable: run %s: %q was called while %q is under way in the same scope. Usually the outer ctx is used by a goroutine, or in the body of a step, which must not make durable calls. To do two things at once, give each its own scope with durable.Go or durable.Map",
		e.RunID, e.Second, e.Running)
}

func (e *ConcurrentCallError) Is(target error) bool { return target == ErrConcurrent }

// OuterContextError says that the code of a branch or an item made a durable
// call with the context of a scope around it: the call would have no fixed place
// among the others there.
type OuterContextError struct {
	RunID  string
	Call   string // name of the call that was refused
	Scope  string // path of the scope whose context was used; empty: the workflow function's
	Within string // path of the branch or item that used it
}

func (e *OuterContextError) Error() string {
	outer := "the workflow function"
	if e.Scope != "" {
		outer = e.Scope
	}
	return fmt.Sprintf("durable: run %s: %q was called in %s with the context of %s. Use the ctx that the function of %s receives",
		e.RunID, e.Call, e.Within, outer, e.Within)
}

// Is matches ErrConcurrent.
func (e *OuterContextError) Is(target error) bool { return target == ErrConcurrent }

// SameWaitError says that a wait was refused because another goroutine of the
// run waits for the same name: which of the two got the next signal would
// depend on scheduling. The refusal is recorded, and no signal is lost.
type SameWaitError struct {
	RunID string
	Name  string // that both wait for
	Key   string // of the wait that was refused
	Other string // key of the one that is pending
}

func (e *SameWaitError) Error() string {
	return fmt.Sprintf("run %s: %s waits for %q, and so does %s, at the same time: which of them got the next signal would be left to chance. Give the waits of branches and items names of their own, such as %q, or a Prompt, whose answers name their wait",
		e.RunID, e.Key, e.Name, e.Other, e.Name+"-1")
}

// ForgottenError says that the function of a workflow, branch or item returned a result
// without waiting for some of the branches it had begun: their outcomes and failures
// would have been lost silently.
type ForgottenError struct {
	RunID    string
	Branches []string // keys
}

func (e *ForgottenError) Error() string {
	return fmt.Sprintf("run %s: the function returned and nobody has waited for %s. Call Wait on every Future that durable.Go returns",
		e.RunID, strings.Join(e.Branches, ", "))
}

// ContinueError says why a run was not continued with a new input. It is the
// run's failure unless the workflow function returns something else.
type ContinueError struct {
	RunID  string `json:"run_id"`
	Reason string `json:"reason"`
}

func (e *ContinueError) Error() string {
	return fmt.Sprintf("run %s cannot continue with a new input: %s", e.RunID, e.Reason)
}

// ContextDeadlineError says that a workflow function waits (Sleep, Await, for a child, a
// branch or the first of several) with a context to which it has given a deadline of its
// own, by context.WithTimeout or context.WithDeadline. That time would start again in
// every process that takes up the run, and end at a different call each time. A wait that
// obeyed it would not be what its history says, and one that did not would last longer
// than the code says. So the wait is not begun, and the run is parked, with an
// *UnrecordedError around this error, until the code is mended. A context that is only
// cancelled (context.WithCancel) is as good as the function's own, and the deadline of
// one that is given to a Step limits its body.
type ContextDeadlineError struct {
	RunID string
	Call  string // that waits
}

func (e *ContextDeadlineError) Error() string {
	return fmt.Sprintf("%s waits with a context that has a deadline of its own (context.WithTimeout or WithDeadline), which begins anew in every process. Give it the context of the function, and bound the wait durably: durable.Timeout for an Await, First with a Sleep in a branch for a child or a branch, durable.Deadline for the run", e.Call)
}
