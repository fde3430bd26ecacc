package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// setup makes the SDK export what the library and the program say to
// OTEL_EXPORTER_OTLP_ENDPOINT, under the name OTEL_SERVICE_NAME. The library uses
// the global providers unless Options name others.
func setup(ctx context.Context) (shutdown func(context.Context) error, err error) {
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	// Each span is sent when it ends, so that a kill loses none of those. A program
	// that makes many uses WithBatcher, and loses those of the last seconds. With
	// WithIDGenerator(durable.SpanIDs{}) it sends the root of a trace once more when
	// the run ends in another process. Here that root was never lost, and a backend
	// which keeps every span it gets, as Jaeger in memory does, would show it twice.
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	otel.SetTracerProvider(tracing)

	points, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, errors.Join(err, tracing.Shutdown(ctx))
	}
	metering := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points, sdkmetric.WithInterval(time.Second))))
	otel.SetMeterProvider(metering)
	return func(ctx context.Context) error {
		return errors.Join(tracing.Shutdown(ctx), metering.Shutdown(ctx))
	}, nil
}
