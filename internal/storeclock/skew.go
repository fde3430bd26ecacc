package storeclock

import (
	"context"
	"time"
)

// A Skew says by how much the clocks of an engine differ, at a moment of the process's
// clock, from that clock: the monotonic one and the wall clock. Nil: they do not. Only
// tests have one: their engines share a process, and each is to have clocks of its own.
type Skew func(t time.Time) (monotonic, wall time.Duration)

type skewKey struct{}

// WithSkew returns a context for durable.Open that gives the engine clocks of its own.
func WithSkew(ctx context.Context, s Skew) context.Context {
	return context.WithValue(ctx, skewKey{}, s)
}

// SkewOf returns what WithSkew has put into the context; nil without.
func SkewOf(ctx context.Context) Skew {
	s, _ := ctx.Value(skewKey{}).(Skew)
	return s
}

// Between returns how much time has passed from one moment to another, by the engine's
// monotonic clock.
func (s Skew) Between(from, to time.Time) time.Duration {
	d := to.Sub(from)
	if s == nil {
		return d
	}
	before, _ := s(from)
	after, _ := s(to)
	return d + after - before
}

// Wall returns what the engine's wall clock says at a moment, in nanoseconds since 1970.
func (s Skew) Wall(t time.Time) int64 {
	if s == nil {
		return t.UnixNano()
	}
	_, ahead := s(t)
	return t.UnixNano() + int64(ahead)
}
