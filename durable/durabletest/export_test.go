package durabletest

import (
	"testing"

	"github.com/holdfast-dev/holdfast/durable"
)

// Examine is Survives, and Compare Replays, that return what they would fail with.
func Examine[I, O any](t testing.TB, wf *durable.Workflow[I, O], in I, o ...Option) error {
	return examine(t, wf, in, o)
}

// ExamineAttempts is Examine for a Subject of Simulate.
func ExamineAttempts[I, O any](t testing.TB, wf *durable.Workflow[I, O], in I, o ...Option) error {
	return examine(t, wf, in, append(o, failingAttempts))
}

func Compare(t testing.TB, files string, workflows []durable.Definition, o ...Option) []error {
	return compare(t, files, workflows, o)
}
