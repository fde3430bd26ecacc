package traceproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/otlptest"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// backends are the stores that outlive a process.
func backends(t *testing.T, test func(t *testing.T, o orders, r *otlptest.Receiver)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			o := orders{Backend: name, Dir: t.TempDir()}
			if name == "sqlite" {
				o.DSN = filepath.Join(o.Dir, "runs.db")
			} else {
				o.DSN = pgtest.DSN(t)
			}
			r, err := otlptest.Listen("127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, r.Close()) })
			o.OTLP = r.URL()
			test(t, o, r)
		})
	}
}

// threeLives executes the order in three processes, of which two are killed in
// the middle of a body, once what had finished before has been exported: what a
// kill in between loses is shown by a test of package durable.
func threeLives(t *testing.T, o orders, r *otlptest.Receiver) {
	exported := func(name string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, r.Wait(ctx, func() bool {
			return slices.ContainsFunc(r.Spans(), func(s otlptest.Span) bool { return s.Name == name })
		}), name)
	}
	first := start(t, o)
	first.await(t, "ready")
	first.await(t, "hanging")
	first.await(t, "hanging") // of two bodies at once
	exported("attempt charge")
	exported("attempt walk")
	first.kill(t)
	o.Life = 1
	second := start(t, o)
	second.await(t, "hanging charge")
	exported("end branch pick")
	second.kill(t)
	o.Life = 2
	third := start(t, o)
	third.await(t, "ready")
	require.NoError(t, third.Wait(), "it ends by itself")
}

func TestThreeLivesOfARunAreOneTraceAtARealReceiver(t *testing.T) {
	backends(t, func(t *testing.T, o orders, r *otlptest.Receiver) {
		threeLives(t, o, r)
		spans := r.Spans()
		tree := treeOf(t, spans, "start order")
		var text strings.Builder
		require.NoError(t, tree.Print(&text, "durable.step.attempt", "durable.outcome", "durable.recovered", "durable.replayed"))
		t.Log("\n" + text.String())

		t.Run("one trace a run", func(t *testing.T) {
			traces := map[string]map[any]bool{}
			for _, s := range spans {
				if id := s.Attributes["durable.run.id"]; id != nil && s.Kind != "producer" {
					if traces[s.TraceID] == nil {
						traces[s.TraceID] = map[any]bool{}
					}
					traces[s.TraceID][id] = true
				}
			}
			require.Len(t, traces, 2)
			require.Equal(t, map[any]bool{"order-42": true, "order-42/parcel": true}, traces[tree.TraceID], "the child is in the trace of its parent")
			starts := 0
			for _, s := range spans {
				if s.Name == "start order" {
					starts++
				}
			}
			require.Equal(t, 1, starts, "a start that finds the run makes no span")
		})
		t.Run("every attempt of the history once, and its failure marked", func(t *testing.T) {
			got := map[string]int{}
			for _, s := range spans {
				if strings.HasPrefix(s.Name, "attempt ") {
					got[fmt.Sprintf("%v %v %v %v", s.Attributes["durable.run.id"], s.Attributes["durable.step.key"], s.Attributes["durable.step.attempt"], s.Attributes["durable.outcome"])]++
					require.Equal(t, s.Attributes["durable.outcome"] == "failed", s.Failed, "%s", s.Attributes)
					require.Equal(t, s.Failed, len(s.Events) == 1)
				}
			}
			require.Equal(t, attemptsOf(t, o, "order-42", "order-42/parcel", "undone-1"), got)
		})
		t.Run("the tree is as documented", func(t *testing.T) {
			require.ElementsMatch(t, paths(documented(t)), paths(shapeOf(tree)), "docs/traces.md shows another tree than was received")
		})
		t.Run("segments are linked, and counted what was replayed", func(t *testing.T) {
			var segments []*otlptest.Node
			for _, n := range tree.Children {
				if n.Name == "segment order" {
					segments = append(segments, n)
				}
			}
			require.Len(t, segments, 3)
			executors := map[any]bool{}
			for i, s := range segments {
				require.Equal(t, "consumer", s.Kind)
				require.Equal(t, i > 0, s.Attributes["durable.recovered"])
				require.Equal(t, []int64{0, 2, 3}[i], s.Attributes["durable.replayed"])
				require.Equal(t, "2", s.Attributes["durable.workflow.version"])
				executors[s.Attributes["durable.executor.id"]] = true
				if i > 0 {
					require.Equal(t, []otlptest.SpanLink{{TraceID: tree.TraceID, ID: segments[i-1].ID, Attributes: otlptest.Attributes{"durable.link": "previous"}}}, s.Links)
				} else {
					require.Empty(t, s.Links)
				}
			}
			require.Len(t, executors, 3)
		})
		t.Run("signal and wait, child and parent are linked", func(t *testing.T) {
			signal := one(t, spans, "signal approve")
			require.Equal(t, "producer", signal.Kind)
			require.Equal(t, one(t, spans, "POST /approve").ID, signal.Parent, "below the caller's span")
			wait := one(t, spans, "wait approve")
			require.Equal(t, signal.ID, wait.Links[0].ID)
			require.Equal(t, "approval", wait.Attributes["durable.wait.kind"])
			segment := one(t, spans, "segment parcel")
			require.Equal(t, one(t, spans, "start parcel").ID, segment.Parent)
			require.Equal(t, segment.ID, one(t, spans, "child parcel").Links[0].ID)
		})
		t.Run("errors are told by their type", func(t *testing.T) {
			whole := one(t, spans, "end step charge")
			require.False(t, whole.Failed)
			require.Equal(t, int64(4), whole.Attributes["durable.step.attempt"])
			kinds := []any{}
			for _, e := range whole.Events {
				kinds = append(kinds, e.Attributes["exception.type"])
			}
			require.Equal(t, []any{"*traceproof_test.leak", "durable.PanicError", "*traceproof_test.leak"}, unify(kinds))
			end := one(t, spans, "end undone")
			require.True(t, end.Failed)
			require.Equal(t, "failed", end.Attributes["durable.run.status"])
			require.Equal(t, "error", end.Attributes["error.type"])
			require.Equal(t, "ok", one(t, spans, "compensate refund").Attributes["durable.outcome"])
		})
		t.Run("metrics say what happened in the last life", func(t *testing.T) { requireMetrics(t, r.Points()) })
		t.Run("attributes are those of the page", func(t *testing.T) { requireAttributes(t, spans) })
		t.Run("no secret in what was sent or logged", func(t *testing.T) {
			require.NotEmpty(t, r.Points(), "metrics have arrived")
			for _, b := range r.Bodies() {
				require.NotContains(t, string(b), marker)
			}
			logged, err := os.ReadFile(filepath.Join(o.Dir, "log"))
			require.NoError(t, err)
			require.NotContains(t, string(logged), marker)
			requireLogged(t, string(logged), tree.TraceID)
		})
	})
}

// unify replaces what an earlier process has recorded without a registered name:
// of it the history keeps the message alone.
func unify(kinds []any) []any {
	for i, k := range kinds {
		if k == "error" {
			kinds[i] = "*traceproof_test.leak"
		}
	}
	return kinds
}

// treeOf returns the tree with this root, and checks that no span lacks its
// parent.
func treeOf(t *testing.T, spans []otlptest.Span, name string) *otlptest.Node {
	var found *otlptest.Node
	for _, root := range otlptest.Trees(spans) {
		require.False(t, root.Lost, "%s has a parent that never came", root.Name)
		if root.Name == name {
			require.Nil(t, found)
			found = root
		}
	}
	require.NotNil(t, found)
	return found
}

func one(t *testing.T, spans []otlptest.Span, name string) otlptest.Span {
	t.Helper()
	var found []otlptest.Span
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// attemptsOf are the attempts in the histories of runs.
func attemptsOf(t *testing.T, o orders, ids ...string) map[string]int {
	st, err := o.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	want := map[string]int{}
	for _, id := range ids {
		h, err := st.Load(context.Background(), id, store.Cursor{})
		require.NoError(t, err)
		for e, err := range h.Events {
			require.NoError(t, err)
			if outcome := map[store.Type]string{store.StepCompleted: "ok", store.StepFailed: "failed", store.AttemptFailed: "failed"}[e.Type]; outcome != "" && e.Attempt > 0 {
				want[fmt.Sprintf("%s %s %d %s", id, e.Key, e.Attempt, outcome)]++
			}
		}
	}
	require.NotEmpty(t, want)
	return want
}

// requireLogged looks at the lines that the issue asks for.
func requireLogged(t *testing.T, logged, traceID string) {
	found := map[string]int{}
	for line := range strings.Lines(logged) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		if m["run"] != "order-42" {
			continue
		}
		require.Equal(t, "order", m["workflow"], line)
		require.Equal(t, traceID, m["trace_id"], line)
		found[fmt.Sprintf("%s %s", m["level"], m["msg"])]++
		if m["msg"] == "durable: attempt ended" || m["msg"] == "in the body" {
			require.NotEmpty(t, m["step"], line)
			require.NotEmpty(t, m["attempt"], line)
		}
	}
	require.Equal(t, 1, found["INFO durable: run started"])
	require.Equal(t, 2, found["INFO durable: run resumed"])
	require.Equal(t, 1, found["INFO durable: run completed"])
	require.Equal(t, 1, found["DEBUG in the body"])
	require.GreaterOrEqual(t, found["DEBUG durable: attempt ended"], 8)
}
