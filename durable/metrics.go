package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// What the engine measures, through the meter of OpenTelemetry. Attributes are
// the names of workflows, statuses, outcomes and codes: few values, none of which
// grows with the number of runs. docs/telemetry.md lists them. Without an SDK
// nothing is computed but what Health says (health.go).
//
// Every counter has a value from Open on, zero, for each workflow that the engine
// serves: a series that begins with its first count shows no increase at that
// count. What belongs to a run is measured under the context of its span, from
// which an SDK takes its exemplars.

const (
	metricStatus  = attribute.Key("durable.run.status")
	metricOutcome = attribute.Key("durable.outcome") // of an attempt: "ok", "failed"
	metricResult  = attribute.Key("durable.result")  // of a commit: "ok", "retried"
)

// secondsBuckets are the bounds of the histograms of what is short, from half a
// millisecond, a commit, to a minute; daysBuckets those of runs, steps and bodies,
// which may wait for people, go on to thirty days.
var (
	secondsBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	daysBuckets    = append(secondsBuckets[:len(secondsBuckets):len(secondsBuckets)], 5*60, 15*60, 3600, 4*3600, 12*3600, 86400, 3*86400, 7*86400, 30*86400)
)

// liveStatuses are those of runs that have not ended, and parkedCodes why one of
// them may be unable to go on: the gauges have a value for each.
var (
	liveStatuses = []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted}
	parkedCodes  = []string{CodeDefinitionChanged, CodeUndecodable, CodeDamaged, CodeNotRegistered, CodeChildMissing, CodeUnrecorded}
)

type metrics struct {
	of sync.Map // *workflowAttributes by the name of the workflow

	started, finished, recovered, retries, fenced, replayed, lost metric.Int64Counter
	runDuration, stepDuration, attemptDuration                    metric.Float64Histogram
	commitDuration, timerLag                                      metric.Float64Histogram
	batch                                                         metric.Int64Histogram
	registered                                                    metric.Registration
	quarantined                                                   rareCount
}

// newMetrics makes the instruments; the ones that are asked for at each
// collection look into the store.
func newMetrics(e *Engine, p metric.MeterProvider) (*metrics, error) {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	meter := p.Meter(telemetry.TracerName)
	m := &metrics{}
	var errs []error
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	duration := func(name, what string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	gauge := func(name, unit, what string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	m.started = counter("durable.run.started", "{run}", "Runs started by this engine, children and forks included.")
	m.finished = counter("durable.run.finished", "{run}", "Runs that ended here, by status.")
	m.recovered = counter("durable.run.recovered", "{run}", "Runs continued here after their process was gone or stopped.")
	m.retries = counter("durable.step.retries", "{retry}", "Failed attempts that are followed by another one.")
	m.fenced = counter("durable.write.fenced", "{write}", "Writes refused because another executor has the run.")
	m.replayed = counter("durable.replay.steps", "{step}", "Steps that were read from the history instead of being run.")
	m.lost = counter("durable.lease.lost", "{lease}", "Beats that came after the lease had run out.")
	m.runDuration = duration("durable.run.duration", "From a run's start to its end, over all processes.", daysBuckets)
	m.stepDuration = duration("durable.step.duration", "From the first attempt of a step to its outcome, pauses and crashes in between included.", daysBuckets)
	m.attemptDuration = duration("durable.attempt.duration", "Time in the body of a step, by outcome.", daysBuckets)
	m.commitDuration = duration("durable.commit.duration", "Time of a commit of the store.", secondsBuckets)
	m.timerLag = duration("durable.timer.lag", "How much later than its time a sleep ended.", daysBuckets)
	var err error
	m.batch, err = meter.Int64Histogram("durable.commit.size", metric.WithUnit("{change}"), metric.WithDescription("Runs that shared a commit."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
	errs = append(errs, err)

	here := gauge("durable.run.executing", "{run}", "Runs with goroutines in this engine.")
	unloaded := gauge("durable.run.unloaded", "{run}", "Runs of this engine that wait without goroutines.")
	runs := gauge("durable.runs", "{run}", "Runs in the store that have not ended, by workflow and status.")
	stuck := gauge("durable.run.stuck", "{run}", "Runs that cannot go on, by code.")
	unserved := gauge("durable.run.unserved", "{run}", "Runs whose workflow and version no live executor serves.")
	depth := gauge("durable.queue.depth", "{run}", "Pending runs.")
	age, err := meter.Float64ObservableGauge("durable.queue.age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest pending run."))
	errs = append(errs, err)
	// Two engines of a process may share a provider.
	mine := metric.WithAttributeSet(attribute.NewSet(telemetry.AttrExecutor.String(e.id)))
	m.registered, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		executing, dormant := e.roster.count()
		o.ObserveInt64(here, int64(executing), mine)
		o.ObserveInt64(unloaded, int64(dormant), mine)
		e.recovery.unserved.mu.Lock()
		for c, r := range e.recovery.unserved.found {
			o.ObserveInt64(unserved, r.runs, metric.WithAttributes(telemetry.AttrWorkflow.String(c.workflow), telemetry.AttrVersion.String(c.version)))
		}
		e.recovery.unserved.mu.Unlock()
		return m.observe(ctx, e, o, runs, stuck, depth, age)
	}, here, unloaded, runs, stuck, unserved, depth, age)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("durable: making the instruments of Options.MeterProvider: %w", err)
	}
	m.begin(e.program.defs)
	return m, nil
}

// begin gives every counter its first value, zero.
func (m *metrics) begin(defs *definitions) {
	ctx := context.Background()
	for workflow := range defs.byName {
		a := m.attributes(workflow)
		for _, c := range []metric.Int64Counter{m.started, m.recovered, m.retries, m.replayed} {
			c.Add(ctx, 0, a.workflow)
		}
		for _, ended := range a.ended {
			m.finished.Add(ctx, 0, ended)
		}
	}
	m.fenced.Add(ctx, 0)
	m.lost.Add(ctx, 0)
}

// workflowAttributes are the attributes of what is measured of a workflow, made
// once.
type workflowAttributes struct {
	workflow, ok, failed metric.MeasurementOption
	ended                map[store.Status]metric.MeasurementOption
}

func (m *metrics) attributes(workflow string) *workflowAttributes {
	if a, ok := m.of.Load(workflow); ok {
		return a.(*workflowAttributes)
	}
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, telemetry.AttrWorkflow.String(workflow))...))
	}
	a := &workflowAttributes{workflow: with(), ok: with(metricOutcome.String(telemetry.OutcomeOK)), failed: with(metricOutcome.String(telemetry.OutcomeFailed)), ended: map[store.Status]metric.MeasurementOption{}}
	for _, s := range []store.Status{store.Completed, store.Failed, store.Cancelled} {
		a.ended[s] = with(metricStatus.String(string(s)))
	}
	kept, _ := m.of.LoadOrStore(workflow, a)
	return kept.(*workflowAttributes)
}

// outcome returns the attributes of an attempt or step that ended with err.
func (a *workflowAttributes) outcome(err error) metric.MeasurementOption {
	if err != nil {
		return a.failed
	}
	return a.ok
}

// observe asks the store for what only it knows. It is called once a collection.
func (m *metrics) observe(ctx context.Context, e *Engine, o metric.Observer, runs, stuck, depth metric.Int64Observable, age metric.Float64Observable) error {
	if e.roster.isClosing() {
		return nil
	}
	// Ended runs are not counted: they may be kept by the million, and
	// durable.run.finished counts their ends.
	for _, status := range liveStatuses {
		counts, err := e.store.Count(ctx, store.Filter{Statuses: []store.Status{status}}, store.ByWorkflow)
		if err != nil {
			return storeError(err)
		}
		for workflow := range e.program.defs.byName {
			o.ObserveInt64(runs, counts[workflow], metric.WithAttributes(telemetry.AttrWorkflow.String(workflow), metricStatus.String(string(status))))
		}
	}
	codes, err := e.store.Count(ctx, store.Filter{Statuses: []store.Status{store.Interrupted}}, store.ByCode)
	if err != nil {
		return storeError(err)
	}
	delete(codes, "") // those that were stopped, and go on
	for _, code := range parkedCodes {
		codes[code] += 0
	}
	if codes[CodeQuarantined], err = m.quarantined.ask(func() (int64, error) {
		n, err := e.store.Count(ctx, quarantinedRuns, "")
		return n[""], err
	}); err != nil {
		return storeError(err)
	}
	for code, n := range codes {
		o.ObserveInt64(stuck, n, metric.WithAttributes(telemetry.AttrCode.String(code)))
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

// quarantinedRuns are runs that have failed, as far as the store goes, though an
// operator is to decide about them.
var quarantinedRuns = store.Filter{Statuses: []store.Status{store.Failed}, Codes: []string{CodeQuarantined}}

// rareShare is which part of the time a rareCount may take.
const rareShare = 100

// rareCount is a number that a store may read much for: kept failed runs may be
// many, and not every store has an index by code. It is counted anew at most so
// often that it takes a hundredth of the time, and is as old as that between.
type rareCount struct {
	mu   sync.Mutex
	n    int64
	next time.Time // not before
}

func (c *rareCount) ask(count func() (int64, error)) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.next) {
		return c.n, nil
	}
	n, err := count()
	ended := time.Now()
	c.next = ended.Add(rareShare * ended.Sub(began))
	if err == nil {
		c.n = n
	}
	return c.n, err
}

// stop ends the callback.
func (m *metrics) stop() { _ = m.registered.Unregister() }

// count adds n to a counter of a workflow, if somebody listens. ctx has the span
// that it happened under.
func (m *metrics) count(ctx context.Context, c metric.Int64Counter, n int, workflow string) {
	if n > 0 && c.Enabled(ctx) {
		c.Add(ctx, int64(n), m.attributes(workflow).workflow)
	}
}

// countStart counts a run that this engine has started.
func (m *metrics) countStart(row *store.Run) {
	m.count(startContext(row), m.started, 1, row.Workflow)
}

// countEnd counts a run that this engine has ended.
func (m *metrics) countEnd(ctx context.Context, row *store.Run, status store.Status, at store.Time) {
	if !m.finished.Enabled(ctx) {
		return
	}
	as := m.attributes(row.Workflow).ended[status]
	m.finished.Add(ctx, 1, as)
	m.runDuration.Record(ctx, at.Sub(row.CreatedAt).Seconds(), as)
}

// startContext returns a context with the span of a run's start, for what is
// measured of a run that is not executed here.
func startContext(row *store.Run) context.Context {
	ctx := context.Background()
	if sc := telemetry.Parse(row.Trace); sc.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// measureAttempt records how long a body took.
func (st *step) measureAttempt(took time.Duration, err error) {
	if h := st.call.scope.run.eng.metrics.attemptDuration; h.Enabled(st.call.scope.run.ctx) {
		st.measure(h, took, err)
	}
}

// measureStep records how long it took to come to an outcome, which is recorded.
func (st *step) measureStep(err error) {
	e := st.call.scope.run.eng
	if h := e.metrics.stepDuration; h.Enabled(st.call.scope.run.ctx) {
		st.measure(h, e.now().Sub(st.start), err)
	}
}

func (st *step) measure(h metric.Float64Histogram, d time.Duration, err error) {
	r := st.call.scope.run
	h.Record(st.measuredIn(), d.Seconds(), r.eng.metrics.attributes(r.row.Workflow).outcome(err))
}

// measuredIn returns a context with the span of the attempt that was made last,
// or of the run.
func (st *step) measuredIn() context.Context {
	if t := st.spans; t != nil && t.body != nil {
		return t.body
	}
	return st.call.scope.run.ctx
}

// measureCommit records a commit and the answers to its changes, if somebody listens.
func (m *metrics) measureCommit(took time.Duration, errs []error) {
	if !m.commitDuration.Enabled(context.Background()) {
		return
	}
	result := "ok"
	for _, err := range errs {
		switch {
		case err == nil || definite(err):
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrOwned):
			m.fenced.Add(context.Background(), 1)
		default:
			result = "retried"
		}
	}
	m.commitDuration.Record(context.Background(), took.Seconds(), metric.WithAttributes(metricResult.String(result)))
	m.batch.Record(context.Background(), int64(len(errs)))
}
