package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-dev/holdfast/store"
)

// What the engine measures, through the meter of OpenTelemetry. Attributes are
// the names of workflows, statuses, outcomes and codes: few values, none of which
// grows with the number of runs. docs/telemetry.md lists them. Without an SDK
// nothing is computed but what Health says (pace.go).

const (
	metricStatus  = attribute.Key("durable.run.status")
	metricOutcome = attribute.Key("durable.outcome") // of an attempt: "ok", "failed"
	metricResult  = attribute.Key("durable.result")  // of a commit: "ok", "retried"
)

// secondsBuckets are the bounds of the histograms of durations, from half a
// millisecond, a commit, to a minute.
var secondsBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

type metrics struct {
	started, finished, recovered, retries, fenced, replayed, lost metric.Int64Counter
	runDuration, stepDuration, attemptDuration                    metric.Float64Histogram
	commitDuration, timerLag                                      metric.Float64Histogram
	batch                                                         metric.Int64Histogram
	registered                                                    metric.Registration
}

// newMetrics makes the instruments; the ones that are asked for at each
// collection look into the store.
func (e *Engine) newMetrics(p metric.MeterProvider) (*metrics, error) {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	meter := p.Meter(tracerName)
	m := &metrics{}
	var errs []error
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, what string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(secondsBuckets...))
		errs = append(errs, err)
		return h
	}
	gauge := func(name, unit, what string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	m.started = counter("durable.run.started", "{run}", "Runs started by this engine.")
	m.finished = counter("durable.run.finished", "{run}", "Runs that ended here, by status.")
	m.recovered = counter("durable.run.recovered", "{run}", "Runs continued here after their process was gone or stopped.")
	m.retries = counter("durable.step.retries", "{retry}", "Failed attempts that are followed by another one.")
	m.fenced = counter("durable.write.fenced", "{write}", "Writes refused because another executor has the run.")
	m.replayed = counter("durable.replay.steps", "{step}", "Steps that were read from the history instead of being run.")
	m.lost = counter("durable.lease.lost", "{lease}", "Beats that came after the lease had run out.")
	m.runDuration = seconds("durable.run.duration", "From a run's start to its end, over all processes.")
	m.stepDuration = seconds("durable.step.duration", "From the first attempt of a step to its outcome, pauses and crashes in between included.")
	m.attemptDuration = seconds("durable.attempt.duration", "Time in the body of a step, by outcome.")
	m.commitDuration = seconds("durable.commit.duration", "Time of a commit of the store.")
	m.timerLag = seconds("durable.timer.lag", "How much later than its time a sleep ended.")
	var err error
	m.batch, err = meter.Int64Histogram("durable.commit.size", metric.WithUnit("{change}"), metric.WithDescription("Runs that shared a commit."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
	errs = append(errs, err)

	here := gauge("durable.run.executing", "{run}", "Runs with goroutines in this engine.")
	unloaded := gauge("durable.run.unloaded", "{run}", "Runs of this engine that wait without goroutines.")
	runs := gauge("durable.runs", "{run}", "Runs in the store, by workflow and status.")
	stuck := gauge("durable.run.stuck", "{run}", "Runs that cannot go on, by code.")
	unserved := gauge("durable.run.unserved", "{run}", "Runs whose workflow and version no live executor serves.")
	depth := gauge("durable.queue.depth", "{run}", "Pending runs.")
	age, err := meter.Float64ObservableGauge("durable.queue.age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest pending run."))
	errs = append(errs, err)
	m.registered, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		e.mu.Lock()
		executing, dormant := len(e.runs), len(e.dormant)
		e.mu.Unlock()
		o.ObserveInt64(here, int64(executing))
		o.ObserveInt64(unloaded, int64(dormant))
		e.unserved.mu.Lock()
		for c, r := range e.unserved.found {
			o.ObserveInt64(unserved, r.runs, metric.WithAttributes(attrWorkflow.String(c.workflow), attrVersion.String(c.version)))
		}
		e.unserved.mu.Unlock()
		return e.observe(ctx, o, runs, stuck, depth, age)
	}, here, unloaded, runs, stuck, unserved, depth, age)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("durable: making the instruments of Options.MeterProvider: %w", err)
	}
	return m, nil
}

// observe asks the store for what only it knows. It is called once a collection.
func (e *Engine) observe(ctx context.Context, o metric.Observer, runs, stuck, depth metric.Int64Observable, age metric.Float64Observable) error {
	if e.isClosing() {
		return nil
	}
	for workflow := range e.defs.byName {
		counts, err := e.store.Count(ctx, store.Filter{Workflows: []string{workflow}}, store.ByStatus)
		if err != nil {
			return storeError(err)
		}
		for status, n := range counts {
			o.ObserveInt64(runs, n, metric.WithAttributes(attrWorkflow.String(workflow), metricStatus.String(status)))
		}
	}
	codes, err := e.store.Count(ctx, store.Filter{Statuses: []store.Status{store.Interrupted}}, store.ByCode)
	if err != nil {
		return storeError(err)
	}
	for code, n := range codes {
		if code != "" {
			o.ObserveInt64(stuck, n, metric.WithAttributes(attrCode.String(code)))
		}
	}
	pending := store.Filter{Statuses: []store.Status{store.Pending}}
	n, err := e.store.Count(ctx, pending, "")
	if err != nil {
		return storeError(err)
	}
	o.ObserveInt64(depth, n[""])
	pending.OldestFirst, pending.Limit = true, 1
	page, err := e.store.List(ctx, pending)
	if err != nil {
		return storeError(err)
	}
	oldest := 0.0
	if len(page.Runs) > 0 {
		oldest = e.now().Sub(page.Runs[0].CreatedAt).Seconds()
	}
	o.ObserveFloat64(age, oldest)
	return nil
}

// stop ends the callback.
func (m *metrics) stop() { _ = m.registered.Unregister() }

// count adds n to a counter that somebody listens to.
func count(c metric.Int64Counter, n int, attrs ...attribute.KeyValue) {
	if ctx := context.Background(); n > 0 && c.Enabled(ctx) {
		c.Add(ctx, int64(n), metric.WithAttributes(attrs...))
	}
}

// measure records a duration if somebody listens.
func measure(h metric.Float64Histogram, d time.Duration, attrs ...attribute.KeyValue) {
	if ctx := context.Background(); h.Enabled(ctx) {
		h.Record(ctx, d.Seconds(), metric.WithAttributes(attrs...))
	}
}

// measureEnd counts a run that has ended here.
func (r *run) measureEnd() {
	m := r.eng.metrics
	if r.outcome.status == "" || !m.finished.Enabled(context.Background()) {
		return
	}
	attrs := []attribute.KeyValue{attrWorkflow.String(r.row.Workflow), metricStatus.String(string(r.outcome.status))}
	count(m.finished, 1, attrs...)
	measure(m.runDuration, r.lastAt.Sub(r.row.CreatedAt), attrs...)
}

// measureAttempt records how long a body took.
func (st *step) measureAttempt(took time.Duration, err error) {
	r := st.call.scope.run
	h := r.eng.metrics.attemptDuration
	if !h.Enabled(context.Background()) {
		return
	}
	measure(h, took, attrWorkflow.String(r.row.Workflow), metricOutcome.String(metricOf(err)))
}

func metricOf(err error) string {
	if err != nil {
		return outcomeFailed
	}
	return outcomeOK
}

// measureStep records how long it took to come to an outcome, which is recorded.
func (st *step) measureStep(err error) {
	r := st.call.scope.run
	if h := r.eng.metrics.stepDuration; h.Enabled(context.Background()) {
		measure(h, r.eng.now().Sub(st.start), attrWorkflow.String(r.row.Workflow), metricOutcome.String(metricOf(err)))
	}
}

// measureCommit records a commit of n runs, if somebody listens.
func (m *metrics) measureCommit(took time.Duration, n int, errs []error) {
	if !m.commitDuration.Enabled(context.Background()) {
		return
	}
	result := "ok"
	for _, err := range errs {
		switch {
		case err == nil || definite(err):
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrOwned):
			count(m.fenced, 1)
		default:
			result = "retried"
		}
	}
	measure(m.commitDuration, took, metricResult.String(result))
	m.batch.Record(context.Background(), int64(n))
}
