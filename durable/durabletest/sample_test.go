package durabletest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

func TestALongRunIsSampled(t *testing.T) {
	var executed atomic.Int64
	chain := func(n int) *durable.Workflow[int, string] {
		return define(func(ctx context.Context, in int) (string, error) {
			for i := range n {
				if err := durable.Do(ctx, fmt.Sprint("s", i), func(context.Context) error { executed.Add(1); return nil }); err != nil {
					return "", err
				}
			}
			return "", nil
		})
	}
	bodies := func(n int, o ...durabletest.Option) int64 {
		executed.Store(0)
		require.NoError(t, durabletest.Examine(t, chain(n), 7, append(o, durabletest.SameProcess())...))
		return executed.Load()
	}
	short, long := bodies(40, durabletest.Sample(4)), bodies(160, durabletest.Sample(4))
	require.Less(t, long, 5*short, "it grows with the run, and not with its square: %d, %d", short, long)
	all := bodies(20, durabletest.Sample(-1))
	require.Greater(t, all, int64(20*2*20), "each write is tried, before and after")
}
