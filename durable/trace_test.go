package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
)

func TestARunIsOneTraceAcrossItsProcesses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		below := 0
		wf := durable.Define("traced", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "one", func(ctx context.Context) error {
				_, own := provider.Tracer("user").Start(ctx, "the user's own")
				own.End()
				below++
				return nil
			}); err != nil {
				return 0, err
			}
			return durable.Retry(ctx, "two", durable.Policy{Initial: time.Hour, Max: time.Hour}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number < 3 {
					return 0, errors.New("secret-marker")
				}
				return 2, nil
			})
		})
		o := durable.Options{Workflows: []durable.Definition{wf}, TracerProvider: provider}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		for range 2 {
			synctest.Wait()
			w.reboot(t, o)
			time.Sleep(time.Hour)
		}
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		synctest.Wait()

		ids := map[trace.TraceID]bool{}
		byID := map[trace.SpanID]string{}
		count := map[string]int{}
		for _, s := range spans.GetSpans() {
			ids[s.SpanContext.TraceID()] = true
			byID[s.SpanContext.SpanID()] = s.Name
		}
		for _, s := range spans.GetSpans() {
			name := fmt.Sprintf("%s < %s", s.Name, byID[s.Parent.SpanID()])
			if s.Status.Code == codes.Error {
				name += " !"
			}
			count[name]++
			for _, a := range s.Attributes {
				require.NotContains(t, a.Value.String(), "secret-marker")
			}
			require.NotContains(t, s.Status.Description, "secret-marker")
		}
		require.Len(t, ids, 1, "one trace")
		require.Equal(t, 1, count["start traced < "])
		require.Equal(t, 1, count["step one < segment traced"], "a replayed step makes no span: %v", count)
		require.Equal(t, 1, count["the user's own < attempt one"])
		require.Equal(t, 2, count["attempt two < step two !"], "each failed attempt once: %v", count)
		require.Equal(t, 1, count["attempt two < step two"])
		require.Equal(t, 1, below)
		require.NoError(t, provider.Shutdown(context.Background()))
	})
}
