package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A pair is one block of the floor and one of the library, measured back to back, in
// the unit of the case.
type pair struct{ floor, ours float64 }

// A block measures one block of operations and returns a value in the unit of
// its case.
type block func() (float64, error)

// pairs measures rounds of both blocks.
func pairs(rounds int, floor, ours block) ([]pair, error) {
	measured := make([]pair, rounds)
	into := func(of block, place func(*pair) *float64) func(int) error {
		return func(i int) (err error) {
			*place(&measured[i]), err = of()
			return err
		}
	}
	return measured, alternate(rounds,
		into(floor, func(p *pair) *float64 { return &p.floor }), into(ours, func(p *pair) *float64 { return &p.ours }))
}

// alternate does rounds of both. Which comes first alternates too, because the noise of a
// shared machine affects neighbours alike: identical runs minutes apart differ by half, their
// ratios do not.
func alternate(rounds int, floor, ours func(i int) error) error {
	for i := range rounds {
		steps := []struct {
			do   func(int) error
			name string
		}{{floor, "the floor"}, {ours, "ours"}}
		if i%2 == 1 {
			slices.Reverse(steps)
		}
		for _, s := range steps {
			if err := s.do(i); err != nil {
				return fmt.Errorf("round %d of %s: %w", i+1, s.name, err)
			}
		}
	}
	return nil
}

// ratio is the library against the floor. Times are inverted, so that higher is better.
func (p pair) ratio(rate bool) float64 {
	if rate {
		return p.ours / p.floor
	}
	return p.floor / p.ours
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile interpolates between neighbours, and leaves values as they are.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 == len(s) {
		return s[low]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

// resamples of a bootstrap: enough that the interval is steady in its second
// digit.
const resamples = 2000

// bootstrap returns an interval that holds the median of what values are drawn
// from with 95% confidence. It is the same for the same values.
func bootstrap(values []float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, resamples)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[rng.IntN(len(values))]
		}
		medians[i] = median(drawn)
	}
	return quantile(medians, 0.025), quantile(medians, 0.975)
}
