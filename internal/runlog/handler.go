package runlog

import (
	"context"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Guarded returns a logger that protects the engine, on whose goroutines it writes, from
// the program's log handler: if the handler panics on a line, or ends the goroutine, only
// that line is lost.
func Guarded(log *slog.Logger) *slog.Logger { return slog.New(guardedHandler{log.Handler()}) }

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

// SilentWhile returns a logger that drops its lines while replaying reports true.
func SilentWhile(log *slog.Logger, replaying func() bool) *slog.Logger {
	return slog.New(&replayHandler{Handler: log.Handler(), replaying: replaying})
}

type replayHandler struct {
	slog.Handler
	replaying func() bool
}

func (h *replayHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return !h.replaying() && h.Handler.Enabled(ctx, l)
}

func (h *replayHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &replayHandler{Handler: h.Handler.WithAttrs(attrs), replaying: h.replaying}
}

func (h *replayHandler) WithGroup(name string) slog.Handler {
	return &replayHandler{Handler: h.Handler.WithGroup(name), replaying: h.replaying}
}
