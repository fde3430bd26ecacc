package durabletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/durable"
)

// ErrAttempt is the error with which Simulate makes attempts fail.
var ErrAttempt = errors.New("durabletest: this attempt fails in the simulation")

// A Subject is a workflow for Simulate, with its input and what is expected of it.
type Subject struct {
	name    string
	examine func(t testing.TB)
}

// Of makes a subject of a workflow, with the options of Survives.
func Of[I, O any](wf *durable.Workflow[I, O], in I, o ...Option) Subject {
	return Subject{wf.Name(), func(t testing.TB) {
		t.Helper()
		Survives(t, wf, in, append(slices.Clone(o), failingAttempts)...)
	}}
}

func failingAttempts(c *config) { c.attempts = &attempts{} }

// Simulate does with each of these workflows, in a subtest of its name, what Survives does:
// crashes, cancels and deadlines at every write. Besides, it lets each attempt of a step fail
// once: before its body has run, and after the body has had its effect, so that only the answer
// is lost. A run that makes the attempt again, and then the same calls as the undisturbed one, must
// leave the same World; if it takes another way, or fails, the Invariant must hold. This finds
// an effect that a retry doubles though no process ends, and a failure after which something is
// left behind.
//
// Sample limits the attempts that are made to fail, like the writes.
func Simulate(t *testing.T, subjects ...Subject) {
	t.Helper()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Helper() // a failure names the line of the call of Simulate
			s.examine(t)
		})
	}
}

// attempts are those that the undisturbed run has made, and the one that is made to fail.
type attempts struct {
	mu     sync.Mutex
	seen   []attempt
	failAt *attempt // nil: none
	after  bool
	made   bool // the step that was made to fail has succeeded in a later attempt
}

type attempt struct {
	run, key string
	number   int
}

// around notes an attempt, or makes it fail.
func (a *attempts) around(ctx context.Context, info durable.AttemptInfo, next func(ctx context.Context) error) error {
	this := attempt{info.RunID, info.Key, info.Number}
	a.mu.Lock()
	if !slices.Contains(a.seen, this) {
		a.seen = append(a.seen, this)
	}
	fails, after := a.failAt != nil && *a.failAt == this, a.after
	later := a.failAt != nil && a.failAt.run == this.run && a.failAt.key == this.key && a.failAt.number < this.number
	a.mu.Unlock()
	if fails && !after {
		return ErrAttempt
	}
	if err := next(ctx); err != nil || !fails {
		if later && err == nil {
			a.mu.Lock()
			a.made = true
			a.mu.Unlock()
		}
		return err
	}
	return ErrAttempt
}

// disturb makes attempts fail, one in each trial.
func (s *survival) disturb(ctx context.Context, want *lived) error {
	a := s.attempts
	if a == nil {
		return nil
	}
	defer func() { a.failAt = nil }()
	seen := slices.Clone(a.seen)
	for _, at := range sampled(len(seen), s.sampleOf(1)) {
		for _, after := range []bool{false, true} {
			a.mu.Lock()
			a.failAt, a.after, a.made = &seen[at-1], after, false
			a.mu.Unlock()
			how := fmt.Sprintf("attempt %d of %q failed %s its body", seen[at-1].number, seen[at-1].key, beforeOrAfter(after))
			if err := s.failed(ctx, want, how, seen[at-1].key); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed executes a run of which an attempt fails. If the run makes it again and takes the same
// way as the undisturbed one, it must leave the same world: also if the result, or the outcome, shows
// that something happened twice.
func (s *survival) failed(ctx context.Context, want *lived, how, key string) error {
	got, err := s.reachesAnEnd(ctx, s.birth, how, nil)
	if err != nil {
		return err
	}
	defer func() { _ = got.data.Close() }()
	if s.attempts.made && !s.mayVary(key) && got.world != want.world && (sameOutcome(want.record, got.record) || sameWay(want.record, got.record, s.mayVary)) {
		hint := ""
		if given := compareResults(want.record, got.record, s.mayVary); given.result != "" {
			hint = "\n" + given.result + ". A step that may return something else is named with durabletest.Varies"
		}
		return &breach{fmt.Sprintf("durabletest: the workflow does not survive: %s, and was made again\nIt made the same calls, and has left another world:\n  undisturbed: %s\n  disturbed:   %s%s\n%s", how, short(want.world), short(got.world), hint, effects)}
	}
	return s.replayOnce(ctx, got, how)
}
