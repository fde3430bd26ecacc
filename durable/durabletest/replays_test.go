package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// shipped is the code that was deployed: an order that is charged, waits for a
// day, and is shipped.
func shipped(ctx context.Context, in int) (string, error) {
	a, err := step(ctx, "charge", in)
	if err != nil {
		return "", err
	}
	if err := durable.Sleep(ctx, 24*time.Hour); err != nil {
		return "", err
	}
	b, err := step(ctx, "ship", in)
	return fmt.Sprint(a, b), err
}

// recorded executes a workflow as it is deployed, and exports it some time later.
func recorded(t *testing.T, fn func(context.Context, int) (string, error), after time.Duration) (file string) {
	file = filepath.Join(t.TempDir(), "order.run")
	synctest.Test(t, func(t *testing.T) {
		wf := define(fn)
		eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		_, err = wf.Start(durable.NewContext(t.Context(), eng), "order-42", 7)
		require.NoError(t, err)
		time.Sleep(after)
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, operate.On(eng).Export(t.Context(), "order-42", f))
		require.NoError(t, f.Close())
		require.NoError(t, eng.Close())
	})
	return file
}

func TestTheCodeOfTodayIsComparedWithHistoriesOfProduction(t *testing.T) {
	whole, inFlight := recorded(t, shipped, 48*time.Hour), recorded(t, shipped, time.Hour)
	failed := recorded(t, func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "charge", in)
		return "", errors.Join(err, durable.Permanent(errors.New("no stock")))
	}, time.Hour)
	changed := func(first, last string, result string) func(context.Context, int) (string, error) {
		return func(ctx context.Context, in int) (string, error) {
			if _, err := step(ctx, first, 0); err != nil {
				return "", err
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			if last == "" {
				return result, nil
			}
			_, err := step(ctx, last, 0)
			return result, err
		}
	}
	for name, c := range map[string]struct {
		file string
		fn   func(context.Context, int) (string, error)
		says string // empty: it fits
	}{
		"the same code":                     {whole, shipped, ""},
		"the same code, in flight":          {inFlight, shipped, ""},
		"a change behind the point reached": {inFlight, changed("charge", "send", "sent"), ""},
		"a change before it":                {inFlight, changed("bill", "ship", ""), "> 1 charge     bill"},
		"a step that is gone":               {whole, changed("charge", "", ""), "ship is recorded and the code no longer calls it"},
		"another result of the same calls":  {whole, changed("charge", "ship", "other"), `replayed: completed with "other"`},
		"a step more at the end":            {failed, changed("charge", "ship", ""), `at call "sleep"`},
		"a body more at the end": {failed, func(ctx context.Context, in int) (string, error) {
			_, err := step(ctx, "charge", in)
			return "", errors.Join(err, durable.Do(ctx, "refund", func(context.Context) error { panic("refunded") }))
		}, `the code goes on, with step "refund"`},
		"an end where the recorded goes on": {recorded(t, shipped, time.Hour), func(ctx context.Context, in int) (string, error) { _, err := step(ctx, "charge", in); return "", err }, "durable"},
		"a result of another type": {whole, func(ctx context.Context, in int) (string, error) {
			return durable.Step(ctx, "charge", func(context.Context) (string, error) { return "", nil })
		}, "int"},
		"a failure that would be none": {failed, func(ctx context.Context, in int) (string, error) { _, err := step(ctx, "charge", in); return "", err }, "no stock"},
		"a body that must not run, and fails": {inFlight, func(ctx context.Context, in int) (string, error) {
			_, err := durable.Step(ctx, "charge", func(context.Context) (int, error) { panic("charged again") })
			if err != nil {
				return "", err
			}
			_ = durable.Sleep(ctx, time.Hour)
			return "", durable.Do(ctx, "ship", func(context.Context) error { panic("shipped") })
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			failures := durabletest.Compare(t, c.file, []durable.Definition{define(c.fn)})
			if c.says == "" {
				require.Empty(t, failures)
				return
			}
			require.Len(t, failures, 1)
			require.ErrorContains(t, failures[0], c.says)
			require.ErrorContains(t, failures[0], c.file)
		})
	}
}

func TestReplaysPassesOnWhatFitsAndSaysThatThereIsNoFile(t *testing.T) {
	durabletest.Replays(t, recorded(t, shipped, time.Hour), []durable.Definition{define(shipped)})
	failures := durabletest.Compare(t, filepath.Join(t.TempDir(), "*.run"), nil)
	require.Len(t, failures, 1)
	require.ErrorContains(t, failures[0], "durable checkpoints export")
	damaged := filepath.Join(t.TempDir(), "damaged.run")
	require.NoError(t, os.WriteFile(damaged, []byte("{}\n"), 0o600))
	failures = durabletest.Compare(t, damaged, []durable.Definition{define(shipped)})
	require.Len(t, failures, 1)
	require.ErrorIs(t, failures[0], operate.ErrBadFile)
}
