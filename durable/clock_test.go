package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// offClock is a store whose clock is not ours, and whose beats take their time.
type offClock struct {
	*disk
	mu          sync.Mutex
	now         func(store.Time) store.Time // what it makes of the time
	there, back time.Duration
}

func (o *offClock) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	o.mu.Lock()
	there, back, now := o.there, o.back, o.now
	o.mu.Unlock()
	time.Sleep(there)
	p, err := o.disk.Beat(ctx, e)
	if now != nil {
		p.Now, p.Next = now(p.Now), 0
	}
	time.Sleep(back)
	return p, err
}

func (o *offClock) slow(there, back time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.there, o.back = there, back
}

// openOff starts a process on a store whose beats are like that.
func openOff(t *testing.T, w *world, o *offClock, opt durable.Options) *durable.Engine {
	t.Helper()
	o.disk = &disk{Store: w.data.Handle()}
	opt.Grace = -1
	eng, err := durable.Open(context.Background(), o, opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	w.eng, w.disk = eng, o.disk
	return eng
}

// sleeper sleeps for d and returns how long that was by durable.Now.
func sleeper(d time.Duration) *durable.Workflow[int, time.Duration] {
	return durable.Define("sleeper", func(ctx context.Context, _ int) (time.Duration, error) {
		if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		before := durable.Now(ctx)
		if err := durable.Sleep(ctx, d); err != nil {
			return 0, err
		}
		return durable.Now(ctx).Sub(before), nil
	})
}

func TestASlowBeatShortensNoSleep(t *testing.T) {
	for _, way := range []struct {
		name        string
		there, back time.Duration
	}{{"slow there", 4 * time.Second, 0}, {"slow back", 0, 4 * time.Second}, {"slow both ways", 2 * time.Second, 2 * time.Second}} {
		for _, first := range []bool{true, false} {
			t.Run(way.name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var o offClock
					wf := sleeper(400 * time.Millisecond)
					if first {
						o.slow(way.there, way.back)
					}
					openOff(t, w, &o, durable.Options{Workflows: []durable.Definition{wf}, Lease: 15 * time.Second})
					o.slow(way.there, way.back)
					for i := range 20 {
						if i == 5 {
							o.slow(0, 0)
						}
						began := time.Now()
						took, err := run(t, w, wf, string(rune('a'+i)), 0)
						require.NoError(t, err)
						require.GreaterOrEqual(t, took, 400*time.Millisecond, "by Now, %d", i)
						require.GreaterOrEqual(t, time.Since(began), 400*time.Millisecond)
						pass(700 * time.Millisecond)
					}
				})
			})
		}
	}
}

// The clock of this process runs ahead of the store's: a timer is recorded as
// fired when its time has come by the store's.
func TestATimerFiresByTheStoresOwnClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		opened := store.TimeOf(time.Now())
		truth := func() store.Time { return opened.Add(time.Since(opened.Time()) * 9 / 10) }
		o := offClock{now: func(store.Time) store.Time { return truth() }}
		wf := durable.Define("w", func(ctx context.Context, d time.Duration) (time.Time, error) {
			until := durable.Now(ctx).Add(d)
			return until, durable.SleepUntil(ctx, until)
		})
		openOff(t, w, &o, durable.Options{Workflows: []durable.Definition{wf}})
		pass(time.Minute)
		for i, d := range []time.Duration{time.Second, 7 * time.Second, 9 * time.Second} {
			until, err := run(t, w, wf, string(rune('a'+i)), d)
			require.NoError(t, err)
			require.GreaterOrEqual(t, truth(), store.TimeOf(until), "%s: %s early", d, until.Sub(truth().Time()))
			require.Less(t, truth().Time().Sub(until), time.Second)
			pass(3 * time.Second)
		}
	})
}

// What is under way when the store's clock is set back began in the future, by that clock.
func TestNothingThatIsMeasuredIsNegativeOnceTheStoresClockWasSetBack(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		await := func(ctx context.Context, name string) error {
			_, err := durable.Await[int](ctx, name)
			return err
		}
		child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return 0, await(ctx, "on") })
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			g := durable.NewGroup(ctx)
			g.Go("signal", func(ctx context.Context) error { return await(ctx, "a") })
			g.Go("child", func(ctx context.Context) error {
				_, err := child.Run(ctx, "c", 0)
				return err
			})
			g.Go("map", func(ctx context.Context) error {
				_, err := durable.Map(ctx, "each", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 0, await(ctx, "b") })
				return err
			})
			g.Go("retry", func(ctx context.Context) error {
				return durable.RetryDo(ctx, "try", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) error {
					if durable.Attempt(ctx).Number == 1 {
						return errors.New("not yet")
					}
					time.Sleep(2 * time.Minute)
					return nil
				})
			})
			return 0, g.Wait()
		})
		reader := sdk.NewManualReader()
		o := w.options(sdktrace.AlwaysSample(), wf, child)
		o.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
		var off offClock
		_, err := openOff(t, w.world, &off, o).Recover(t.Context())
		require.NoError(t, err)
		h := start(t, w.world, wf, "r", 0)
		pass(10 * time.Second)
		off.mu.Lock()
		off.now = func(at store.Time) store.Time { return at.Add(-time.Hour) }
		off.mu.Unlock()
		pass(time.Minute)
		for _, to := range [][2]string{{"c", "on"}, {"r", "a"}, {"r", "b"}} {
			require.NoError(t, durable.Signal(w.ctx(), to[0], to[1], 0))
		}
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		for _, span := range w.spans.GetSpans() {
			require.False(t, span.EndTime.Before(span.StartTime), "%s: from %s to %s", span.Name, span.StartTime, span.EndTime)
		}
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		for _, m := range all.ScopeMetrics[0].Metrics {
			if d, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, p := range d.DataPoints {
					least, _ := p.Min.Value()
					require.GreaterOrEqual(t, least, 0.0, m.Name)
				}
			}
		}
	})
}
