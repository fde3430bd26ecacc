package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

const (
	workBlocks = 9
	// largeResult is the result of a step that may hold up the small ones of other runs.
	largeResult = 1 << 20
	smallSteps  = 500
	kept        = 6 // times that runs are made and deleted
	keptSteady  = 3 // of these, until what is deleted is used again
	longMost    = 100_000
	mapMost     = 100_000
)

// workCurves are what work costs in a store that has many runs.
var workCurves = findings(work,
	curve{name: "step", goal: goal{flat: true}},
	curve{name: "step, allocations", unit: "a step", goal: goal{flat: true}},
	curve{name: "step after as many", most: longMost, goal: goal{flat: true}},
	curve{name: "small step alone, p99"},
	curve{name: "small step beside 1 MB, p99", goal: within(5 * time.Millisecond)},
	curve{name: "small step beside 1 MB by hand, p99"},
	curve{name: "item of a Map of as many", unit: "us", most: mapMost, goal: goal{flat: true}},
	curve{name: "change of 100 runs at once", unit: "us", goal: goal{flat: true}},
	curve{name: "bytes of a step on disk", unit: "B", goal: goal{most: 500}},
	curve{name: "growth with retention", unit: "% of what was written", goal: goal{most: 10}},
)

// work makes runs of its own and deletes them again.
func work(ctx context.Context, s *scaled) (map[string]float64, error) {
	single, large := newStepper(), newStepper()
	text := noise(1, largeResult)
	var isOver atomic.Bool
	big := durable.Define("big", func(ctx context.Context, _ int) (int, error) {
		for !isOver.Load() {
			if _, err := durable.Step(ctx, "step", func(context.Context) ([]byte, error) { return text, nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	m := &besides{
		scaled: s, found: map[string]float64{},
		single: durable.Define("single", single.work), singly: single,
		long: durable.Define("long", large.work), longer: large,
		big: big, bigOver: &isOver,
		fan: durable.Define("fan", func(ctx context.Context, _ int) (int, error) { return steps(ctx, fanSteps) }),
	}
	m.mapped = durable.Define("map", func(ctx context.Context, n int) (int, error) {
		items := make([]int, n)
		out, err := durable.Map(ctx, "items", items, durable.MapOptions{Concurrency: mapAtOnce}, func(_ context.Context, item int) (int, error) { return item, nil })
		return len(out), err
	})
	err := unrecovered(ctx, s.Store, func(ctx context.Context, eng *durable.Engine) error {
		for _, do := range []func(context.Context, *durable.Engine) error{m.disk, m.steps, m.history, m.sizes, m.items} {
			if err := do(ctx, eng); err != nil {
				return err
			}
		}
		return nil
	}, m.single, m.long, m.big, m.mapped, m.fan)
	return m.found, err
}

// besides are the measurements of work.
type besides struct {
	*scaled
	found                          map[string]float64
	single, long, big, mapped, fan *durable.Workflow[int, int]
	singly, longer                 *stepper
	bigOver                        *atomic.Bool
}

// steps measures a lone run.
func (m *besides) steps(ctx context.Context, _ *durable.Engine) error {
	r := &lone{work: m.singly, workflow: m.single}
	var took, allocated []float64
	for range workBlocks {
		before := mallocs()
		us, err := r.block(ctx)
		if err != nil {
			return err
		}
		allocated = append(allocated, float64(mallocs()-before)/blockSize)
		took = append(took, us/1000)
	}
	m.found["step"], m.found["step, allocations"] = median(took), median(allocated)
	return r.end(ctx)
}

func mallocs() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}

// history measures the steps of a run that has made as many as there are runs.
func (m *besides) history(ctx context.Context, _ *durable.Engine) error {
	run, err := m.long.Start(ctx, "long", 0)
	if err != nil {
		return err
	}
	m.longer.relaxed = true
	for made := 0; made < min(m.runs, longMost); made += 1000 {
		if _, err := m.longer.block(ctx, run, 1000); err != nil {
			return err
		}
	}
	m.longer.relaxed = false
	var took []float64
	for range workBlocks {
		d, err := m.longer.block(ctx, run, blockSize)
		if err != nil {
			return err
		}
		took = append(took, milliseconds(d)/blockSize)
	}
	m.found["step after as many"] = median(took)
	close(m.longer.blocks)
	_, err = run.Wait(ctx)
	return err
}

// sizes measures how long a small step takes while another run has large results recorded.
func (m *besides) sizes(ctx context.Context, _ *durable.Engine) error {
	small := func(run string) (float64, error) {
		var took []float64
		m.singly.steps = func(ctx context.Context, n int) (int, error) {
			for range n {
				began := time.Now()
				if _, err := steps(ctx, 1); err != nil {
					return 0, err
				}
				took = append(took, milliseconds(time.Since(began)))
			}
			return 0, nil
		}
		defer func() { m.singly.steps, m.singly.blocks = nil, make(chan int) }()
		r, err := m.single.Start(ctx, run, 0)
		if err != nil {
			return 0, err
		}
		if _, err := m.singly.block(ctx, r, smallSteps); err != nil {
			return 0, err
		}
		close(m.singly.blocks)
		_, err = r.Wait(ctx)
		return quantile(took, 0.99), err
	}
	var err error
	if m.found["small step alone, p99"], err = small("small-alone"); err != nil {
		return err
	}
	big, err := m.big.Start(ctx, "big", 0)
	if err != nil {
		return err
	}
	if m.found["small step beside 1 MB, p99"], err = small("small-beside"); err != nil {
		return err
	}
	m.bigOver.Store(true)
	if _, err := big.Wait(ctx); err != nil {
		return err
	}
	m.found["small step beside 1 MB by hand, p99"], err = m.besideByHand()
	return err
}

// besideByHand returns the p99 of small commits beside a loop of large ones, without an engine. The
// large value is encoded and compressed each time, as that of a step must be.
func (m *besides) besideByHand() (float64, error) {
	small, large := hand{s: m.Store, name: "small "}, hand{s: m.Store, name: "large "}
	l, err := large.create()
	if err != nil {
		return 0, err
	}
	value := noise(1, largeResult)
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return 0, err
	}
	defer zip.Close()
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
			encoded, err := json.Marshal(value)
			if err != nil {
				ended <- err
				return
			}
			payload := zip.EncodeAll(encoded, make([]byte, 0, len(encoded)/4))
			c := store.Change{RunID: l.id, Expect: expect, Events: []store.Event{l.event(store.StepCompleted, "step", nil, payload)}}
			if err := large.commit(c); err != nil {
				ended <- err
				return
			}
		}
	}()
	var took []float64
	s, err := small.create()
	for i := 0; i < smallSteps && err == nil; i++ {
		began := time.Now()
		err = small.step(s)
		took = append(took, milliseconds(time.Since(began)))
	}
	close(over)
	if err := errors.Join(err, <-ended); err != nil {
		return 0, err
	}
	return quantile(took, 0.99), nil
}

// items measures a run that maps over as many items as there are runs.
func (m *besides) items(ctx context.Context, _ *durable.Engine) error {
	n := min(m.runs, mapMost)
	began := time.Now()
	_, err := m.mapped.Run(ctx, "map", n)
	m.found["item of a Map of as many"] = micros(time.Since(began)) / float64(n)
	return err
}

// disk measures many runs at once, what they take on the disk, and how much of that remains if as
// many are deleted as are made.
func (m *besides) disk(ctx context.Context, eng *durable.Engine) error {
	size := func() (float64, error) {
		if err := m.t.settle(ctx, m.address); err != nil {
			return 0, err
		}
		return m.t.size(ctx, m.address)
	}
	clean := func() error {
		_, err := operate.On(eng).Clean(ctx, operate.CleanOptions{All: true, Workflows: []string{"fan", "single", "long", "big", "map"}})
		return err
	}
	var first, full, last float64
	var took []float64
	for i := range kept {
		before, err := size()
		if err != nil {
			return err
		}
		d, err := crowd(ctx, m.fan, i)
		if err != nil {
			return err
		}
		took = append(took, micros(d)/(fanRuns*fanChanges))
		after, err := size()
		if err != nil {
			return err
		}
		switch i {
		case 0:
			full = after - before
		case keptSteady - 1:
			first = after
		}
		last = after
		if err := clean(); err != nil {
			return err
		}
	}
	if full <= 0 {
		return fmt.Errorf("%d runs took %.0f bytes on the disk", fanRuns, full)
	}
	m.found["change of 100 runs at once"] = median(took)
	m.found["bytes of a step on disk"] = full / (fanRuns * fanSteps)
	m.found["growth with retention"] = max(0, 100*(last-first)/(full*(kept-keptSteady)))
	return nil
}
