package durabletest_test

import (
	"context"
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

// production executes a workflow as it is deployed, at a date like today's, does
// something to its run, and exports it.
func production[O any](t *testing.T, wf *durable.Workflow[int, O], act func(ctx context.Context, eng *durable.Engine), o ...durable.StartOption) (file string) {
	file = filepath.Join(t.TempDir(), "order.run")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		data := memory.OpenAt(func() time.Time {
			return time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC).Add(time.Since(began))
		})
		eng, err := durable.Open(t.Context(), data, durable.Options{Workflows: []durable.Definition{wf, courier}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)
		_, err = wf.Start(ctx, "order-42", 7, o...)
		require.NoError(t, err)
		act(ctx, eng)
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, operate.On(eng).Export(t.Context(), "order-42", f))
		require.NoError(t, f.Close())
		require.NoError(t, eng.Close())
	})
	return file
}

// courier is a child that takes a day.
var courier = durable.Define("courier", func(ctx context.Context, _ int) (string, error) {
	return "", durable.Sleep(ctx, 24*time.Hour)
})

func TestUnchangedCodeFitsTheHistoryOfARunThatWasStopped(t *testing.T) {
	cancel := func(after time.Duration) func(ctx context.Context, eng *durable.Engine) {
		return func(ctx context.Context, eng *durable.Engine) {
			time.Sleep(after)
			require.NoError(t, eng.Cancel(ctx, "order-42", "not wanted"))
			time.Sleep(time.Hour)
		}
	}
	pass := func(d time.Duration) func(context.Context, *durable.Engine) {
		return func(context.Context, *durable.Engine) { time.Sleep(d) }
	}
	undone := func(ctx context.Context, in int) (string, error) {
		if err := durable.Compensate(ctx, "refund", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return shipped(ctx, in)
	}
	pause := func(ctx context.Context, eng *durable.Engine) {
		time.Sleep(time.Hour)
		require.NoError(t, eng.Pause(ctx, "order-42", "somebody looks at it"))
		time.Sleep(time.Hour)
	}
	family := func(ctx context.Context, in int) (string, error) { return courier.Run(ctx, "courier-42", in) }
	for name, file := range map[string]string{
		"paused":                                production(t, define(shipped), pause),
		"it waits for a child":                  production(t, define(family), pass(time.Hour)),
		"cancelled while it sleeps":             production(t, define(shipped), cancel(time.Hour)),
		"cancelled and undone":                  production(t, define(undone), cancel(time.Hour)),
		"its deadline passed while it slept":    production(t, define(shipped), pass(48*time.Hour), durable.Deadline(time.Hour)),
		"its deadline passed, and it is undone": production(t, define(undone), pass(48*time.Hour), durable.Deadline(time.Hour)),
		"its deadline is ahead":                 production(t, define(shipped), pass(time.Hour), durable.Deadline(48*time.Hour)),
		"it was done before its deadline":       production(t, define(shipped), pass(48*time.Hour), durable.Deadline(72*time.Hour)),
	} {
		fn := shipped
		switch name {
		case "cancelled and undone", "its deadline passed, and it is undone":
			fn = undone
		case "it waits for a child":
			fn = family
		}
		t.Run(name, func(t *testing.T) {
			require.Empty(t, durabletest.Compare(t, file, []durable.Definition{define(fn), courier}))
			changed := define(func(ctx context.Context, in int) (string, error) {
				if _, err := step(ctx, "bill", in); err != nil {
					return "", err
				}
				return fn(ctx, in)
			})
			failures := durabletest.Compare(t, file, []durable.Definition{changed, courier})
			require.Len(t, failures, 1)
			require.ErrorContains(t, failures[0], "bill")
		})
	}
}

type receiptThen struct{ Total, Tax int }

type receiptNow struct{ Sum, Tax int }

func TestAFieldThatWasRenamedDoesNotReadZeroInSilence(t *testing.T) {
	then := durable.Define("wf", func(ctx context.Context, in int) (string, error) {
		_, err := durable.Step(ctx, "charge", func(context.Context) (receiptThen, error) { return receiptThen{in, 1}, nil })
		return "", err
	})
	file := production(t, then, func(context.Context, *durable.Engine) { time.Sleep(time.Second) })
	now := []durable.Definition{durable.Define("wf", func(ctx context.Context, in int) (string, error) {
		_, err := durable.Step(ctx, "charge", func(context.Context) (receiptNow, error) { panic("again") })
		return "", err
	})}
	require.Empty(t, durabletest.Compare(t, file, []durable.Definition{then}))
	failures := durabletest.Compare(t, file, now)
	require.Len(t, failures, 1)
	require.ErrorContains(t, failures[0], `unknown field "Total"`)
	require.ErrorContains(t, failures[0], "durabletest.FieldsRemoved")
	require.Empty(t, durabletest.Compare(t, file, now, durabletest.FieldsRemoved()))
}
