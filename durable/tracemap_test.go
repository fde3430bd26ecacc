package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-dev/holdfast/durable"
)

// packing maps over five items, of which each takes an hour; the fourth fails.
var packing = durable.Define("packing", func(ctx context.Context, _ int) (int, error) {
	branch := durable.Go(ctx, "beside", func(ctx context.Context) (int, error) {
		_, err := durable.Map(ctx, "lines", []int{1, 2, 3, 4, 5}, durable.MapOptions{Concurrency: 1, KeepGoing: true}, func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "pack", func(ctx context.Context) (int, error) {
				select {
				case <-time.After(time.Hour):
				case <-ctx.Done():
					return 0, ctx.Err()
				}
				if n == 4 {
					return 0, durable.Permanent(errors.New("it does not fit"))
				}
				return n, nil
			})
		})
		var failed *durable.MapError
		if !errors.As(err, &failed) {
			return 0, err
		}
		return len(failed.Failed), nil
	})
	return branch.Wait(ctx)
})

// A Map is one span whatever becomes of the processes it is under way in, and all
// of its items are below it.
func TestAMapIsOneSpanOverAllItsProcesses(t *testing.T) {
	for _, kept := range []bool{true, false} {
		inTraceWorld(t, func(t *testing.T, w *traceWorld) {
			var dead *atomic.Bool
			options := func() durable.Options {
				dead = new(atomic.Bool)
				export := []sdktrace.TracerProviderOption{sdktrace.WithSyncer(exportOf{w.spans, dead.Load})}
				if kept {
					export = append(export, sdktrace.WithIDGenerator(durable.SpanIDs{}))
				}
				return durable.Options{Workflows: []durable.Definition{packing}, TracerProvider: sdktrace.NewTracerProvider(export...)}
			}
			w.boot(t, options())
			_, err := packing.Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			began := time.Now()
			for range 3 {
				// In the first body, before anything is recorded; then in later ones.
				pass(30 * time.Minute)
				dead.Store(true)
				w.reboot(t, options())
				pass(time.Hour)
			}
			n, err := wait(t, w.world, packing, "r")
			require.NoError(t, err)
			require.Equal(t, 1, n)

			span := w.one("map lines")
			require.Equal(t, "beside/lines", attr(&span, "durable.step.key"))
			require.Equal(t, "r", attr(&span, "durable.run.id"))
			items := w.of("item lines")
			require.GreaterOrEqual(t, len(items), 5)
			for _, s := range items {
				require.Equal(t, span.SpanContext.SpanID(), s.Parent.SpanID())
				require.Equal(t, span.SpanContext.TraceID(), s.SpanContext.TraceID())
			}
			end := w.one("end map lines")
			require.Equal(t, span.SpanContext.SpanID(), end.Parent.SpanID())
			require.WithinDuration(t, began, end.StartTime, time.Hour, "from its beginning, in the first process that has recorded something")
			require.Equal(t, []string{"failed", "5", "1", "0"}, []string{attr(&end, "durable.outcome"), attr(&end, "durable.map.items"), attr(&end, "durable.map.failed"), attr(&end, "durable.map.undone")})
			ids := map[string]bool{}
			for _, s := range w.spans.GetSpans() {
				ids[s.SpanContext.SpanID().String()] = true
			}
			for _, s := range w.spans.GetSpans() {
				if s.Parent.IsValid() {
					require.True(t, ids[s.Parent.SpanID().String()], "the parent of %s was exported", s.Name)
				}
			}
		})
	}
}

// With a trace for each segment the items of one are below a span of theirs, which
// is linked to that of the segment before.
func TestInATraceForEachSegmentTheMapsSpansAreLinked(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		options := func() durable.Options {
			o := w.keptIDs(packing)
			o.TraceMode = durable.TraceLink
			return o
		}
		w.boot(t, options())
		_, err := packing.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(90 * time.Minute)
		w.reboot(t, options())
		_, err = wait(t, w.world, packing, "r")
		require.NoError(t, err)
		spans := w.of("map lines")
		require.Len(t, spans, 2)
		require.Equal(t, []string{spans[0].SpanContext.SpanID().String() + " previous"}, links(spans[1]))
		for _, s := range w.of("item lines") {
			require.Contains(t, []string{spans[0].SpanContext.SpanID().String(), spans[1].SpanContext.SpanID().String()}, s.Parent.SpanID().String())
		}
	})
}

// An empty Map, and one in an item of another, have their places in the tree.
func TestAMapInAnItemIsBelowIt(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		wf := durable.Define("nested", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Map(ctx, "nothing", []int{}, durable.MapOptions{}, func(context.Context, int) (int, error) { return 0, nil }); err != nil {
				return 0, err
			}
			_, err := durable.Map(ctx, "rows", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
				_, err := durable.Map(ctx, "cells", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) { return n, nil })
				return n, err
			})
			return 0, err
		})
		w.boot(t, w.keptIDs(wf))
		_, err := run(t, w.world, wf, "r", 0)
		require.NoError(t, err)
		names := map[string]string{}
		for _, s := range w.spans.GetSpans() {
			names[s.SpanContext.SpanID().String()] = s.Name
		}
		tree := map[string]int{}
		for _, s := range w.spans.GetSpans() {
			tree[s.Name+" < "+names[s.Parent.SpanID().String()]]++
		}
		require.Equal(t, map[string]int{
			"start nested < ": 1, "segment nested < start nested": 1, "end nested < start nested": 1,
			"map nothing < segment nested": 1, "end map nothing < map nothing": 1,
			"map rows < segment nested": 1, "end map rows < map rows": 1,
			"item rows < map rows": 2, "end item rows < item rows": 2,
			"map cells < item rows": 2, "end map cells < map cells": 2, "item cells < map cells": 4,
		}, tree)
	})
}

// What is exported again begins when it did the first time, to the nanosecond, and
// so not before the span it is below; the end of the run does not either.
func TestAStartThatIsExportedAgainBeginsWithinItsParent(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		time.Sleep(time.Microsecond + 789*time.Nanosecond) // a history knows microseconds
		for i, crash := range []bool{true, false} {
			o := w.keptIDs(slowStep)
			if i == 0 {
				w.boot(t, o)
			}
			w.spans.Reset()
			request, around := o.TracerProvider.Tracer("web").Start(w.ctx(), "POST /slow")
			id := []string{"crashed", "whole"}[i]
			_, err := slowStep.Start(request, id, 0)
			require.NoError(t, err)
			around.End()
			synctest.Wait()
			if crash {
				w.reboot(t, w.keptIDs(slowStep))
			}
			_, err = wait(t, w.world, slowStep, id)
			require.NoError(t, err)
			parent := w.one("POST /slow")
			starts := w.of("start slow")
			require.Len(t, starts, map[bool]int{true: 2, false: 1}[crash])
			for _, s := range append(starts, w.one("end slow")) {
				require.True(t, starts[0].StartTime.Equal(s.StartTime), "%s: %s", s.Name, s.StartTime)
				require.False(t, s.StartTime.Before(parent.StartTime), s.Name)
			}
		}
	})
}

// Where nothing is kept of the start, the end of a run does not begin before it.
func TestTheEndOfARunThatRecoveryMarksFailedBeginsWithinItsStart(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		time.Sleep(time.Microsecond + 789*time.Nanosecond)
		o := w.options(sdktrace.AlwaysSample(), slowStep)
		w.boot(t, o)
		_, err := slowStep.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		o = w.options(sdktrace.AlwaysSample(), slowStep)
		o.OnBoot = durable.FailOnBoot
		w.reboot(t, o)
		start, end := w.one("start slow"), w.one("end slow")
		require.False(t, end.StartTime.Before(start.StartTime), "%s and %s", start.StartTime, end.StartTime)
		require.WithinDuration(t, start.StartTime, end.StartTime, time.Microsecond)
	})
}
