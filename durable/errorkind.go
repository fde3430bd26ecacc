package durable

import (
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
)

// kindOf returns what an error is called where its message must not stand: the
// name it is registered under or, of what is not, its type. An error that was
// read back from the history without a name is "error", like one of package
// errors.
func (k *errorKinds) kindOf(err error) string {
	if err == nil {
		return "error"
	}
	if name := nameIn(k.record(err)); name != "" {
		return name
	}
	name := "error"
	if fault := guard.Call(func() { name = typeOf(err, 0) }); fault != nil {
		return fmt.Sprintf("%T", err)
	}
	return name
}

// nameIn returns the first registered name in rec, outermost first.
func nameIn(rec *history.Error) string {
	if rec.Sentinel != "" {
		return rec.Sentinel
	}
	if rec.Type != "" && !wrapperNames[rec.Type] {
		return rec.Type
	}
	for _, c := range rec.Causes {
		if name := nameIn(c); name != "" {
			return name
		}
	}
	return ""
}

// typeOf returns the type of the outermost error that is more than a wrapper.
func typeOf(err error, depth int) string {
	name := shortType(err)
	switch err.(type) {
	case *StepError, *ItemError, *MapError, *RunError, *permanentError, *retryAfterError, *recordedError:
		name = "error"
	}
	switch name {
	case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors":
		name = "error"
	}
	if name != "error" || depth == maxErrorDepth {
		return name
	}
	for _, inner := range unwrap(err) {
		if inner == nil {
			continue
		}
		if t := typeOf(inner, depth+1); t != "error" {
			return t
		}
	}
	return name
}

// errorAttr is what a log line says of an error of the user's.
func (l *engineLog) errorAttr(err error) slog.Attr {
	if l.eng.options.Verbatim {
		return slog.String("error", safeMessage(err))
	}
	return slog.String("error_type", l.eng.program.errors.kindOf(err))
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
