package durabletest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

// A key that has the number of the attempt in it bears a crash, which repeats the attempt, and no
// retry.
func TestAnEffectThatEachAttemptDoesIsFoundWhereverItIs(t *testing.T) {
	again := durable.Policy{MaxAttempts: 3, Initial: time.Second}
	for _, c := range []struct {
		what, key string
		define    func(b *till) (*durable.Workflow[int, int], []durabletest.Option)
	}{
		{"a step whose result shows it", "charge", func(b *till) (*durable.Workflow[int, int], []durabletest.Option) {
			return durable.Define("pay", func(ctx context.Context, n int) (int, error) {
				return durable.Retry(ctx, "charge", again, func(ctx context.Context) (int, error) {
					b.book(ctx, n)
					return b.booked, nil
				})
			}), nil
		}},
		{"a step of a child", "charge", func(b *till) (*durable.Workflow[int, int], []durabletest.Option) {
			child := b.pay()
			return durable.Define("order", func(ctx context.Context, n int) (int, error) {
				return child.Run(ctx, "payment", n)
			}), []durabletest.Option{durabletest.Engine(durable.Options{Workflows: []durable.Definition{child}})}
		}},
		{"a compensation", "~undo/refund", func(b *till) (*durable.Workflow[int, int], []durabletest.Option) {
			return durable.Define("order", func(ctx context.Context, n int) (int, error) {
				if err := durable.Compensate(ctx, "refund", func(ctx context.Context) error { b.book(ctx, -n); return nil }); err != nil {
					return 0, err
				}
				return 0, durable.Do(ctx, "ship", func(context.Context) error { return durable.Permanent(errors.New("sold out")) })
			}), []durabletest.Option{durabletest.Fails()}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := &till{}
			wf, o := c.define(b)
			o = append(o, b.options()...)
			require.NoError(t, durabletest.ExamineAttempts(t, wf, 5, o...))
			b.perAttempt = true
			err := durabletest.ExamineAttempts(t, wf, 5, o...)
			require.ErrorContains(t, err, "another world")
			require.ErrorContains(t, err, `"`+c.key+`" failed after its body, and was made again`)
		})
	}
}
