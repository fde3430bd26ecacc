package durabletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

func TestANameThatVariesAndThatNoCallHasFailsTheTest(t *testing.T) {
	wf := define(func(ctx context.Context, in int) (string, error) {
		return "", durable.Do(ctx, "charge", func(context.Context) error { return nil })
	})
	o := durabletest.SameProcess()
	require.NoError(t, durabletest.Examine(t, wf, 7, o, durabletest.Varies("charge")))
	require.NoError(t, durabletest.Examine(t, wf, 7, o, durabletest.Varies()))
	require.EqualError(t, durabletest.Examine(t, wf, 7, o, durabletest.Varies("charge", "chrage")),
		`durabletest: Varies names "chrage", and no call in any of the runs has that name or key. There were: charge`)
}

func TestANilOptionIsRefused(t *testing.T) {
	wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
	require.ErrorIs(t, durabletest.Examine(t, wf, 1, durabletest.RealTime(), nil), durable.ErrInvalid)
	require.ErrorIs(t, durabletest.Compare(t, "varies_test.go", []durable.Definition{wf}, nil)[0], durable.ErrInvalid)
}
