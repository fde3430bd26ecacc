package durable

import (
	"context"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/store"
)

// Logger returns a logger whose lines say which run they belong to: the run's id, its
// workflow, the branch or item (scope), the step and its attempt if there is one, and
// the ids of the trace if there is one. It writes where Options.Logger does.
//
// In a workflow function, a branch or an item it is silent during replay, so that a
// restart does not write a line again. Lines after the last recorded call are written
// again, because it is not known whether they were written before. In the body of a
// step, which never runs on replay, and outside a run it always writes.
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

// logLine writes a line that names the run.
func (r *run) logLine(level slog.Level, msg string, more ...slog.Attr) {
	if r.rehearsal == nil {
		r.eng.log.OfRun(r.ctx, level, &r.row, msg, more...)
	}
}

// logEnd arranges for a line, with the verdict on the run, about an end that needs an
// explanation or about a stop. The verdict needs the history, so callers that wait for
// the run are answered first; see run.execute.
func (r *run) logEnd(level slog.Level, msg string, status store.Status, more ...slog.Attr) {
	if r.rehearsal == nil && r.eng.log.Enabled(r.ctx, level) {
		r.lastWord = func() {
			ctx := context.WithoutCancel(r.ctx)
			r.eng.log.OfRun(ctx, level, &r.row, msg, append(more, r.eng.log.Verdict(ctx, r.id, status))...)
		}
	}
}

// parkedAttr returns what a line says of why the run was parked: the engine's own
// findings in full, except for what they say of the user's values.
func parkedAttr(log *runlog.Log, code string, err error) slog.Attr {
	if code == CodeUndecodable || code == CodeUnrecoverable {
		return log.KindAttr(err)
	}
	return slog.Any("error", err)
}
