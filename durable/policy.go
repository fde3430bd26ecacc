package durable

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// Policy says how Retry goes on after a failed attempt. The zero value makes up
// to 5 attempts, 200 ms apart at first, doubling up to a minute, with a fifth of
// jitter.
type Policy struct {
	// MaxAttempts in all, the first one included; 0: DefaultMaxAttempts;
	// negative: no limit.
	MaxAttempts int
	// Initial is the pause after the first failed attempt; 0: DefaultInitial.
	Initial time.Duration
	// Max bounds a pause; 0: DefaultMax.
	Max time.Duration
	// Multiplier of the pause from one attempt to the next; 0: 2; else at
	// least 1.
	Multiplier float64
	// Jitter takes up to this fraction off each pause at random, so that many
	// runs do not come back at once; 0: 0.2; negative: none; at most 1.
	Jitter float64
	// Timeout of one attempt: its context ends with ErrAttemptTimeout; 0: none.
	Timeout time.Duration
	// Deadline of all attempts together, counted from the beginning of the
	// first one that is on record (a failed one, or one of a LongOperation),
	// across crashes: contexts end with it and no attempt begins after it; 0:
	// none.
	Deadline time.Duration
	// RetryIf, if set, says of an error whether another attempt may mend it.
	// It must not have side effects. Permanent errors are never retried, and
	// neither is what only other code can mend, such as ErrNested.
	RetryIf func(error) bool
}

// The defaults of Policy.
const (
	DefaultMaxAttempts = 5
	DefaultInitial     = 200 * time.Millisecond
	DefaultMax         = time.Minute
	defaultMultiplier  = 2
	defaultJitter      = 0.2
)

// once is the policy of Step: one attempt. It is complete, and never changed.
var once = Policy{MaxAttempts: 1, Initial: DefaultInitial, Max: DefaultMax, Multiplier: defaultMultiplier, Jitter: defaultJitter}

// withDefaults returns p with its defaults, p itself if it has them, or an error about
// a field that cannot be used. p is not changed.
func (p *Policy) withDefaults() (*Policy, error) {
	if p == &once {
		return p, nil
	}
	p = new(*p)
	switch {
	case p.Initial < 0 || p.Max < 0 || p.Timeout < 0 || p.Deadline < 0:
		return p, fmt.Errorf("durable: Policy: a duration is negative: %w", ErrInvalid)
	case p.Multiplier != 0 && (p.Multiplier < 1 || math.IsInf(p.Multiplier, 0) || math.IsNaN(p.Multiplier)):
		return p, fmt.Errorf("durable: Policy.Multiplier is %v; it must be at least 1: %w", p.Multiplier, ErrInvalid)
	case p.Jitter > 1 || math.IsNaN(p.Jitter):
		return p, fmt.Errorf("durable: Policy.Jitter is %v; it is a fraction, at most 1: %w", p.Jitter, ErrInvalid)
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	if p.Initial == 0 {
		p.Initial = DefaultInitial
	}
	if p.Max == 0 {
		p.Max = DefaultMax
	}
	if p.Multiplier == 0 {
		p.Multiplier = defaultMultiplier
	}
	if p.Jitter == 0 {
		p.Jitter = defaultJitter
	}
	return p, nil
}

// pause returns how long to wait after failed attempt n (from 1), given a
// random number in [0, 1): exponential backoff, bounded, less the jitter.
//
// For example Initial 1s, Multiplier 2, Max 5s, no jitter: 1s, 2s, 4s, 5s, 5s.
func (p Policy) pause(n int, random float64) time.Duration {
	d := float64(p.Initial) * math.Pow(p.Multiplier, float64(n-1))
	d = min(d, float64(p.Max))
	if p.Jitter > 0 {
		d -= d * p.Jitter * random
	}
	return time.Duration(d)
}

// verdict is what becomes of a step after a failed attempt.
type verdict struct {
	final  bool
	pause  time.Duration
	reason string // why it is final, when the error alone does not say
	fault  error  // of RetryIf, which could not be asked
}

// judge decides about failed attempt n, whose error was err, at time now, of a
// step whose first attempt began at start.
func (p Policy) judge(n int, err error, start, now store.Time, random float64) verdict {
	if _, permanent := faults.Find[*permanentError](err); permanent {
		return verdict{final: true}
	}
	if isMisuse(err) {
		return verdict{final: true, reason: "the code is to be mended: no further attempt can help"}
	}
	if p.RetryIf != nil {
		again := false
		if fault := guard.Call(func() { again = p.RetryIf(err) }); fault != nil {
			return verdict{final: true, fault: fault}
		}
		if !again {
			return verdict{final: true}
		}
	}
	if p.MaxAttempts > 0 && n >= p.MaxAttempts {
		return verdict{final: true}
	}
	v := verdict{pause: p.pause(n, random)}
	if ra, ok := faults.Find[*retryAfterError](err); ok {
		v.pause = ra.after
	}
	if p.Deadline > 0 && now.Add(v.pause) >= start.Add(p.Deadline) {
		return verdict{final: true, reason: fmt.Sprintf("no time for another attempt within the deadline of %s", p.Deadline)}
	}
	return v
}
