package durable

import (
	"context"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/store"
)

// Logger returns a logger that says which run a line belongs to: the run's id,
// its workflow, the branch or item (scope), the step and its attempt where there
// is one, and the ids of the trace if there is one. It writes where
// Options.Logger does.
//
// In a workflow function, a branch or an item it is silent as long as what
// happened before is being replayed, so that a restart does not write a line
// again. Lines after the last recorded call are written again, since nobody knows
// whether they were written. In the body of a step, which runs live alone, and
// outside a run it always writes.
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
		if !v.replay.Empty() {
			log = runlog.SilentWhile(log, v.replay.Replaying)
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
	return runlog.InSpan(ctx, log)
}

// logger names the run.
func (r *run) logger() *slog.Logger { return r.eng.log.NamedRun(&r.row) }

// logLine writes a line about the run, which it names.
func (r *run) logLine(level slog.Level, msg string, more ...slog.Attr) {
	if r.rehearsal == nil {
		r.eng.log.OfRun(r.ctx, level, &r.row, msg, more...)
	}
}

// logEnd has a line written, with the verdict on the run, about an end that needs an
// explanation or about a stop. The verdict needs the history, so the waiters for the run
// are told first; see run.execute.
func (r *run) logEnd(level slog.Level, msg string, status store.Status, more ...slog.Attr) {
	if r.rehearsal == nil && r.eng.log.Enabled(r.ctx, level) {
		r.lastWord = func() {
			ctx := context.WithoutCancel(r.ctx)
			r.eng.log.OfRun(ctx, level, &r.row, msg, append(more, r.eng.log.Verdict(ctx, r.id, status))...)
		}
	}
}

// parkedAttr is what a line says of why the run was parked: the engine's own findings in
// full, but not what they say of the user's values.
func parkedAttr(log *runlog.Log, code string, err error) slog.Attr {
	if code == CodeUndecodable || code == CodeUnrecoverable {
		return log.ErrorAttr(err)
	}
	return slog.Any("error", err)
}
