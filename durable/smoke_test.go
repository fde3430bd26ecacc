package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	st := memory.Open()
	n := 0
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		a, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) { return in + 1, nil })
		if err != nil {
			return 0, err
		}
		return durable.Retry(ctx, "b", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			n++
			if n < 3 {
				return 0, errors.New("not yet")
			}
			return a * 2, nil
		})
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}})
	require.NoError(t, err)
	ctx = durable.NewContext(ctx, eng)
	run, err := wf.Start(ctx, "r1", 1)
	require.NoError(t, err)
	out, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 4, out)
	var types []store.Type
	for ev, err := range eng.History(ctx, "r1") {
		require.NoError(t, err)
		types = append(types, ev.Type)
	}
	t.Log(types)
	require.NoError(t, eng.Close())
}

func BenchmarkStep(b *testing.B) {
	ctx := context.Background()
	st := memory.Open()
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		for range in {
			if _, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) { return in + 1, nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}})
	require.NoError(b, err)
	b.ReportAllocs()
	_, err = wf.Run(durable.NewContext(ctx, eng), "r1", b.N)
	require.NoError(b, err)
	require.NoError(b, eng.Close())
}
