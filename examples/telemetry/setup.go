package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// telemetry is the SDK of a process.
type telemetry struct {
	tracing  *sdktrace.TracerProvider
	metering *sdkmetric.MeterProvider
}

// setup makes the SDK export what the library and the program say to
// OTEL_EXPORTER_OTLP_ENDPOINT, under the name OTEL_SERVICE_NAME. The library uses
// the global providers unless Options name others.
func setup(ctx context.Context) (*telemetry, error) {
	// Each process is a separate instance: otherwise two of them would share their
	// series, which would count twice or seem to jump. OTEL_RESOURCE_ATTRIBUTES takes
	// precedence.
	self, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.instance.id", rand.Text())), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	// Spans are sent in batches, on a goroutine of the SDK: a collector that is slow
	// or gone costs a step nothing. A kill loses those that are not sent yet, here of
	// the last fifth of a second. With WithIDGenerator(durable.SpanIDs{}) the root of
	// a trace is sent once more when the run ends in another process. Here that root
	// was never lost, and a backend which keeps every span it gets, as Jaeger in
	// memory does, would show it twice.
	tracing := sdktrace.NewTracerProvider(sdktrace.WithResource(self), sdktrace.WithBatcher(spans, sdktrace.WithBatchTimeout(200*time.Millisecond)))
	otel.SetTracerProvider(tracing)

	points, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, errors.Join(err, tracing.Shutdown(ctx))
	}
	metering := sdkmetric.NewMeterProvider(sdkmetric.WithResource(self), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points, sdkmetric.WithInterval(time.Second))))
	otel.SetMeterProvider(metering)

	// HTTP headers carry the trace and baggage, in both directions.
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	return &telemetry{tracing: tracing, metering: metering}, nil
}

// opened sends the counters while they are zero: between Open and Recover, so that
// what recovery counts is seen as an increase. It does not wait for a collector that
// does not answer.
func (t *telemetry) opened(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = t.metering.ForceFlush(ctx)
}

// flush sends what has been seen so far.
func (t *telemetry) flush(ctx context.Context) {
	_ = t.tracing.ForceFlush(ctx)
}

func (t *telemetry) shutdown(ctx context.Context) error {
	return errors.Join(t.tracing.Shutdown(ctx), t.metering.Shutdown(ctx))
}
