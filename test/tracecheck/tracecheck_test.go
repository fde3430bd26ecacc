package tracecheck_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/otlptest"
	"github.com/holdfast-dev/holdfast/test/tracecheck"
)

func span(id, parent, name string, key string, attempt int, failed bool) otlptest.Span {
	s := otlptest.Span{TraceID: "t", ID: id, Parent: parent, Name: name, Failed: failed, Attributes: otlptest.Attributes{"durable.run.id": "r"}}
	if attempt > 0 {
		s.Attributes["durable.step.key"], s.Attributes["durable.step.attempt"] = key, int64(attempt)
	}
	return s
}

func good() []otlptest.Span {
	return []otlptest.Span{
		span("1", "", "start w", "", 0, false),
		span("2", "1", "segment w", "", 0, false),
		span("3", "2", "attempt charge", "charge", 1, true),
		{TraceID: "t", ID: "4", Parent: "3", Name: "POST /charges"},
		span("5", "1", "segment w", "", 0, false),
		span("6", "5", "attempt charge", "charge", 2, false),
		span("7", "5", "step charge", "charge", 2, false),
	}
}

// The comparison must be able to say no.
func TestCompareFindsWhatIsWrong(t *testing.T) {
	events := []store.Event{
		{Seq: 1, Type: store.WorkflowCreated}, {Seq: 2, Type: store.WorkflowStarted},
		{Seq: 3, Type: store.AttemptFailed, Key: "charge", Attempt: 1}, {Seq: 4, Type: store.RunResumed},
		{Seq: 5, Type: store.StepCompleted, Key: "charge", Attempt: 2},
	}
	require.NoError(t, tracecheck.Compare(good(), events))
	for want, spoil := range map[string]func([]otlptest.Span) []otlptest.Span{
		"charge, attempt 1 (failed: true) is in the history once and in the trace 0 times": func(s []otlptest.Span) []otlptest.Span { return append(s[:2], s[4:]...) },
		"charge, attempt 2 (failed: false) is in the history once and in the trace 2 times": func(s []otlptest.Span) []otlptest.Span {
			return append(s, span("9", "5", "attempt charge", "charge", 2, false))
		},
		"attempt 1 (failed: false) is in the trace and not in the history": func(s []otlptest.Span) []otlptest.Span { s[2].Failed = false; return s },
		"2 processes had the run, by its history, and the trace has 3 segments": func(s []otlptest.Span) []otlptest.Span {
			return append(s, span("9", "1", "segment w", "", 0, false))
		},
		"of 2 traces":                      func(s []otlptest.Span) []otlptest.Span { s[6].TraceID = "other"; return s },
		"attempt charge (6) has no parent": func(s []otlptest.Span) []otlptest.Span { s[5].Parent = "99"; return s },
	} {
		require.ErrorContains(t, tracecheck.Compare(spoil(good()), events), want)
	}
}

func TestOfRunKeepsTheSpansOfItsTrace(t *testing.T) {
	other := otlptest.Span{TraceID: "u", ID: "1", Name: "start w", Attributes: otlptest.Attributes{"durable.run.id": "r"}}
	row := store.Run{ID: "r", Trace: "00-t-1-01"}
	require.Equal(t, good(), tracecheck.OfRun(append(good(), other), row))
	require.Empty(t, tracecheck.TraceID(store.Run{}))
}
