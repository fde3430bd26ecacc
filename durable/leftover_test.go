package durable_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// What these tests are about shows under the race detector. They take real time: a
// virtual clock orders what they must not order.

func openPlain(t *testing.T, st store.Store, o durable.Options) (*durable.Engine, context.Context) {
	t.Helper()
	if o.Grace == 0 {
		o.Grace = -1
	}
	o.Logger = slog.New(slog.DiscardHandler)
	eng, err := durable.Open(context.Background(), st, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return eng, durable.NewContext(context.Background(), eng)
}

// A branch that does not heed the end of its context is left behind when its run is
// undone. What it does then must not meet the record of where the run was stopped.
func TestABranchThatGoesOnWhileItsRunIsUndoneDoesNotDisturbTheUndoing(t *testing.T) {
	var undone, late atomic.Int32
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		err := durable.Compensate(ctx, "undo", func(context.Context) error {
			time.Sleep(time.Second) // the branch ends meanwhile
			undone.Add(1)
			return nil
		})
		if err != nil {
			return 0, err
		}
		if _, err := durable.Step(ctx, "work", one); err != nil {
			return 0, err
		}
		durable.Go(ctx, "heeds", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
		durable.Go(ctx, "deaf", func(ctx context.Context) (int, error) {
			time.Sleep(1500 * time.Millisecond)
			late.Add(1)
			return 0, durable.Compensate(ctx, "too late", func(context.Context) error { undone.Add(100); return nil })
		})
		return 0, durable.Permanent(errStock)
	})
	eng, ctx := openPlain(t, memory.Open(), with(wf))
	_, err := wf.Run(ctx, "r", 0)
	require.ErrorIs(t, err, errStock)
	require.EqualValues(t, 1, undone.Load())
	require.EqualValues(t, 1, late.Load(), "it went on while the run was undone")
	v, err := operate.On(eng).Verify(ctx, "r")
	require.NoError(t, err)
	require.Empty(t, v.Findings)
}

// A branch that has lost a race may still be in a body when its run has ended and the
// span of that is made.
func TestABranchThatHasLostARaceMayRecordWhileTheEndOfItsRunIsTraced(t *testing.T) {
	over := make(chan struct{})
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
			defer close(over)
			return durable.Step(ctx, "s", func(context.Context) (int, error) {
				time.Sleep(200 * time.Millisecond)
				return 1, nil
			}, durable.Relaxed())
		})
		fast := durable.Go(ctx, "fast", func(ctx context.Context) (int, error) {
			time.Sleep(50 * time.Millisecond) // the other one is in its body
			return 2, nil
		})
		_, v, err := durable.First(ctx, "race", slow, fast)
		return v, err
	})
	spans := tracetest.NewSpanRecorder()
	_, ctx := openPlain(t, memory.Open(), durable.Options{
		Workflows: []durable.Definition{wf}, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), Grace: time.Second,
	})
	v, err := wf.Run(ctx, "r", 0)
	require.NoError(t, err)
	require.Equal(t, 2, v)
	<-over
}

// slowLog takes its time over the line which says that a run is resumed.
type slowLog struct{ slog.Handler }

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

func (slowLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "durable: run resumed" {
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// A run that recovery continues is told of, in the log and in metrics, while its
// history, which has the baggage of its start, is being read.
func TestARunWithBaggageIsToldOfWhileItsHistoryIsRead(t *testing.T) {
	member, err := baggage.NewMember("tenant", "acme")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	var tenant atomic.Value
	var open atomic.Bool
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
			if !open.Load() {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			tenant.Store(baggage.FromContext(ctx).Member("tenant").Value())
			return 1, nil
		})
	})
	data := memory.Open()
	o := with(wf)
	o.Logger, o.Grace = slog.New(slog.DiscardHandler), -1
	first, err := durable.Open(context.Background(), data.Handle(), o)
	require.NoError(t, err)
	_, err = wf.Start(baggage.ContextWithBaggage(durable.NewContext(context.Background(), first), bag), "r", 0)
	require.NoError(t, err)
	require.NoError(t, first.Close()) // interrupted
	open.Store(true)
	o.Logger = slog.New(slowLog{slog.DiscardHandler})
	eng, err := durable.Open(context.Background(), data.Handle(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	ctx := durable.NewContext(context.Background(), eng)
	rep, err := eng.Recover(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"r"}, rep.Resumed)
	h, err := wf.Handle(ctx, "r")
	require.NoError(t, err)
	_, err = h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "acme", tenant.Load())
}
