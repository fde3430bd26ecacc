package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

// till is a bank that knows idempotency keys, or does not look at them.
type till struct {
	keys   map[string]bool
	booked int
	blind  bool
	// perAttempt: the key that it is given has the number of the attempt in it.
	perAttempt bool
}

func (b *till) book(ctx context.Context, n int) {
	key := durable.IdempotencyKey(ctx)
	if b.perAttempt {
		key += fmt.Sprint(durable.Attempt(ctx).Number)
	}
	if b.blind || !b.keys[key] {
		b.keys[key] = true
		b.booked += n
	}
}

func (b *till) reset() { b.keys, b.booked = map[string]bool{}, 0 }

func (b *till) options() []durabletest.Option {
	return []durabletest.Option{durabletest.Reset(b.reset), durabletest.World(func() any { return b.booked }), durabletest.SameProcess()}
}

func (b *till) pay() *durable.Workflow[int, int] {
	return durable.Define("pay", func(ctx context.Context, n int) (int, error) {
		return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (int, error) {
			b.book(ctx, n)
			return n, nil
		})
	})
}

func TestAWorkflowThatRetriesAsItShouldIsSimulated(t *testing.T) {
	b := &till{}
	durabletest.Simulate(t, durabletest.Of(b.pay(), 5, b.options()...))
}

func TestAnEffectThatARetryDoublesIsFound(t *testing.T) {
	b := &till{blind: true}
	err := durabletest.ExamineAttempts(t, b.pay(), 5, b.options()...)
	require.ErrorContains(t, err, `attempt 1 of "charge" failed after its body, and was made again`)
	require.ErrorContains(t, err, "another world")
}

// What crashes and cancels cannot show: a failure that leaves something behind.
func TestAFailureThatLeavesSomethingBehindIsFound(t *testing.T) {
	b := &till{}
	wf := durable.Define("order", func(ctx context.Context, n int) (int, error) {
		if err := durable.Do(ctx, "charge", func(ctx context.Context) error { b.book(ctx, n); return nil }); err != nil {
			return 0, err
		}
		return n, durable.Do(ctx, "ship", func(context.Context) error { return nil })
	})
	whole := durabletest.Invariant(func(ended error) error {
		if ended != nil && !errors.Is(ended, durable.ErrRunCancelled) && b.booked != 0 {
			return errors.New("paid, and nothing was shipped")
		}
		return nil
	})
	o := append(b.options(), whole)
	require.NoError(t, durabletest.Examine(t, wf, 5, append(o, durabletest.Start(durable.Deadline(time.Hour)))...))
	err := durabletest.ExamineAttempts(t, wf, 5, o...)
	require.ErrorContains(t, err, "paid, and nothing was shipped")
	require.ErrorContains(t, err, `attempt 1 of "charge" failed after its body`)
}
