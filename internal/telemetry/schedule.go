package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ScheduleFired counts fires of schedules by what became of them.
func (m *Metrics) ScheduleFired(workflow, outcome string, n int64) {
	m.fires.Add(context.Background(), n, metric.WithAttributeSet(attribute.NewSet(AttrWorkflow.String(workflow), AttrOutcome.String(outcome))))
}

// ScheduleDelayed measures how much later than it was due a run was started.
func (m *Metrics) ScheduleDelayed(workflow string, late time.Duration) {
	m.scheduleDelay.Record(context.Background(), late.Seconds(), m.attributesOf(workflow).workflow)
}
