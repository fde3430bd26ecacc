package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// exportOf passes spans on until its process is dead.
type exportOf struct {
	sdktrace.SpanExporter
	dead func() bool
}

func (x exportOf) ExportSpans(ctx context.Context, list []sdktrace.ReadOnlySpan) error {
	if x.dead() {
		return nil
	}
	return x.SpanExporter.ExportSpans(ctx, list)
}

// tracedShapes make every kind of span.
func tracedShapes() map[string][]durable.Definition {
	fail := errors.New("no")
	second := func(ctx context.Context) (string, error) {
		if durable.Attempt(ctx).Number < 2 {
			return "", fail
		}
		return "x", nil
	}
	soon := durable.Policy{MaxAttempts: 3, Initial: time.Second}
	kid := durable.Define("kid", func(ctx context.Context, in int) (string, error) {
		return durable.Retry(ctx, "play", soon, second)
	})
	return map[string][]durable.Definition{
		"steps": {durable.Define("steps", func(ctx context.Context, in int) (string, error) {
			if _, err := durable.Step(ctx, "one", func(context.Context) (string, error) { return "", fail }); err == nil {
				return "", errors.New("a failure is lost")
			}
			if err := durable.Do(ctx, "relaxed", func(context.Context) error { return nil }, durable.Relaxed()); err != nil {
				return "", err
			}
			_, _ = durable.Retry(ctx, "exhausted", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(context.Context) (string, error) { panic("boom") })
			_, _ = durable.Step(ctx, "gone", func(context.Context) (string, error) { runtime.Goexit(); return "", nil })
			return durable.Retry(ctx, "two", soon, second)
		})},
		"branches and items": {durable.Define("branches and items", func(ctx context.Context, in int) (string, error) {
			a := durable.Go(ctx, "a", func(ctx context.Context) (string, error) {
				if err := durable.Sleep(ctx, time.Minute); err != nil {
					return "", err
				}
				inner := durable.Go(ctx, "inner", func(ctx context.Context) (string, error) { return durable.Retry(ctx, "deep", soon, second) })
				return inner.Wait(ctx)
			})
			out, err := durable.Map(ctx, "items", []int{1, 2, 3}, durable.MapOptions{KeepGoing: true, Concurrency: 2}, func(ctx context.Context, n int) (string, error) {
				if n == 3 {
					return "plain", nil
				}
				v, err := durable.Retry(ctx, "resize", soon, second)
				if n == 2 {
					return "", errors.Join(err, fail)
				}
				return v, err
			})
			var failed *durable.MapError
			if !errors.As(err, &failed) {
				return "", fmt.Errorf("item 2 has not failed: %w", err)
			}
			v, err := a.Wait(ctx)
			return v + strings.Join(out, ""), err
		})},
		"waits": {durable.Define("waits", func(ctx context.Context, in int) (string, error) {
			if _, err := durable.Await[int](ctx, "nobody", durable.Timeout(time.Minute)); !errors.Is(err, durable.ErrTimeout) {
				return "", err
			}
			if err := durable.Sleep(ctx, 2*time.Hour); err != nil {
				return "", err
			}
			return durable.Step(ctx, "after", func(context.Context) (string, error) { return "x", nil })
		})},
		"child": {durable.Define("child", func(ctx context.Context, in int) (string, error) {
			h, err := kid.Start(ctx, durable.AutoID, in)
			if err != nil {
				return "", err
			}
			if _, err := durable.Step(ctx, "beside", func(context.Context) (string, error) { return "x", nil }); err != nil {
				return "", err
			}
			return h.Wait(ctx)
		}), kid},
		"undone": {durable.Define("undone", func(ctx context.Context, in int) (string, error) {
			if err := durable.Compensate(ctx, "refund", func(ctx context.Context) error { _, err := second(ctx); return err }); err != nil {
				return "", err
			}
			if _, err := durable.Step(ctx, "charge", func(context.Context) (string, error) { return "x", nil }); err != nil {
				return "", err
			}
			return "", durable.Permanent(fail)
		})},
		"renewed": {durable.Define("renewed", func(ctx context.Context, in int) (string, error) {
			if _, err := durable.Step(ctx, "work", func(context.Context) (string, error) { return "x", nil }); err != nil {
				return "", err
			}
			if in < 9 {
				return "", durable.Continue(ctx, in+1)
			}
			return "done", durable.Sleep(ctx, time.Hour)
		})},
	}
}

// traced runs a shape on a fresh store, killing its processes, and returns the
// spans that were exported and what the store holds.
func traced(t *testing.T, name string, mode durable.TraceMode, deaths []death) (spans tracetest.SpanStubs, data *memory.Store, writes int) {
	all := tracetest.NewInMemoryExporter()
	data = memory.Open()
	ctx := context.Background()
	for life := 0; ; life++ {
		m := crashstore.New(data.Handle())
		if life < len(deaths) {
			m.DieAt(deaths[life].at, deaths[life].after)
		}
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exportOf{all, m.IsDead}), sdktrace.WithIDGenerator(durable.SpanIDs{}))
		defs := tracedShapes()[name]
		eng, err := durable.Open(ctx, m, durable.Options{
			Workflows: defs, Logger: slog.New(slog.DiscardHandler), QuarantineAfter: 100, TracerProvider: provider, TraceMode: mode, UnloadAfter: time.Minute,
		})
		require.NoError(t, err)
		ectx := durable.NewContext(ctx, eng)
		if _, err = durable.Recover(ectx); err == nil {
			var run *durable.Run[string]
			if run, err = defs[0].(*durable.Workflow[int, string]).Start(ectx, "r", 7); err == nil {
				wait, stop := context.WithTimeout(ectx, 24*time.Hour)
				go func() {
					select {
					case <-m.Died():
					case <-wait.Done():
					}
					stop()
				}()
				_, _ = run.Wait(wait)
				stop()
			}
		}
		died := m.IsDead()
		_ = eng.Close()
		writes += m.Writes()
		if !died {
			break
		}
		time.Sleep(2 * durable.DefaultLease)
	}
	if name != "renewed" { // the keys of a generation are those of the one before
		check(t, data)
	}
	return all.GetSpans(), data, writes
}

// attr returns an attribute of a span as text; empty: it has none.
func attr(s *tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// finished are the attempts that the history of a run has the outcome of, as
// "run key attempt outcome".
func finished(t *testing.T, data *memory.Store) map[string]bool {
	want := map[string]bool{}
	page, err := data.List(context.Background(), store.Filter{})
	require.NoError(t, err)
	for _, row := range page.Runs {
		h, err := data.Load(context.Background(), row.ID, store.Cursor{All: true})
		require.NoError(t, err)
		for e, err := range h.Events {
			require.NoError(t, err)
			outcome := map[store.Type]string{store.StepCompleted: "ok", store.StepFailed: "failed", store.AttemptFailed: "failed"}[e.Type]
			if outcome != "" && e.Attempt > 0 {
				want[fmt.Sprintf("%s %s %d %s", row.ID, e.Key, e.Attempt, outcome)] = true
			}
		}
	}
	return want
}

// compare looks at what was exported: nothing without its parent, every attempt
// that the history knows once, and of those at most as many missing as
// processes were killed behind a write.
func compare(t *testing.T, name string, mode durable.TraceMode, spans tracetest.SpanStubs, data *memory.Store, kills int, at string) {
	byID, traces := map[trace.SpanID]*tracetest.SpanStub{}, map[trace.TraceID]bool{}
	for i := range spans {
		s := &spans[i]
		if before := byID[s.SpanContext.SpanID()]; before != nil {
			require.True(t, strings.HasPrefix(s.Name, "start "), "%s: %s was exported again", at, s.Name)
			require.Equal(t, before.Name, s.Name, at)
			require.Equal(t, before.SpanKind, s.SpanKind, at)
			require.Equal(t, before.Attributes, s.Attributes, at)
			require.Equal(t, before.Parent.SpanID(), s.Parent.SpanID(), at)
			require.Equal(t, before.SpanContext.TraceID(), s.SpanContext.TraceID(), at)
		}
		byID[s.SpanContext.SpanID()] = s
		traces[s.SpanContext.TraceID()] = true
	}
	want, got := finished(t, data), map[string]int{}
	for i := range spans {
		s := &spans[i]
		below := s.Parent.SpanID()
		root := strings.HasPrefix(s.Name, "start ") || mode == durable.TraceLink && strings.HasPrefix(s.Name, "segment ")
		switch {
		case byID[below] != nil, root && !below.IsValid():
			// Also when it was killed between the commit of the start and the
			// export of its span: that is exported at the end.
		default:
			require.Failf(t, "parent", "%s: %s has a parent that was not exported", at, s.Name)
		}
		require.False(t, s.EndTime.Before(s.StartTime), "%s: %s ends before it begins", at, s.Name)
		if parent := byID[below]; parent != nil && !overProcesses(s.Name) {
			require.False(t, s.StartTime.Before(parent.StartTime), "%s: %s begins before %s", at, s.Name, parent.Name)
		}
		if strings.HasPrefix(s.Name, "item ") {
			require.True(t, strings.HasPrefix(byID[below].Name, "map "), "%s: %s is below %s", at, s.Name, byID[below].Name)
		}
		if strings.HasPrefix(s.Name, "attempt ") && attr(s, "durable.outcome") != "stopped" && attr(s, "durable.outcome") != "unrecorded" {
			got[fmt.Sprintf("%s %s %s %s", attr(s, "durable.run.id"), attr(s, "durable.step.key"), attr(s, "durable.step.attempt"), attr(s, "durable.outcome"))]++
			require.Equal(t, attr(s, "durable.outcome") == "failed", s.Status.Code == codes.Error, "%s: %s", at, s.Name)
		}
	}
	if mode == durable.TraceParent {
		require.Len(t, traces, 1, "%s: one trace", at)
	}
	missing := 0
	for k := range want {
		if got[k] == 0 {
			missing++
		}
	}
	if at != "not killed" && (name == "branches and items" || name == "child") {
		// Others may record and not get to export while one meets its end, and
		// several may share a write.
		kills = max(4*kills, 4)
	}
	require.LessOrEqual(t, missing, kills, "%s: of %v only %v", at, want, got)
	for k, n := range got {
		require.True(t, want[k], "%s: %s is no attempt of the history", at, k)
		// A relaxed step that was not durable yet is made again, and so are the
		// keys of a later generation.
		if name != "renewed" && !strings.Contains(k, "relaxed") {
			require.Equal(t, 1, n, "%s: %s", at, k)
		}
	}
}

// overProcesses reports whether a span tells of a time that may have begun before
// the process which makes it: it is stamped, and below what that process has.
func overProcesses(name string) bool {
	first, _, _ := strings.Cut(name, " ")
	return slices.Contains([]string{"end", "wait", "sleep", "child"}, first)
}

func TestWhereverARunIsKilledItsTraceIsOneTreeWithEveryAttemptOnce(t *testing.T) {
	points := 0
	for name := range tracedShapes() {
		for _, mode := range []durable.TraceMode{durable.TraceParent, durable.TraceLink} {
			t.Run(fmt.Sprintf("%s %d", name, mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					spans, data, writes := traced(t, name, mode, nil)
					compare(t, name, mode, spans, data, 0, "not killed")
					for at := 1; at <= writes; at++ {
						for _, after := range []bool{false, true} {
							points++
							// What is killed before a write may have had an outcome of the
							// write before on its way, where several go on at a time.
							kills := 0
							if after || name == "branches and items" {
								kills = 1
							}
							spans, data, _ := traced(t, name, mode, []death{{at, after}})
							compare(t, name, mode, spans, data, kills, fmt.Sprintf("killed at %d, after=%v", at, after))
						}
					}
					spans, data, _ = traced(t, name, mode, []death{{3, true}, {3, true}, {3, false}, {4, true}, {4, false}})
					compare(t, name, mode, spans, data, 3, "killed five times")
				})
			})
		}
	}
	t.Logf("%d crash points", points)
}
