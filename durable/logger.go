package durable

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Logger returns a logger that says which run a line belongs to: the run's id,
// its workflow, the branch or item (scope), the step and its attempt where there
// is one, and the ids of the trace if there is one. It writes where
// Options.Logger does.
//
// In a workflow function, a branch or an item it is silent as long as what
// happened before is being replayed, so that a line is not written again by
// every restart. What came behind the last recorded call is not known to have
// been written, and is written again. In the body of a step, which runs live
// alone, and outside a run it always writes.
func Logger(ctx context.Context) *slog.Logger {
	if ctx == nil {
		return slog.Default()
	}
	var log *slog.Logger
	switch v := ctx.Value(scopeKey{}).(type) {
	case *scope:
		if v.run.rehearsal != nil {
			return slog.New(slog.DiscardHandler)
		}
		log = v.run.logger()
		if v.path != "" {
			log = log.With("scope", v.path)
		}
		if len(v.replay.hist) > 0 {
			log = slog.New(&replayHandler{Handler: log.Handler(), scope: v})
		}
	case *attempt:
		log = v.step.call.scope.run.logger().With("step", v.step.call.key, "attempt", v.number)
	default:
		e, err := engineOf(ctx)
		if err != nil {
			return slog.Default()
		}
		log = e.log.Logger
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		log = log.With("trace_id", span.TraceID().String(), "span_id", span.SpanID().String())
	}
	return log
}

// millis is a duration as a line of the log has it, under a key that ends in _ms.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// logger names the run.
func (r *run) logger() *slog.Logger {
	return r.eng.log.With("run", r.id, "workflow", r.row.Workflow)
}

// logAttrs name the run and its span.
func (r *run) logAttrs() []slog.Attr { return r.logAttrsIn(r.ctx) }

// logAttrsIn name the run and the span that ctx has.
func (r *run) logAttrsIn(ctx context.Context) []slog.Attr {
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs, slog.String("run", r.id), slog.String("workflow", r.row.Workflow))
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() { // it has not entered its segment yet
		sc = telemetry.Parse(r.row.Trace)
	}
	if sc.IsValid() {
		attrs = append(attrs, slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return attrs
}

// logLine writes a line about the run, which it names.
func (r *run) logLine(level slog.Level, msg string, more ...slog.Attr) {
	r.eng.log.ofRun(r.ctx, r, level, msg, more...)
}

// logEnd has a line written about an end that wants a word of explanation, or about a
// stop, with the verdict on it: the one that pages, terminal and API give. The verdict
// needs the history, so whoever waits for the run is told first; see run.execute.
func (r *run) logEnd(level slog.Level, msg string, status store.Status, more ...slog.Attr) {
	if r.rehearsal == nil && r.eng.log.Enabled(r.ctx, level) {
		r.lastWord = func() {
			ctx := context.WithoutCancel(r.ctx)
			attrs := append(append(r.logAttrs(), more...), r.eng.log.verdict(ctx, r.id, status))
			r.eng.log.LogAttrs(ctx, level, msg, attrs...)
		}
	}
}

// engineLog is where an engine writes its lines.
type engineLog struct {
	*slog.Logger
	eng *Engine
}

// ofRun writes a line about an execution, under the span that ctx has.
func (l *engineLog) ofRun(ctx context.Context, r *run, level slog.Level, msg string, more ...slog.Attr) {
	if r.rehearsal == nil && l.Enabled(ctx, level) {
		l.LogAttrs(ctx, level, msg, append(r.logAttrsIn(ctx), more...)...)
	}
}

// verdict is the verdict on a run that is in the given status. It is read from
// the history, and left out if that cannot be had or tells of a later moment. What
// errors and people said is in it only where Options.Verbatim asks for it.
func (l *engineLog) verdict(ctx context.Context, id string, status store.Status) slog.Attr {
	ctx, stop := context.WithTimeout(ctx, verdictWithin)
	defer stop()
	h, err := l.eng.store.Load(ctx, id, store.Cursor{Tail: outline.Newest, AfterMessage: 1<<63 - 1})
	if err != nil || h.Run.Status != status {
		return slog.Attr{}
	}
	o, err := outline.Of(outline.Input{Run: h.Run, Branches: h.Branches, Now: l.eng.now()}, h.Events)
	if err != nil {
		return slog.Attr{}
	}
	if l.eng.options.Verbatim {
		return slog.String("verdict", o.Verdict.Text())
	}
	return slog.String("verdict", o.Verdict.Guarded())
}

// verdictWithin bounds how long a log line waits for the history it tells of.
const verdictWithin = 2 * time.Second

// aboutRun writes a line about a run that is not executed here, which it names.
func (l *engineLog) aboutRun(level slog.Level, row *store.Run, msg string, more ...slog.Attr) {
	l.about(level, row.ID, row.Workflow, telemetry.Parse(row.Trace), msg, more...)
}

// about is aboutRun for a run of which only this is known.
func (l *engineLog) about(level slog.Level, id, workflow string, in trace.SpanContext, msg string, more ...slog.Attr) {
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

// aboutID is aboutRun where nothing but the id is known: the row is read, for the
// trace. It is for lines that are rare, and says what it can if the store does
// not answer.
func (l *engineLog) aboutID(ctx context.Context, level slog.Level, id, msg string, more ...slog.Attr) {
	if !l.Enabled(ctx, level) {
		return
	}
	row := store.Run{ID: id}
	if h, err := l.eng.store.Load(ctx, id, store.Cursor{NoEvents: true}); err == nil {
		row = h.Run
	}
	l.aboutRun(level, &row, msg, more...)
}

// guardedHandler keeps what goes wrong in the program's log handler away from
// the engine, whose goroutines it is called on: a line that it panics on, or ends
// the goroutine on, is lost.
type guardedHandler struct{ slog.Handler }

func (h guardedHandler) Enabled(ctx context.Context, l slog.Level) (on bool) {
	defer func() {
		if recover() != nil {
			on = false
		}
	}()
	return h.Handler.Enabled(ctx, l)
}

func (h guardedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	if fault := guard.Call(func() { err = h.Handler.Handle(ctx, r) }); fault != nil {
		return fault
	}
	return err
}

func (h guardedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guardedHandler{h.Handler.WithAttrs(attrs)}
}

func (h guardedHandler) WithGroup(name string) slog.Handler {
	return guardedHandler{h.Handler.WithGroup(name)}
}

// replayHandler drops what is logged while its scope is replayed.
type replayHandler struct {
	slog.Handler
	scope *scope
}

func (h *replayHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return !h.scope.replay.replaying() && h.Handler.Enabled(ctx, l)
}

func (h *replayHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &replayHandler{Handler: h.Handler.WithAttrs(attrs), scope: h.scope}
}

func (h *replayHandler) WithGroup(name string) slog.Handler {
	return &replayHandler{Handler: h.Handler.WithGroup(name), scope: h.scope}
}

// errorAttr is what a log line says of an error of the user's.
func (l *engineLog) errorAttr(err error) slog.Attr {
	if l.eng.options.Verbatim {
		return slog.String("error", faults.Message(err))
	}
	return slog.String("error_type", l.eng.program.errors.KindOf(err))
}

// parkedAttr is what a log line says of why a run was parked: what the engine
// itself has found is told in full, but not what it says of the user's values.
func (l *engineLog) parkedAttr(code string, err error) slog.Attr {
	if code == CodeUndecodable || code == CodeUnrecoverable {
		return l.errorAttr(err)
	}
	return slog.Any("error", err)
}

// promptAttrs are what a log line says of a prompt: nothing, unless
// Options.Verbatim asks for it.
func (l *engineLog) promptAttrs(text string) []slog.Attr {
	if !l.eng.options.Verbatim {
		return nil
	}
	return []slog.Attr{slog.String("prompt", text)}
}
