package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The states of STATE: the size of one large checkpoint, and the history of a resumed
// run, in bytes or in steps.
const (
	savedSize  = 10_000_000
	saves      = 5
	stateSize  = 100_000
	stateSteps = 1_000
	longSteps  = 100_000
)

// state measures what a large state costs: SAVE, from the return of a step's body with
// 10 MB that do not compress to the return of Step, when it is durable; RESUME state,
// from the call of Recover, which claims the run, to its first new line, after reading
// again 100 MB over 1,000 steps; and RESUME steps, the same with 100,000 small steps.
func state(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var took []float64
	save := func(ctx context.Context) error {
		for i := range min(saves, n.stateSteps) {
			var made time.Time
			_, err := durable.Step(ctx, "save", func(context.Context) ([]byte, error) {
				b := noise(uint64(i), savedSize)
				made = time.Now()
				return b, nil
			})
			if err != nil {
				return err
			}
			if !made.IsZero() { // it was run, not replayed
				took = append(took, milliseconds(time.Since(made)))
			}
		}
		return nil
	}
	if _, err := resumes(ctx, s, "save", 0, save); err != nil {
		return nil, err
	}
	large, err := resumes(ctx, s, "state", min(n.rounds, 5), func(ctx context.Context) error {
		for i := range min(stateSteps, n.stateSteps) {
			got, err := durable.Step(ctx, "step", func(context.Context) ([]byte, error) { return noise(uint64(i), stateSize), nil })
			switch {
			case err != nil:
				return err
			case len(got) != stateSize || !bytes.Equal(got[:64], noise(uint64(i), 64)):
				return errors.New("a state was not restored as it was saved")
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	long, err := resumes(ctx, s, "long", min(n.rounds, 5), func(ctx context.Context) error {
		for i := range min(longSteps, 100*n.stateSteps) {
			// Relaxed, so that the history is written quickly.
			if _, err := durable.Step(ctx, "step", func(context.Context) (int, error) { return i, nil }, durable.Relaxed()); err != nil {
				return err
			}
		}
		return durable.Checkpoint(ctx)
	})
	if err != nil {
		return nil, err
	}
	return []result{plainResult("SAVE", "ms", took), plainResult("RESUME state", "ms", large), plainResult("RESUME steps", "ms", long)}, nil
}

// resumes makes a run build a history and resumes it once per round. It returns how
// long each took, in milliseconds.
func resumes(ctx context.Context, s store.Store, name string, rounds int, build func(ctx context.Context) error) ([]float64, error) {
	reached := make(chan time.Time, 1)
	w := durable.Define(name, func(ctx context.Context, _ int) (int, error) {
		if err := build(ctx); err != nil {
			return 0, err
		}
		reached <- time.Now()
		<-ctx.Done() // until the engine is closed
		return 0, context.Cause(ctx)
	})
	err := withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		if _, err := w.Start(ctx, name, 0); err != nil {
			return err
		}
		_, err := arrival(ctx, reached)
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	var took []float64
	for range rounds {
		d, _, err := resume(ctx, s, w, reached)
		if err != nil {
			return nil, err
		}
		took = append(took, milliseconds(d))
	}
	return took, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// noise returns n bytes that do not compress, always the same for a seed.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		v := r.Uint64()
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
	}
	return b[:n]
}
