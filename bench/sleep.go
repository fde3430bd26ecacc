package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// sleepers say how many runs sleep, and how long they are watched.
type sleepers struct {
	Runs  int // that sleep for an hour
	Due   int // more of them that wake at one moment
	Wakes int // moments
	Idle  int // seconds during which nothing wakes
	// Slack is the time for the runs that wake to be started and fall asleep, before
	// the quiet time begins.
	Slack time.Duration
}

const (
	// sleepStarts is how many callers start runs concurrently, so that they share
	// commits.
	sleepStarts = 256
	// sleepGap is the time between two moments: longer than a wake-up takes.
	sleepGap = 3 * time.Second
)

// sleep measures the cost of sleeping runs: memory, statements, and the time from the
// moment at which many are due until the last has recorded its next step. It does so in
// a separate process: in one that other cases have used, the sleepers would take memory
// that is already resident.
func sleep(ctx context.Context, t *target, n size) ([]result, error) {
	var results []result
	err := alone(ctx, t, orders{Role: "sleep", Sleepers: n.sleepers}, &results)
	return results, err
}

// sleepChild is the process of SLEEP. It prints its results.
func sleepChild(ctx context.Context, o orders, s store.Store, out io.Writer) error {
	b := newBedroom(s, o.Sleepers)
	var results []result
	err := withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) (err error) {
		results, err = b.watch(ctx)
		return err
	}, b.sleeper, b.riser)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(results)
}

// bedroom is where runs sleep.
type bedroom struct {
	sleepers
	store   store.Store
	sleeper *durable.Workflow[time.Duration, int] // sleeps for its input
	riser   *durable.Workflow[riser, int]         // sleeps until its input, and makes a step
	moments []*moment
}

// riser is when a run wakes.
type riser struct {
	Moment int
	At     int64 // microseconds
}

// A moment is a time at which runs are due.
type moment struct {
	at    time.Time
	left  atomic.Int64   // runs that have not recorded their step
	awake chan time.Time // when the last one had
}

func newBedroom(s store.Store, n sleepers) *bedroom {
	b := &bedroom{sleepers: n, store: s}
	b.sleeper = durable.Define("sleeper", func(ctx context.Context, d time.Duration) (int, error) {
		return 0, durable.Sleep(ctx, d)
	})
	b.riser = durable.Define("riser", func(ctx context.Context, r riser) (int, error) {
		if err := durable.SleepUntil(ctx, time.UnixMicro(r.At)); err != nil {
			return 0, err
		}
		v, err := steps(ctx, 1)
		if m := b.moments[r.Moment]; err == nil && m.left.Add(-1) == 0 {
			m.awake <- time.Now()
		}
		return v, err
	})
	return b
}

// watch starts the runs, waits while they sleep, and measures how some of them wake.
func (b *bedroom) watch(ctx context.Context) ([]result, error) {
	// One run starts and ends, so that the engine is idle rather than unused.
	if _, err := b.sleeper.Run(ctx, "nap", 0); err != nil {
		return nil, err
	}
	before, err := footprintNow()
	if err != nil {
		return nil, err
	}
	rate, err := b.toBed(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.asleep(ctx, b.Runs); err != nil {
		return nil, err
	}
	first, err := b.setAlarms(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.asleep(ctx, b.Runs+b.Due*b.Wakes); err != nil {
		return nil, err
	}
	if err := settled(ctx, b.store); err != nil {
		return nil, err
	}
	window := min(time.Duration(b.Idle)*time.Second, time.Until(first)-time.Second/10)
	if window <= 0 {
		return nil, fmt.Errorf("the first run is due and not all of them sleep: %s was not enough for them", b.Slack)
	}
	idle, err := statementRate(ctx, b.store, window)
	if err != nil {
		return nil, err
	}
	after, err := footprintNow()
	if err != nil {
		return nil, err
	}
	wakes, err := b.rise(ctx)
	if err != nil {
		return nil, err
	}
	results := []result{plainResult("SLEEP start", "runs/s", []float64{rate})}
	if after.resident != 0 {
		results = append(results, plainResult("SLEEP memory", "MB", []float64{growth(before.resident, after.resident)}))
	}
	return append(results,
		plainResult("SLEEP heap", "MB", []float64{growth(before.heap, after.heap)}),
		plainResult("SLEEP idle", "statements/s", []float64{idle}),
		plainResult("SLEEP wake-up", "s", wakes),
	), nil
}

// toBed starts the runs that sleep throughout and returns how many a second.
func (b *bedroom) toBed(ctx context.Context) (float64, error) {
	began := time.Now()
	err := atOnce(sleepStarts, b.Runs, func(i int) error {
		_, err := b.sleeper.Start(ctx, fmt.Sprintf("sleeper-%d", i), time.Hour)
		return err
	})
	return float64(b.Runs) / time.Since(began).Seconds(), err
}

// setAlarms starts the runs that wake after the quiet time, and returns the first
// moment.
func (b *bedroom) setAlarms(ctx context.Context) (time.Time, error) {
	first := time.Now().Add(time.Duration(b.Idle)*time.Second + b.Slack)
	for k := range b.Wakes {
		m := &moment{at: first.Add(time.Duration(k) * sleepGap), awake: make(chan time.Time, 1)}
		m.left.Store(int64(b.Due))
		b.moments = append(b.moments, m)
	}
	return first, atOnce(sleepStarts, b.Due*b.Wakes, func(i int) error {
		k := i % b.Wakes
		_, err := b.riser.Start(ctx, fmt.Sprintf("riser-%d", i), riser{Moment: k, At: b.moments[k].at.UnixMicro()})
		return err
	})
}

// asleep waits until as many runs as wanted are waiting, by their rows.
func (b *bedroom) asleep(ctx context.Context, want int) error {
	for {
		n, err := b.store.Count(ctx, store.Filter{Statuses: []store.Status{store.Waiting}}, store.ByStatus)
		if err != nil {
			return err
		}
		if n[string(store.Waiting)] == int64(want) {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// rise waits for the moments and returns how long each took, in seconds.
func (b *bedroom) rise(ctx context.Context) ([]float64, error) {
	var took []float64
	for _, m := range b.moments {
		select {
		case at := <-m.awake:
			took = append(took, at.Sub(m.at).Seconds())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(m.at) + time.Minute):
			return nil, fmt.Errorf("%d of %d runs were not awake a minute after they were due", m.left.Load(), b.Due)
		}
	}
	return took, nil
}

// atOnce calls fn for 0 to n-1 from several goroutines, and returns the first error of
// each.
func atOnce(goroutines, n int, fn func(i int) error) error {
	errs := make([]error, goroutines)
	var next atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for errs[g] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[g] = fn(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
