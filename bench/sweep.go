package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// sweeps say at which places the curves are measured.
type sweeps struct {
	Pairs    int   // at each place
	Crowds   []int // runs at once
	Steps    int   // of a crowd together
	Lengths  []int // steps that the run has made before
	Payloads []int // bytes of a result
	Bytes    int   // of the results of a block together
	Runs     []int // ended ones in the store
}

// The axes of the curves.
const (
	axisCrowd   = "runs at once"
	axisLength  = "steps before"
	axisPayload = "bytes of a result"
	axisSize    = "runs in the store"
)

// crowding measures the steps of runs that are executed at once: how many a second, and how
// long each takes, against single inserts one after the other.
func crowding(ctx context.Context, t *target, n size) (list []result, err error) {
	c := &crowded{}
	w := durable.Define("crowd", c.work)
	err = withFloor(ctx, t, func(ctx context.Context, f *floor) error {
		for _, atOnce := range n.sweeps.Crowds {
			c.steps = max(1, n.sweeps.Steps/atOnce)
			rates, medians := make([]pair, n.sweeps.Pairs), make([]pair, n.sweeps.Pairs)
			err := alternate(n.sweeps.Pairs, func(i int) error {
				d, err := f.singles(ctx, blockSize)
				rates[i].floor, medians[i].floor = blockSize/d.Seconds(), micros(d)/blockSize
				return err
			}, func(i int) (err error) {
				rates[i].ours, medians[i].ours, err = c.together(ctx, w, atOnce)
				return err
			})
			if err != nil {
				return err
			}
			list = append(list,
				pairedResult("CROWD", "steps/s", true, rates).at(axisCrowd, float64(atOnce)),
				pairedResult("CROWD p50", "us/step", false, medians).at(axisCrowd, float64(atOnce)))
		}
		return nil
	}, w)
	return list, err
}

// crowded is a workflow that makes its steps when all runs of the crowd are there.
type crowded struct {
	steps int
	runs  int // so far

	ready sync.WaitGroup
	begin chan struct{}
	mu    sync.Mutex
	took  []float64
}

func (c *crowded) work(ctx context.Context, _ int) (int, error) {
	c.ready.Done()
	<-c.begin
	took := make([]float64, c.steps)
	for i := range took {
		began := time.Now()
		if _, err := steps(ctx, 1); err != nil {
			return 0, err
		}
		took[i] = micros(time.Since(began))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, took...)
	return 0, nil
}

// together makes the steps of a crowd. The time goes from the first step to the end of the last run.
func (c *crowded) together(ctx context.Context, w *durable.Workflow[int, int], atOnce int) (rate, p50 float64, err error) {
	c.begin, c.took = make(chan struct{}), nil
	c.ready.Add(atOnce)
	runs := make([]*durable.Run[int], atOnce)
	for i := range runs {
		c.runs++
		if runs[i], err = w.Start(ctx, fmt.Sprintf("crowd-%d", c.runs), 0); err != nil {
			return 0, 0, err
		}
	}
	c.ready.Wait()
	began := time.Now()
	close(c.begin)
	for _, r := range runs {
		if _, err := r.Wait(ctx); err != nil {
			return 0, 0, err
		}
	}
	return float64(atOnce*c.steps) / time.Since(began).Seconds(), median(c.took), nil
}

// lengths measures the steps of a lone run that has made many before, against single inserts.
func lengths(ctx context.Context, t *target, n size) (list []result, err error) {
	work := newStepper()
	w := durable.Define("length", work.work)
	err = withFloor(ctx, t, func(ctx context.Context, f *floor) error {
		run, err := w.Start(ctx, "length", 0)
		if err != nil {
			return err
		}
		made := 0
		for _, length := range n.sweeps.Lengths {
			if length > made {
				if _, err := work.block(ctx, run, length-made); err != nil {
					return err
				}
				made = length
			}
			measured, err := pairs(n.sweeps.Pairs, perOp(ctx, f.singles), func() (float64, error) {
				made += blockSize
				d, err := work.block(ctx, run, blockSize)
				return micros(d) / blockSize, err
			})
			if err != nil {
				return err
			}
			list = append(list, pairedResult("LENGTH", "us/step", false, measured).at(axisLength, float64(length)))
		}
		close(work.blocks)
		_, err = run.Wait(ctx)
		return err
	}, w)
	return list, err
}

// payloads measures steps of a lone run with large results, which do not compress, against
// single inserts of as many bytes.
func payloads(ctx context.Context, t *target, n size) (list []result, err error) {
	work := newStepper()
	var text string
	work.steps = func(ctx context.Context, n int) (int, error) {
		for range n {
			if _, err := durable.Step(ctx, "step", func(context.Context) (string, error) { return text, nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
	w := durable.Define("payload", work.work)
	err = withFloor(ctx, t, func(ctx context.Context, f *floor) error {
		for _, size := range n.sweeps.Payloads {
			text = hex.EncodeToString(noise(1, size/2)) // hardly compresses
			f.args[f.blob] = []byte(`"` + text + `"`)
			run, err := w.Start(ctx, fmt.Sprintf("payload-%d", size), 0)
			if err != nil {
				return err
			}
			block := min(blockSize, max(4, n.sweeps.Bytes/size/n.sweeps.Pairs))
			measured, err := pairs(n.sweeps.Pairs, func() (float64, error) {
				d, err := f.singles(ctx, block)
				return micros(d) / float64(block), err
			}, func() (float64, error) {
				d, err := work.block(ctx, run, block)
				return micros(d) / float64(block), err
			})
			if err != nil {
				return err
			}
			list = append(list, pairedResult("PAYLOAD", "us/step", false, measured).at(axisPayload, float64(size)))
			close(work.blocks)
			_, err = run.Wait(ctx)
			work.blocks = make(chan int)
			if err != nil {
				return err
			}
		}
		return nil
	}, w)
	return list, err
}

// sizes measures the steps and the starts of runs beside many ended ones in the store, against
// single inserts.
func sizes(ctx context.Context, t *target, n size) (list []result, err error) {
	for _, runs := range n.sweeps.Runs {
		at, err := beside(ctx, t, n, runs)
		if err != nil {
			return nil, err
		}
		list = append(list, at...)
	}
	return list, nil
}

// beside measures in a store with this many ended runs.
func beside(ctx context.Context, t *target, n size, runs int) ([]result, error) {
	address, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := t.openFloor(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	work := newStepper()
	long := durable.Define("long", work.work)
	short := durable.Define("short", func(ctx context.Context, _ int) (int, error) { return steps(ctx, 1) })
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		_, err := short.Run(ctx, "sample", 0)
		return err
	}, short)
	if err != nil {
		return nil, err
	}
	now := store.TimeOf(time.Now())
	set := map[string]string{"id": "'old-' || i", "created_at": fmt.Sprintf("%d - i", now), "ended_at": fmt.Sprintf("%d - i", now)}
	if err := copyRuns(ctx, t, address, "sample", runs-1, set); err != nil {
		return nil, err
	}
	if err := t.settle(ctx, address); err != nil {
		return nil, err
	}
	var inSteps, inStarts []pair
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		r := &lone{work: work, workflow: long}
		if inSteps, err = pairs(n.sweeps.Pairs, perOp(ctx, f.singles), func() (float64, error) { return r.block(ctx) }); err != nil {
			return err
		}
		if err := r.end(ctx); err != nil {
			return err
		}
		made := 0
		inStarts, err = pairs(n.sweeps.Pairs, perOp(ctx, f.singles), func() (float64, error) {
			took := make([]float64, blockSize)
			for i := range took {
				made++
				began := time.Now()
				if _, err := short.Run(ctx, fmt.Sprintf("new-%d", made), i); err != nil {
					return 0, err
				}
				took[i] = micros(time.Since(began))
			}
			return median(took), nil
		})
		return err
	}, long, short)
	if err != nil {
		return nil, err
	}
	return []result{
		pairedResult("SIZE step", "us/step", false, inSteps).at(axisSize, float64(runs)),
		pairedResult("SIZE start", "us/run", false, inStarts).at(axisSize, float64(runs)),
	}, nil
}
