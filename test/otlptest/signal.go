package otlptest

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Attributes are those of a span, event, link, data point or resource: strings,
// int64, float64, bool, and slices of them as []any.
type Attributes map[string]any

// String returns the attributes as "key=value", sorted by key.
func (a Attributes) String() string {
	parts := make([]string, 0, len(a))
	for k, v := range a {
		parts = append(parts, fmt.Sprintf("%s=%v", k, v))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// Span is a span as it was exported. Ids are in hexadecimal.
type Span struct {
	TraceID, ID, Parent string // Parent is empty for the root of a trace
	State               string // tracestate
	Name                string
	Kind                string // "internal", "producer", "consumer", "client", "server"
	Begin, End          time.Time
	Attributes          Attributes
	Events              []SpanEvent
	Links               []SpanLink
	Failed              bool   // its status is an error
	Status              string // what the status says
	Resource            Attributes
	Scope               string // instrumentation scope
}

// Took is the length of the span.
func (s *Span) Took() time.Duration { return s.End.Sub(s.Begin) }

// SpanEvent is something that happened within a span.
type SpanEvent struct {
	Name       string
	At         time.Time
	Attributes Attributes
}

// SpanLink points from a span to another one.
type SpanLink struct {
	TraceID, ID string
	Attributes  Attributes
}

// Point is one data point of a metric.
type Point struct {
	Metric, Unit, Description string
	Kind                      string // "sum", "gauge", "histogram"
	Monotonic                 bool   // of a sum
	Attributes                Attributes
	At                        time.Time
	Value                     float64 // of a sum or gauge; of a histogram, the sum of what was measured
	Count                     uint64  // of a histogram
	Bounds                    []float64
	Buckets                   []uint64
	Resource                  Attributes
	Scope                     string
}

func spansOf(data *trace.TracesData) []Span {
	var all []Span
	for _, rs := range data.GetResourceSpans() {
		res := resourceOf(rs.GetResource())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				span := spanOf(s)
				span.Resource, span.Scope = res, ss.GetScope().GetName()
				all = append(all, span)
			}
		}
	}
	return all
}

func spanOf(s *trace.Span) Span {
	span := Span{
		TraceID: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		State: s.GetTraceState(), Name: s.GetName(),
		Kind:  strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		Begin: timeOf(s.GetStartTimeUnixNano()), End: timeOf(s.GetEndTimeUnixNano()),
		Attributes: attributesOf(s.GetAttributes()),
		Failed:     s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR, Status: s.GetStatus().GetMessage(),
	}
	for _, e := range s.GetEvents() {
		span.Events = append(span.Events, SpanEvent{Name: e.GetName(), At: timeOf(e.GetTimeUnixNano()), Attributes: attributesOf(e.GetAttributes())})
	}
	for _, l := range s.GetLinks() {
		span.Links = append(span.Links, SpanLink{TraceID: hex.EncodeToString(l.GetTraceId()), ID: hex.EncodeToString(l.GetSpanId()), Attributes: attributesOf(l.GetAttributes())})
	}
	return span
}

func pointsOf(data *metrics.MetricsData) []Point {
	var all []Point
	for _, rm := range data.GetResourceMetrics() {
		res := resourceOf(rm.GetResource())
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				for _, p := range pointsOfMetric(m) {
					p.Metric, p.Unit, p.Description = m.GetName(), m.GetUnit(), m.GetDescription()
					p.Resource, p.Scope = res, sm.GetScope().GetName()
					all = append(all, p)
				}
			}
		}
	}
	return all
}

func pointsOfMetric(m *metrics.Metric) []Point {
	var all []Point
	numbers := func(kind string, monotonic bool, list []*metrics.NumberDataPoint) {
		for _, d := range list {
			value := d.GetAsDouble()
			if n, ok := d.GetValue().(*metrics.NumberDataPoint_AsInt); ok {
				value = float64(n.AsInt)
			}
			all = append(all, Point{Kind: kind, Monotonic: monotonic, Attributes: attributesOf(d.GetAttributes()), At: timeOf(d.GetTimeUnixNano()), Value: value})
		}
	}
	switch {
	case m.GetSum() != nil:
		numbers("sum", m.GetSum().GetIsMonotonic(), m.GetSum().GetDataPoints())
	case m.GetGauge() != nil:
		numbers("gauge", false, m.GetGauge().GetDataPoints())
	case m.GetHistogram() != nil:
		for _, d := range m.GetHistogram().GetDataPoints() {
			all = append(all, Point{
				Kind: "histogram", Attributes: attributesOf(d.GetAttributes()), At: timeOf(d.GetTimeUnixNano()),
				Value: d.GetSum(), Count: d.GetCount(), Bounds: d.GetExplicitBounds(), Buckets: d.GetBucketCounts(),
			})
		}
	}
	return all
}

func resourceOf(r *resource.Resource) Attributes { return attributesOf(r.GetAttributes()) }

func attributesOf(list []*common.KeyValue) Attributes {
	if len(list) == 0 {
		return nil
	}
	a := Attributes{}
	for _, kv := range list {
		a[kv.GetKey()] = valueOf(kv.GetValue())
	}
	return a
}

func valueOf(v *common.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_DoubleValue:
		return v.DoubleValue
	case *common.AnyValue_BytesValue:
		return v.BytesValue
	case *common.AnyValue_ArrayValue:
		list := make([]any, len(v.ArrayValue.GetValues()))
		for i, e := range v.ArrayValue.GetValues() {
			list[i] = valueOf(e)
		}
		return list
	case *common.AnyValue_KvlistValue:
		return attributesOf(v.KvlistValue.GetValues())
	}
	return nil
}

func timeOf(nanos uint64) time.Time { return time.Unix(0, int64(nanos)) }
