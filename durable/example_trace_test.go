package durable_test

import (
	"context"
	"fmt"
	"log/slog"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func ExampleSpanIDs() {
	exporter := tracetest.NewInMemoryExporter() // in a program, one for OTLP
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithIDGenerator(durable.SpanIDs{}))

	greet := durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, "compose", func(context.Context) (string, error) { return "Hello, " + name, nil })
	})
	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{greet}, TracerProvider: tracing, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := greet.Run(durable.NewContext(ctx, eng), "greet-1", "Ada"); err != nil {
		fmt.Println(err)
	}
	_ = eng.Close()
	fmt.Println(exporter.GetSpans()[0].Name)
	// Output: start greet
}
