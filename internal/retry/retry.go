// Package retry decides what follows a failed attempt of a step: another attempt, and
// when, or the failure of the step.
package retry

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// A Policy is a durable.Policy, which documents the fields.
type Policy struct {
	MaxAttempts int
	Initial     time.Duration
	Max         time.Duration
	Multiplier  float64
	Jitter      float64
	Timeout     time.Duration
	Deadline    time.Duration
	RetryIf     func(error) bool
}

// The defaults of a Policy.
const (
	MaxAttempts = 5
	Initial     = 200 * time.Millisecond
	Max         = time.Minute
	multiplier  = 2
	jitter      = 0.2
)

// Once allows one attempt. It is complete, and never changed.
var Once = Policy{MaxAttempts: 1, Initial: Initial, Max: Max, Multiplier: multiplier, Jitter: jitter}

// WithDefaults returns p with its defaults, p itself if it has them, or an error about
// a field that cannot be used. p is not changed.
func (p *Policy) WithDefaults() (*Policy, error) {
	if p == &Once {
		return p, nil
	}
	p = new(*p)
	switch {
	case p.Initial < 0 || p.Max < 0 || p.Timeout < 0 || p.Deadline < 0:
		return p, fmt.Errorf("durable: Policy: a duration is negative: %w", store.ErrInvalid)
	case p.Multiplier != 0 && (p.Multiplier < 1 || math.IsInf(p.Multiplier, 0) || math.IsNaN(p.Multiplier)):
		return p, fmt.Errorf("durable: Policy.Multiplier is %v; it must be at least 1: %w", p.Multiplier, store.ErrInvalid)
	case p.Jitter > 1 || math.IsNaN(p.Jitter):
		return p, fmt.Errorf("durable: Policy.Jitter is %v; it is a fraction, at most 1: %w", p.Jitter, store.ErrInvalid)
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = MaxAttempts
	}
	if p.Initial == 0 {
		p.Initial = Initial
	}
	if p.Max == 0 {
		p.Max = Max
	}
	if p.Multiplier == 0 {
		p.Multiplier = multiplier
	}
	if p.Jitter == 0 {
		p.Jitter = jitter
	}
	return p, nil
}

// pause returns how long to wait after failed attempt n (from 1), given a
// random number in [0, 1): exponential backoff, bounded, less the jitter.
//
// For example Initial 1s, Multiplier 2, Max 5s, no jitter: 1s, 2s, 4s, 5s, 5s.
func (p *Policy) pause(n int, random float64) time.Duration {
	d := float64(p.Initial) * math.Pow(p.Multiplier, float64(n-1))
	d = min(d, float64(p.Max))
	if p.Jitter > 0 {
		d -= d * p.Jitter * random
	}
	return time.Duration(d)
}

// A Verdict is what becomes of a step after a failed attempt.
type Verdict struct {
	Final  bool
	Pause  time.Duration
	Reason string // why the verdict is final, if the error alone does not say
	Fault  error  // why RetryIf failed: it panicked, or ended its goroutine
}

// Marks say what the error of an attempt asks for, whatever the policy says.
type Marks struct {
	Permanent func(error) bool                  // no further attempt can help
	Misuse    func(error) bool                  // the code must be mended
	After     func(error) (time.Duration, bool) // how long to wait before the next attempt
}

// Judge decides about failed attempt n, whose error was err, at time now, of a
// step whose first attempt began at start. random is in [0, 1).
func (p *Policy) Judge(n int, err error, marks *Marks, start, now store.Time, random float64) Verdict {
	if marks.Permanent(err) {
		return Verdict{Final: true}
	}
	if marks.Misuse(err) {
		return Verdict{Final: true, Reason: "the code is to be mended: no further attempt can help"}
	}
	if p.RetryIf != nil {
		again := false
		if fault := guard.Call(func() { again = p.RetryIf(err) }); fault != nil {
			return Verdict{Final: true, Fault: fault}
		}
		if !again {
			return Verdict{Final: true}
		}
	}
	if p.MaxAttempts > 0 && n >= p.MaxAttempts {
		return Verdict{Final: true}
	}
	v := Verdict{Pause: p.pause(n, random)}
	if after, ok := marks.After(err); ok {
		v.Pause = after
	}
	if p.Deadline > 0 && now.Add(v.Pause) >= start.Add(p.Deadline) {
		return Verdict{Final: true, Reason: fmt.Sprintf("no time for another attempt within the deadline of %s", p.Deadline)}
	}
	return v
}
