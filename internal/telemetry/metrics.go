package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

// Metrics are the instruments of an engine, made through the meter of OpenTelemetry.
// Attributes are the names of workflows, statuses, outcomes and codes: few values, none
// of which grows with the number of runs. docs/telemetry.md lists them. While no SDK
// listens, a method computes nothing.
//
// Every counter has a value from the start on, zero, for each workflow that the engine
// serves: a series that begins with its first count shows no increase at that
// count. What belongs to a run is measured in the context of the run's span, from which
// an SDK takes its exemplars.
type Metrics struct {
	options    MetricsOptions
	attributes sync.Map // *workflowAttributes by the name of the workflow

	started, finished, recovered, retries, fenced, replayed, lost, fires metric.Int64Counter
	runDuration, stepDuration, attemptDuration                           metric.Float64Histogram
	commitDuration, timerLag, scheduleDelay                              metric.Float64Histogram
	batch                                                                metric.Int64Histogram
	gauges                                                               gauges
	registered                                                           metric.Registration
	quarantined                                                          rare[int64]
	queues                                                               rare[[]store.QueueState]
}

// MetricsOptions configure Metrics: who measures, and where the values that are asked for
// at each collection come from.
type MetricsOptions struct {
	Meter      metric.MeterProvider
	ExecutorID string
	Workflows  []string // that the engine serves
	Store      store.Store
	Now        func() store.Time // of the store

	// Executed returns how many runs have goroutines in the engine, and how many wait
	// without any.
	Executed func() (executing, unloaded int)
	// Closing reports whether the engine is being closed: then the store is not asked.
	Closing func() bool
	// Unserved reports, for each workflow and version that no live executor serves, and for
	// each queue from which none that has their code takes runs, how many runs there are.
	Unserved func(report func(workflow, version, queue string, runs int64))
	// Parked are the codes of interrupted runs that cannot go on: each has a value of
	// durable.run.stuck. Quarantined are failed runs with the code Quarantine.
	Parked      []string
	Quarantine  string
	Quarantined store.Filter
	// StoreError says what an error of the store means.
	StoreError func(error) error
}

// metricResult says how a commit ended, as in "ok" and "retried". The other attributes
// are those of spans.
const metricResult = attribute.Key("durable.result")

// secondsBuckets are the bounds of the histograms of short times, from half a millisecond
// (a commit) to a minute; daysBuckets, those of runs, steps and bodies, which may wait
// for people, reach thirty days.
var (
	secondsBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	daysBuckets    = slices.Concat(secondsBuckets, []float64{5 * 60, 15 * 60, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400})
)

// liveStatuses are the statuses of runs that have not ended: durable.runs has a value for
// each.
var liveStatuses = []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted}

// gauges are the instruments that are asked for at each collection.
type gauges struct {
	executing, unloaded, runs, stuck, unserved, depth metric.Int64ObservableGauge
	age                                               metric.Float64ObservableGauge
}

// instruments makes instruments and collects the errors.
type instruments struct {
	meter metric.Meter
	errs  []error
}

func (in *instruments) counter(name, unit, what string) metric.Int64Counter {
	c, err := in.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	in.errs = append(in.errs, err)
	return c
}

func (in *instruments) duration(name, what string, bounds []float64) metric.Float64Histogram {
	h, err := in.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	in.errs = append(in.errs, err)
	return h
}

func (in *instruments) sizes(name, unit, what string, bounds ...float64) metric.Int64Histogram {
	h, err := in.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	in.errs = append(in.errs, err)
	return h
}

func (in *instruments) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := in.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	in.errs = append(in.errs, err)
	return g
}

func (in *instruments) age(name, what string) metric.Float64ObservableGauge {
	g, err := in.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(what))
	in.errs = append(in.errs, err)
	return g
}

// NewMetrics makes the instruments. From then on until Stop, each collection asks the
// store.
func NewMetrics(o MetricsOptions) (*Metrics, error) {
	m := &Metrics{options: o}
	in := &instruments{meter: o.Meter.Meter(TracerName, metric.WithInstrumentationVersion(host.Release()))}
	m.started = in.counter("durable.run.started", "{run}", "Runs started by this engine, children and forks included.")
	m.finished = in.counter("durable.run.finished", "{run}", "Runs that ended here, by status.")
	m.recovered = in.counter("durable.run.recovered", "{run}", "Runs continued here after their process was gone or stopped.")
	m.retries = in.counter("durable.step.retries", "{retry}", "Failed attempts that are followed by another one.")
	m.fenced = in.counter("durable.write.fenced", "{write}", "Writes refused because another executor has the run.")
	m.replayed = in.counter("durable.replay.steps", "{step}", "Steps that were read from the history instead of being run.")
	m.lost = in.counter("durable.lease.lost", "{lease}", "Beats that came after the lease had run out.")
	m.runDuration = in.duration("durable.run.duration", "From a run's start to its end, over all processes.", daysBuckets)
	m.stepDuration = in.duration("durable.step.duration", "From the first attempt of a step to its outcome, pauses and crashes in between included.", daysBuckets)
	m.attemptDuration = in.duration("durable.attempt.duration", "Time in the body of a step, by outcome.", daysBuckets)
	m.commitDuration = in.duration("durable.commit.duration", "Time of a commit of the store.", secondsBuckets)
	m.timerLag = in.duration("durable.timer.lag", "How much later than its time a sleep ended.", daysBuckets)
	m.fires = in.counter("durable.schedule.fires", "{fire}", "Fires of schedules that this engine has decided, by outcome.")
	m.scheduleDelay = in.duration("durable.schedule.delay", "How much later than it was due a schedule started its run.", daysBuckets)
	m.batch = in.sizes("durable.commit.size", "{change}", "Runs that shared a commit.", 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
	m.gauges = gauges{
		executing: in.gauge("durable.run.executing", "{run}", "Runs with goroutines in this engine."),
		unloaded:  in.gauge("durable.run.unloaded", "{run}", "Runs of this engine that wait without goroutines."),
		runs:      in.gauge("durable.runs", "{run}", "Runs in the store that have not ended, by workflow and status."),
		stuck:     in.gauge("durable.run.stuck", "{run}", "Runs that cannot go on, by code."),
		unserved:  in.gauge("durable.run.unserved", "{run}", "Runs whose workflow and version no live executor serves, or takes from their queue."),
		depth:     in.gauge("durable.queue.depth", "{run}", "Pending runs; of a queue: the runs in line."),
		age:       in.age("durable.queue.age", "Age of the oldest pending run; of a queue: how long the oldest run in line has been due."),
	}
	g := &m.gauges
	var err error
	m.registered, err = in.meter.RegisterCallback(m.collect, g.executing, g.unloaded, g.runs, g.stuck, g.unserved, g.depth, g.age)
	if err := errors.Join(append(in.errs, err)...); err != nil {
		return nil, fmt.Errorf("durable: making the instruments of Options.MeterProvider: %w", err)
	}
	m.begin()
	return m, nil
}

// begin gives every counter its first value, zero.
func (m *Metrics) begin() {
	ctx := context.Background()
	for _, workflow := range m.options.Workflows {
		a := m.attributesOf(workflow)
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

// Stop ends the queries to the store.
func (m *Metrics) Stop() { _ = m.registered.Unregister() }

// workflowAttributes are the attributes of a workflow's measurements, made once.
type workflowAttributes struct {
	workflow, ok, failed metric.MeasurementOption
	ended                map[store.Status]metric.MeasurementOption
}

func (m *Metrics) attributesOf(workflow string) *workflowAttributes {
	if a, ok := m.attributes.Load(workflow); ok {
		return a.(*workflowAttributes)
	}
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, AttrWorkflow.String(workflow))...))
	}
	a := &workflowAttributes{workflow: with(), ok: with(AttrOutcome.String(OutcomeOK)), failed: with(AttrOutcome.String(OutcomeFailed)), ended: map[store.Status]metric.MeasurementOption{}}
	for _, s := range []store.Status{store.Completed, store.Failed, store.Cancelled} {
		a.ended[s] = with(AttrStatus.String(string(s)))
	}
	kept, _ := m.attributes.LoadOrStore(workflow, a)
	return kept.(*workflowAttributes)
}

// outcome returns the attributes of an attempt or step that ended with err.
func (a *workflowAttributes) outcome(err error) metric.MeasurementOption {
	if err != nil {
		return a.failed
	}
	return a.ok
}

// count adds n to a counter of a workflow, if an SDK listens. ctx has the span under
// which it happened.
func (m *Metrics) count(ctx context.Context, c metric.Int64Counter, n int, workflow string) {
	if n > 0 && c.Enabled(ctx) {
		c.Add(ctx, int64(n), m.attributesOf(workflow).workflow)
	}
}

// RunStarted counts a run that this engine has started.
func (m *Metrics) RunStarted(row *store.Run) {
	m.count(startContext(row), m.started, 1, row.Workflow)
}

// RunRecovered counts a run that is continued here after its process was gone.
func (m *Metrics) RunRecovered(ctx context.Context, workflow string) {
	m.count(ctx, m.recovered, 1, workflow)
}

// RunEnded counts a run that this engine has executed and ended, at this time.
func (m *Metrics) RunEnded(ctx context.Context, row *store.Run, status store.Status, at store.Time) {
	if !m.finished.Enabled(ctx) {
		return
	}
	as := m.attributesOf(row.Workflow).ended[status]
	m.finished.Add(ctx, 1, as)
	m.runDuration.Record(ctx, between(row.CreatedAt, at), as)
}

// between returns how many seconds passed from one moment to another; none if the store's clock was set back meanwhile.
func between(from, to store.Time) float64 { return max(to.Sub(from), 0).Seconds() }

// OrphanEnded is RunEnded for a run that is not executed here.
func (m *Metrics) OrphanEnded(row *store.Run, status store.Status, at store.Time) {
	m.RunEnded(startContext(row), row, status, at)
}

// startContext returns a context with the span of a run's start, for measurements of a
// run that is not executed here.
func startContext(row *store.Run) context.Context {
	ctx := context.Background()
	if sc := Parse(row.Trace); sc.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// StepsReplayed counts steps that a run has read from its history.
func (m *Metrics) StepsReplayed(ctx context.Context, workflow string, n int) {
	m.count(ctx, m.replayed, n, workflow)
}

// StepRetried counts a failed attempt that another one follows.
func (m *Metrics) StepRetried(ctx context.Context, workflow string) {
	m.count(ctx, m.retries, 1, workflow)
}

// AttemptEnded measures how long a body that ended with err took.
func (m *Metrics) AttemptEnded(ctx context.Context, workflow string, took time.Duration, err error) {
	if h := m.attemptDuration; h.Enabled(ctx) {
		h.Record(ctx, took.Seconds(), m.attributesOf(workflow).outcome(err))
	}
}

// StepEnded measures how long a step took from its first attempt, which began at a time,
// to the recorded outcome err.
func (m *Metrics) StepEnded(ctx context.Context, workflow string, began store.Time, err error) {
	if h := m.stepDuration; h.Enabled(ctx) {
		h.Record(ctx, between(began, m.options.Now()), m.attributesOf(workflow).outcome(err))
	}
}

// SleepEnded measures how late a sleep ended that was due at a time.
func (m *Metrics) SleepEnded(ctx context.Context, workflow string, due store.Time) {
	if h := m.timerLag; h.Enabled(ctx) {
		h.Record(ctx, between(due, m.options.Now()), m.attributesOf(workflow).workflow)
	}
}

// LeaseLost counts a heartbeat that came after the lease had run out.
func (m *Metrics) LeaseLost(ctx context.Context) { m.lost.Add(ctx, 1) }

// Committed measures a commit, and counts the answers to its changes.
func (m *Metrics) Committed(took time.Duration, answers []error) {
	ctx := context.Background()
	if !m.commitDuration.Enabled(ctx) {
		return
	}
	result := "ok"
	for _, err := range answers {
		switch {
		case err == nil || commit.Definite(err):
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrOwned):
			m.fenced.Add(ctx, 1)
		default:
			result = "retried"
		}
	}
	m.commitDuration.Record(ctx, took.Seconds(), metric.WithAttributes(metricResult.String(result)))
	m.batch.Record(ctx, int64(len(answers)))
}

// collect observes the gauges. It is called once for each collection.
func (m *Metrics) collect(ctx context.Context, o metric.Observer) error {
	g := &m.gauges
	executing, unloaded := m.options.Executed()
	// Two engines of a process may share a provider.
	mine := metric.WithAttributeSet(attribute.NewSet(AttrExecutor.String(m.options.ExecutorID)))
	o.ObserveInt64(g.executing, int64(executing), mine)
	o.ObserveInt64(g.unloaded, int64(unloaded), mine)
	m.options.Unserved(func(workflow, version, queue string, runs int64) {
		attrs := []attribute.KeyValue{AttrWorkflow.String(workflow), AttrVersion.String(version)}
		if queue != "" {
			attrs = append(attrs, attrQueue.String(queue))
		}
		o.ObserveInt64(g.unserved, runs, metric.WithAttributes(attrs...))
	})
	if m.options.Closing() {
		return nil
	}
	for _, observe := range []func(context.Context, metric.Observer) error{m.collectRuns, m.collectStuck, m.collectPending, m.collectQueues} {
		if err := observe(ctx, o); err != nil {
			return m.options.StoreError(err)
		}
	}
	return nil
}

// collectRuns observes the runs that have not ended. Ended runs are not counted: they may
// be kept by the million, and durable.run.finished counts their ends.
func (m *Metrics) collectRuns(ctx context.Context, o metric.Observer) error {
	for _, status := range liveStatuses {
		counts, err := m.options.Store.Count(ctx, store.Filter{Statuses: []store.Status{status}}, store.ByWorkflow)
		if err != nil {
			return err
		}
		for _, workflow := range m.options.Workflows {
			o.ObserveInt64(m.gauges.runs, counts[workflow], metric.WithAttributes(AttrWorkflow.String(workflow), AttrStatus.String(string(status))))
		}
	}
	return nil
}

// collectStuck observes the runs that cannot go on.
func (m *Metrics) collectStuck(ctx context.Context, o metric.Observer) error {
	s := m.options.Store
	codes, err := s.Count(ctx, store.Filter{Statuses: []store.Status{store.Interrupted}}, store.ByCode)
	if err != nil {
		return err
	}
	delete(codes, "") // runs that were stopped, and go on
	for _, code := range m.options.Parked {
		codes[code] += 0
	}
	if codes[m.options.Quarantine], err = m.quarantined.ask(func() (int64, error) {
		n, err := s.Count(ctx, m.options.Quarantined, "")
		return n[""], err
	}); err != nil {
		return err
	}
	for code, n := range codes {
		o.ObserveInt64(m.gauges.stuck, n, metric.WithAttributes(AttrCode.String(code)))
	}
	return nil
}

// collectPending observes the runs that are pending, and how long the oldest of them has been.
func (m *Metrics) collectPending(ctx context.Context, o metric.Observer) error {
	pending := store.Filter{Statuses: []store.Status{store.Pending}}
	n, err := m.options.Store.Count(ctx, pending, "")
	if err != nil {
		return err
	}
	o.ObserveInt64(m.gauges.depth, n[""])
	pending.OldestFirst, pending.Limit = true, 1
	page, err := m.options.Store.List(ctx, pending)
	if err != nil {
		return err
	}
	oldest := 0.0
	if len(page.Runs) > 0 {
		oldest = between(page.Runs[0].CreatedAt, m.options.Now())
	}
	o.ObserveFloat64(m.gauges.age, oldest)
	return nil
}

// collectQueues observes the lines of the queues that were defined. Other queues may be as
// many as somebody makes up names.
func (m *Metrics) collectQueues(ctx context.Context, o metric.Observer) error {
	kept := store.CapabilitiesOf(m.options.Store).Queues
	if kept == nil {
		return nil
	}
	queues, err := m.queues.ask(func() ([]store.QueueState, error) { return kept.Queues(ctx) })
	if err != nil {
		return err
	}
	for i := range queues {
		q := &queues[i]
		if q.Revision == 0 {
			continue
		}
		name := metric.WithAttributes(attrQueue.String(q.Name))
		o.ObserveInt64(m.gauges.depth, q.InLine, name)
		oldest := 0.0
		if q.Oldest != 0 {
			oldest = between(q.Oldest, m.options.Now())
		}
		o.ObserveFloat64(m.gauges.age, oldest, name)
	}
	return nil
}

// rareShare is the divisor for the share of the time that reading what is rare may take.
const rareShare = 100

// rare is something for which a store may read much: kept failed runs may be many, and not
// every store has an index by code; runs in line may be many. It is read only so often that
// reading takes a hundredth of the time; between two reads, the last one is used.
type rare[T any] struct {
	mu   sync.Mutex
	v    T
	next time.Time // not before
}

func (c *rare[T]) ask(read func() (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.next) {
		return c.v, nil
	}
	v, err := read()
	ended := time.Now()
	c.next = ended.Add(rareShare * ended.Sub(began))
	if err == nil {
		c.v = v
	}
	return c.v, err
}
