package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Taking n queued signals costs n. Where each cost a look at all that were left,
// these took a minute and a half. The bound leaves room for a busy machine.
func TestTwentyThousandQueuedSignalsAreTakenInSeconds(t *testing.T) {
	const n, bound = 20_000, 10 * time.Second
	gate := make(chan struct{})
	wf := durable.Define("count", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "gate", func(context.Context) error { <-gate; return nil }); err != nil {
			return 0, err
		}
		for i := range n {
			v, err := durable.Await[int](ctx, "n")
			if err != nil {
				return 0, err
			}
			if v != i {
				return i, nil // not in order
			}
		}
		return n, nil
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	ctx := durable.NewContext(t.Context(), eng)
	run, err := wf.Start(ctx, "r", 0)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, eng.Signal(ctx, "r", "n", i))
	}
	began := time.Now()
	close(gate)
	out, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, n, out)
	require.Less(t, time.Since(began), bound)
	t.Logf("%d signals were taken in %s", n, time.Since(began))
}
