package main

import (
	"context"
	"fmt"
	"time"
)

const (
	togetherRounds = 2 // 1 if it is to be brief
	togetherWindow = 1500 * time.Millisecond
)

var togetherOf = []int{1, 2, 4, 8}

// processCurves are those of several processes that share a store, compared with one: 64 runs at a
// time in all of them together.
var processCurves = findings(together,
	curve{name: "steps of 1 process", unit: "steps/s"},
	curve{name: "p99 of 1 process"},
	curve{name: "steps of 2 processes", unit: "of 1", goal: goal{least: 0.9}},
	curve{name: "p99 of 2 processes", unit: "of 1", goal: goal{most: 3}},
	curve{name: "steps of 4 processes", unit: "of 1", goal: goal{least: 0.9}, on: map[string]goal{"postgres": {least: 1}}},
	curve{name: "p99 of 4 processes", unit: "of 1", goal: goal{most: 3}},
	curve{name: "steps of 8 processes", unit: "of 1", on: map[string]goal{"postgres": {least: 1}}},
	curve{name: "p99 of 8 processes", unit: "of 1"},
)

// together measures in rounds, so that what else the machine does affects all alike.
func together(ctx context.Context, s *scaled) (map[string]float64, error) {
	rates, tails := map[int][]float64{}, map[int][]float64{}
	rounds, window := togetherRounds, s.window(togetherWindow)
	if s.brief {
		rounds = 1
	}
	for round := range rounds {
		var one share
		for _, k := range togetherOf {
			all, err := shared(ctx, orders{
				Role: "processes", Store: s.t.name, Mode: s.t.mode, Address: s.address, Name: fmt.Sprintf("p%d-%d-", round, k), Runs: sharedRuns / k, Window: window,
			}, k)
			if err != nil {
				return nil, fmt.Errorf("%d processes: %w", k, err)
			}
			if all.Steps == 0 { // each step that began has taken at least as long
				all.Steps, all.Micros = 1, []int64{window.Microseconds()}
			}
			if k == 1 {
				one = all
				rates[k] = append(rates[k], float64(all.Steps)/window.Seconds())
				tails[k] = append(tails[k], p99(all.Micros)/1000)
				continue
			}
			rates[k] = append(rates[k], float64(all.Steps)/float64(one.Steps))
			tails[k] = append(tails[k], p99(all.Micros)/p99(one.Micros))
		}
	}
	found := map[string]float64{}
	for k, list := range rates {
		of := fmt.Sprintf("of %d processes", k)
		if k == 1 {
			of = "of 1 process"
		}
		found["steps "+of], found["p99 "+of] = median(list), median(tails[k])
	}
	return found, nil
}
