package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// A large state: what a step returns, and how many of them a run has behind it
// that is resumed.
const (
	stateSize  = 4 << 20
	stateSteps = 8
)

// state measures what a large state costs: SAVE, from the return of a step's body
// with 4 MiB that do not compress to the return of Step, when it is durable; and
// RESUME, from the call of Recover, which claims the run, to its first new line,
// with eight such results behind it, all of which it has read again.
func state(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	reached := make(chan time.Time, 1)
	var saves []float64
	w := durable.Define("state", func(ctx context.Context, _ int) (int, error) {
		for i := range stateSteps {
			var made time.Time
			got, err := durable.Step(ctx, fmt.Sprint("state-", i), func(context.Context) ([]byte, error) {
				b := noise(uint64(i), stateSize)
				made = time.Now()
				return b, nil
			})
			switch {
			case err != nil:
				return 0, err
			case !made.IsZero(): // it was run, not replayed
				saves = append(saves, milliseconds(time.Since(made)))
			case len(got) != stateSize || !bytes.Equal(got[:64], noise(uint64(i), 64)):
				return 0, errors.New("a state was not restored as it was saved")
			}
		}
		reached <- time.Now()
		<-ctx.Done() // until the engine is closed
		return 0, context.Cause(ctx)
	})
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		if _, err := w.Start(ctx, "state", 0); err != nil {
			return err
		}
		_, err := arrival(ctx, reached)
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	var resumes []float64
	for range n.rounds {
		took, err := resume(ctx, s, w, reached)
		if err != nil {
			return nil, err
		}
		resumes = append(resumes, milliseconds(took))
	}
	return []result{plainResult("SAVE", "ms", saves), plainResult("RESUME", "ms", resumes)}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// noise returns n bytes that do not compress, the same ones for the same seed.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		v := r.Uint64()
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
	}
	return b[:n]
}
