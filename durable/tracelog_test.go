package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestBaggageTravelsWithTheRunAndItsChildrenOverACrash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var seen []string
		note := func(ctx context.Context, where string) {
			seen = append(seen, where+" "+baggage.FromContext(ctx).Member("tenant").Value())
		}
		child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { note(ctx, "child"); return 0, nil })
		wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			note(ctx, "workflow")
			if err := durable.Do(ctx, "charge", func(ctx context.Context) error { note(ctx, "body"); return nil }); err != nil {
				return 0, err
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			return child.Run(ctx, durable.AutoID, 1)
		})
		o := durable.Options{Workflows: []durable.Definition{wf, child}, UnloadAfter: -1}
		w.boot(t, o)
		member, err := baggage.NewMember("tenant", "acme")
		require.NoError(t, err)
		bag, err := baggage.New(member)
		require.NoError(t, err)
		_, err = wf.Start(baggage.ContextWithBaggage(w.ctx(), bag), "o", 1)
		require.NoError(t, err)
		pass(time.Minute)
		w.crash()
		w.expire()
		w.boot(t, o)
		pass(2 * time.Hour)
		require.Equal(t, store.Completed, w.row("o").Status)
		require.Equal(t, []string{"workflow acme", "body acme", "workflow acme", "child acme"}, seen)
	})
}

func TestTheItemsOfAMapShareTheNameOfTheirSpans(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		wf := durable.Define("order", func(ctx context.Context, n int) (int, error) {
			_, err := durable.Map(ctx, "lines", make([]int, n), durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) {
				return durable.Step(ctx, "pack", func(context.Context) (int, error) { return 1, nil })
			})
			return 0, err
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))})
		_, err := wf.Run(w.ctx(), "o", 200)
		require.NoError(t, err)
		pass(time.Second)
		names, keys := map[string]int{}, map[string]bool{}
		for _, s := range spans.Ended() {
			names[s.Name()]++
			if s.Name() == "item lines" {
				for _, a := range s.Attributes() {
					if a.Key == "durable.step.key" {
						keys[a.Value.AsString()] = true
					}
				}
			}
		}
		require.LessOrEqual(t, len(names), 10, "%v", names)
		require.Equal(t, 200, names["item lines"])
		require.Len(t, keys, 200, "the key tells them apart")
	})
}

func TestALineAboutAnAttemptHasItsSpanAndHowLongItTook(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "charge", func(context.Context) (int, error) { time.Sleep(1500 * time.Microsecond); return 1, nil })
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))})
		_, err := wf.Run(w.ctx(), "o", 1)
		require.NoError(t, err)
		pass(time.Second)
		id := map[string]string{}
		for _, s := range spans.Ended() {
			id[s.Name()] = s.SpanContext().SpanID().String()
		}
		lines := w.log.find("attempt ended")
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "took_ms=1.5")
		require.Contains(t, lines[0], "span_id="+id["attempt charge"])
		require.Contains(t, w.log.find("run completed")[0], "span_id="+id["segment order"])
	})
}

func TestTheLogNamesACallThatWasRefusedThoughTheCodeGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "charge", func(ctx context.Context) (int, error) {
				for range 3 {
					if err := durable.Do(ctx, "nested", func(context.Context) error { return nil }); !errors.Is(err, durable.ErrNested) {
						return 0, err
					}
				}
				return 1, nil
			})
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := wf.Run(w.ctx(), "o", 1)
		require.NoError(t, err)
		lines := w.log.find("a call was refused: the workflow's code is wrong")
		require.Len(t, lines, 1, "once a run")
		require.True(t, strings.HasPrefix(lines[0], "WARN"))
		require.Contains(t, lines[0], "run=o")
		require.Contains(t, lines[0], `"nested" was called in the body of charge`)
	})
}
