package durable

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/retry"
)

// Policy says how Retry goes on after a failed attempt. The zero value makes up
// to 5 attempts, the first pause being 200 ms, doubling up to a minute, with a
// fifth of jitter.
type Policy struct {
	// MaxAttempts in all, including the first one; 0: DefaultMaxAttempts;
	// negative: no limit.
	MaxAttempts int
	// Initial is the pause after the first failed attempt; 0: DefaultInitial.
	Initial time.Duration
	// Max limits a pause; 0: DefaultMax.
	Max time.Duration
	// Multiplier of the pause from one attempt to the next; 0: 2; otherwise at
	// least 1.
	Multiplier float64
	// Jitter is the largest fraction by which each pause is shortened at random,
	// so that many runs do not come back at once; 0: 0.2; negative: none; at
	// most 1.
	Jitter float64
	// Timeout of one attempt: its context ends with ErrAttemptTimeout; 0: none.
	Timeout time.Duration
	// Deadline of all attempts together, counted from the beginning of the
	// first one that is on record (a failed one, or one of a LongOperation),
	// across crashes: contexts end with it and no attempt begins after it; 0:
	// none.
	Deadline time.Duration
	// RetryIf, if set, says whether another attempt may mend an error. It must
	// not have side effects. Permanent errors are never retried, and neither are
	// errors that only a change of the code can mend, such as ErrNested.
	RetryIf func(error) bool
}

// The defaults of Policy.
const (
	DefaultMaxAttempts = retry.MaxAttempts
	DefaultInitial     = retry.Initial
	DefaultMax         = retry.Max
)

// once is the policy of Step: one attempt.
var once = (*Policy)(&retry.Once)

// Permanent marks err as an error that no further attempt can mend: Retry stops
// at once, and a run that fails with it is not offered for Resume.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// RetryAfter asks Retry to wait for d before the next attempt, whatever the
// policy says; d below zero counts as zero. It does not grant more attempts.
// RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, max(d, 0)}
}

type retryAfterError struct {
	err   error
	after time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// marks are what an error may ask of Retry, by its mark or by its kind.
var marks = retry.Marks{
	Permanent: func(err error) bool { _, found := faults.Find[*permanentError](err); return found },
	Misuse:    func(err error) bool { return faults.Is(err, ErrNested, ErrConcurrent) },
	After: func(err error) (time.Duration, bool) {
		ra, found := faults.Find[*retryAfterError](err)
		if !found {
			return 0, false
		}
		return ra.after, true
	},
}

// unmarked removes the mark Permanent or RetryAfter from an error.
func unmarked(err error) (inner error, marked bool) {
	switch e := err.(type) {
	case *permanentError:
		return e.err, true
	case *retryAfterError:
		return e.err, true
	}
	return err, false
}

func isPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}
