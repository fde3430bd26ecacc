// Package runlog writes the log of an engine: lines about a run name the run, its workflow
// and its trace (Log), and two handlers wrap the program's own (handler.go).
package runlog

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/internal/visible"
	"github.com/holdfast-dev/holdfast/store"
)

// A Log is where an engine writes its lines. OfRun and the About methods write a line
// about one run, and add the run's trace.
type Log struct {
	*slog.Logger
	// Store is read for lines about runs that are not executed here.
	Store store.Store
	Now   func() store.Time
	// OmitTexts leaves messages of errors, and prompts, out of lines.
	OmitTexts bool
	// KindOf returns the name of an error for places where its message must not appear.
	KindOf func(error) string
}

// NamedRun returns a logger whose lines name the run.
func (l *Log) NamedRun(row *store.Run) *slog.Logger {
	return l.With("run", row.ID, "workflow", row.Workflow)
}

// OfRun writes a line about an execution of a run, in the span of ctx.
func (l *Log) OfRun(ctx context.Context, level slog.Level, row *store.Run, msg string, more ...slog.Attr) {
	if l.Enabled(ctx, level) {
		l.LogAttrs(ctx, level, msg, append(RunAttrs(ctx, row), more...)...)
	}
}

// RunAttrs returns attributes that name a run that is executed, and the span of ctx or,
// before the run has entered its segment, the span of its start. The slice has room for a
// few more.
func RunAttrs(ctx context.Context, row *store.Run) []slog.Attr {
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs, slog.String("run", row.ID), slog.String("workflow", row.Workflow))
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		sc = telemetry.Parse(row.Trace)
	}
	if sc.IsValid() {
		attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return attrs
}

// InSpan adds the span of ctx, if it has one, to the lines of log.
func InSpan(ctx context.Context, log *slog.Logger) *slog.Logger {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return log.With("trace_id", span.TraceID().String(), "span_id", span.SpanID().String())
	}
	return log
}

// AboutRun writes a line about a run that is not executed here.
func (l *Log) AboutRun(level slog.Level, row *store.Run, msg string, more ...slog.Attr) {
	l.About(level, row.ID, row.Workflow, telemetry.Parse(row.Trace), msg, more...)
}

// About is AboutRun for a run of which only id, workflow and span are known. The workflow
// may be empty, and in may be a trace without a span.
func (l *Log) About(level slog.Level, id, workflow string, in trace.SpanContext, msg string, more ...slog.Attr) {
	ctx := context.Background()
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("run", id)}
	if workflow != "" {
		attrs = append(attrs, slog.String("workflow", workflow))
	}
	if in.HasTraceID() {
		attrs = append(attrs, slog.String("trace_id", in.TraceID().String()))
	}
	if in.HasSpanID() {
		attrs = append(attrs, slog.String("span_id", in.SpanID().String()))
	}
	l.LogAttrs(ctx, level, msg, append(attrs, more...)...)
}

// AboutID is AboutRun for a run of which only the id is known: it reads the row for the
// trace. It is for rare lines. If the store does not answer, the line has the id alone.
func (l *Log) AboutID(ctx context.Context, level slog.Level, id, msg string, more ...slog.Attr) {
	if !l.Enabled(ctx, level) {
		return
	}
	row := store.Run{ID: id}
	if h, err := l.Store.Load(ctx, id, store.Cursor{NoEvents: true}); err == nil {
		row = h.Run
	}
	l.AboutRun(level, &row, msg, more...)
}

// verdictWithin limits how long a line waits for the history from which its verdict is
// read.
const verdictWithin = 2 * time.Second

// Verdict returns the verdict on a run that has the given status, as pages, terminal and
// API give it. It is read from the history, and left out if the history cannot be read or
// shows a later status. With OmitTexts it does not
// repeat what errors and people said.
func (l *Log) Verdict(ctx context.Context, id string, status store.Status) slog.Attr {
	ctx, stop := context.WithTimeout(ctx, verdictWithin)
	defer stop()
	h, err := l.Store.Load(ctx, id, store.Cursor{Tail: outline.Newest, AfterMessage: 1<<63 - 1})
	if err != nil || h.Run.Status != status {
		return slog.Attr{}
	}
	o, err := outline.Of(outline.Input{Run: h.Run, Branches: h.Branches, Now: l.Now()}, h.Events)
	if err != nil {
		return slog.Attr{}
	}
	if l.OmitTexts {
		return slog.String("verdict", o.Verdict.Guarded())
	}
	return slog.String("verdict", escape(o.Verdict.Text()))
}

// ErrorAttr returns what a line says of an error of the program: its name, the place of a
// panic, which its message rarely names, and, unless texts are omitted, its message. Handlers
// write them as attributes of the line.
func (l *Log) ErrorAttr(err error) slog.Attr {
	attrs := []slog.Attr{l.KindAttr(err)}
	if !l.OmitTexts {
		attrs = append(attrs, slog.String("error", textOf(err)))
	}
	if p, ok := faults.Find[*guard.PanicError](err); ok {
		if _, at := guard.PanickedAt(p); at != "" {
			attrs = append(attrs, slog.String("source", at))
		}
	}
	return slog.Attr{Value: slog.GroupValue(attrs...)}
}

// KindAttr is ErrorAttr for an error whose message may have values of the program in it.
func (l *Log) KindAttr(err error) slog.Attr { return slog.String("error_type", l.KindOf(err)) }

// PromptAttrs returns what a line says of a prompt: nothing if texts are omitted.
func (l *Log) PromptAttrs(text string) []slog.Attr {
	if l.OmitTexts {
		return nil
	}
	return []slog.Attr{slog.String("prompt", escape(text))}
}

// maxText bounds a text in a line or a span, in bytes, before it is escaped.
const maxText = 4 << 10

// TextOf returns the function that makes the text of an error for lines and spans, nil if
// texts are omitted.
func (l *Log) TextOf() func(error) string {
	if l.OmitTexts {
		return nil
	}
	return textOf
}

func textOf(err error) string { return escape(faults.Message(err)) }

// escape makes a text safe for handlers that print it as it is.
func escape(s string) string { return visible.Line(guard.Text(s, maxText)) }

// AttemptEnded writes how an attempt of a step ended: at DEBUG, and at WARN if the step is of
// those that are retried and has failed for good. in is the context whose span the line names.
func (l *Log) AttemptEnded(ctx, in context.Context, row *store.Run, step string, end telemetry.AttemptEnd, retried bool) {
	level := slog.LevelDebug
	exhausted := end.Last() && end.Outcome == telemetry.OutcomeFailed && retried
	if exhausted {
		level = slog.LevelWarn
	}
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := append(RunAttrs(in, row), slog.String("step", step), slog.Int("attempt", end.Number), slog.String("outcome", end.Outcome),
		slog.Float64("took_ms", millis(end.Took)))
	if end.Err != nil {
		attrs = append(attrs, l.ErrorAttr(end.Err))
	}
	if exhausted {
		l.Logger.LogAttrs(ctx, level, "durable: step failed and is not tried again", attrs...)
		return
	}
	l.Logger.LogAttrs(ctx, level, "durable: attempt ended", attrs...)
}

// millis returns a duration as it is logged, under a key that ends in _ms.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
