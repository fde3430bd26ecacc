// Package tracecheck compares the trace of a run, as a backend shows it, with the
// run's history: what happened must be there, once, and nothing else.
package tracecheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/otlptest"
)

// OfRun returns the spans of the trace that a run was started in. A second Start
// with its id makes a span of its own, in another trace.
func OfRun(spans []otlptest.Span, row store.Run) []otlptest.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s otlptest.Span) bool { return s.TraceID != TraceID(row) })
}

// TraceID returns the trace that a run was started in; empty if it was not traced.
func TraceID(row store.Run) string {
	if parts := strings.Split(row.Trace, "-"); len(parts) >= 4 { // W3C traceparent
		return parts[1]
	}
	return ""
}

// An outcome names an attempt and says how it ended.
type outcome struct {
	attempt string // "charge, attempt 2"
	failed  bool
}

// Compare returns what is wrong with the spans of a run, whose history is events;
// nil when there is one trace, every attempt of the history has one span with its
// outcome, each process that had the run one segment, and every span but the first
// has its parent there.
//
// A process that is killed between recording an attempt and exporting its span
// leaves one that is missing here.
func Compare(spans []otlptest.Span, events []store.Event) error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	traces := map[string]bool{}
	told := map[outcome]int{}
	segments := 0
	for _, s := range spans {
		traces[s.TraceID] = true
		name, _, _ := strings.Cut(s.Name, " ")
		switch name {
		case "segment":
			segments++
		case "attempt":
			told[outcome{fmt.Sprintf("%v, attempt %v", s.Attributes["durable.step.key"], s.Attributes["durable.step.attempt"]), s.Failed}]++
		}
	}
	if len(traces) != 1 {
		say("the spans are of %d traces, not of one: %s", len(traces), strings.Join(slices.Sorted(maps.Keys(traces)), ", "))
	}
	for i, root := range otlptest.Trees(spans) {
		if i > 0 || root.Parent != "" {
			say("%s (%s) has no parent here", root.Name, root.ID)
		}
	}
	lives := 0
	for i := range events {
		ev := &events[i]
		if ev.Type == store.WorkflowStarted || ev.Type == store.RunResumed || ev.Type == store.RunClaimed {
			lives++
		}
		if o, ok := outcomeOf(ev); ok {
			if n := told[o]; n != 1 {
				say("%s (failed: %v) is in the history once and in the trace %d times", o.attempt, o.failed, n)
			}
			delete(told, o)
		}
	}
	for o := range told {
		say("%s (failed: %v) is in the trace and not in the history", o.attempt, o.failed)
	}
	if segments != lives {
		say("%d processes had the run, by its history, and the trace has %d segments", lives, segments)
	}
	return errors.Join(errs...)
}

// outcomeOf returns the attempt whose outcome an event is.
func outcomeOf(ev *store.Event) (outcome, bool) {
	switch ev.Type {
	case store.StepCompleted, store.StepFailed, store.AttemptFailed:
		return outcome{fmt.Sprintf("%s, attempt %d", ev.Key, ev.Attempt), ev.Type != store.StepCompleted}, ev.Attempt > 0
	}
	return outcome{}, false
}
