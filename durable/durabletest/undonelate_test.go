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

// A run that failed before its deadline and was undone behind it has failed by its
// own error, in production as on replay: code that fails with another one is seen.
func TestARunThatWasUndoneBehindItsDeadlineIsReplayedToItsOwnError(t *testing.T) {
	failing := func(text string) []durable.Definition {
		return []durable.Definition{define(func(ctx context.Context, in int) (string, error) {
			if err := durable.Compensate(ctx, "refund", func(context.Context) error { time.Sleep(2 * time.Hour); return nil }); err != nil {
				return "", err
			}
			if _, err := step(ctx, "charge", in); err != nil {
				return "", err
			}
			return "", errors.New(text)
		})}
	}
	was := failing("out of stock")
	file := production(t, was[0].(*durable.Workflow[int, string]), func(context.Context, *durable.Engine) { time.Sleep(48 * time.Hour) }, durable.Deadline(time.Hour))
	require.Empty(t, durabletest.Compare(t, file, was))
	failures := durabletest.Compare(t, file, failing("out of money"))
	require.Len(t, failures, 1)
	require.ErrorContains(t, failures[0], "out of money")
}
