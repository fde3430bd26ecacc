package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// crowds say which numbers of processes share a store in PROCESSES, and for how long.
type crowds struct {
	Of     []int // processes; the first is what the others are compared with
	Rounds int
	Window time.Duration // that counts, after as long again to warm up, at most a second
}

// sharedRuns are executed at a time, in all processes together.
const sharedRuns = 64

// share is what one process of PROCESSES has to say about the time that counts.
type share struct {
	Steps   int64
	Micros  []int64 // of each step
	Commits int64
	CPU     time.Duration
}

// processes measures what it costs that several processes share a store: 64 short runs at a
// time, spread over one process and over more. By hand their checkpoints are batches that a loop
// gives the store, without an engine: no process can share its commits among more runs than it has.
func processes(ctx context.Context, t *target, n size) ([]result, error) {
	of := n.crowds.Of
	rates, tails := make([][]pair, len(of)), make([][]pair, len(of))
	batches, costs, hands := make([][]float64, len(of)), make([][]float64, len(of)), make([][]pair, len(of))
	for range n.crowds.Rounds {
		var rate, tail []float64
		for i, k := range of {
			address, err := t.create(ctx)
			if err != nil {
				return nil, err
			}
			all, err := shared(ctx, t, "processes", address, "p", k, n.crowds.Window)
			if err != nil {
				return nil, fmt.Errorf("%d processes: %w", k, err)
			}
			hand, err := shared(ctx, t, "processes by hand", address, "h", k, n.crowds.Window)
			if err != nil {
				return nil, fmt.Errorf("%d processes by hand: %w", k, err)
			}
			rate = append(rate, float64(all.Steps)/n.crowds.Window.Seconds())
			tail = append(tail, p99(all.Micros))
			rates[i] = append(rates[i], pair{rate[0], rate[i]})
			hands[i] = append(hands[i], pair{rate[0], float64(hand.Steps) / n.crowds.Window.Seconds()})
			tails[i] = append(tails[i], pair{tail[0], tail[i]})
			batches[i] = append(batches[i], float64(all.Steps)/float64(max(all.Commits, 1)))
			costs[i] = append(costs[i], micros(all.CPU)/float64(max(all.Steps, 1)))
		}
	}
	var results []result
	for i, k := range of {
		name := fmt.Sprintf("PROCESSES %d", k)
		results = append(results,
			pairedResult(name, "steps/s", true, rates[i]),
			pairedResult(name+" p99", "us/step", false, tails[i]),
			plainResult(name+" batch", "steps/commit", batches[i]),
			pairedResult(name+" by hand", "steps/s", true, hands[i]))
		if slices.Max(costs[i]) > 0 {
			results = append(results, plainResult(name+" CPU", "us/step", costs[i]))
		}
	}
	return results, nil
}

func p99(us []int64) float64 {
	values := make([]float64, len(us))
	for i, v := range us {
		values[i] = float64(v)
	}
	return quantile(values, 0.99)
}

// shared has so many processes of a role work on a database. Their names begin with name, and so
// do the ids of their runs.
func shared(ctx context.Context, t *target, role, address, name string, k int, window time.Duration) (all share, err error) {
	s, err := connect(t.name, t.mode, address) // creates the schema
	if err != nil {
		return all, err
	}
	defer s.Close()
	others, err := countLive(ctx, s)
	if err != nil {
		return all, err
	}
	var children []*child
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.end())
		}
	}()
	for i := range k {
		c, err := begin(ctx, orders{Role: role, Store: t.name, Mode: t.mode, Address: address, Name: fmt.Sprintf("%s%d", name, i), Runs: sharedRuns / k, Window: window})
		if err != nil {
			return all, err
		}
		children = append(children, c)
	}
	if err := untilLive(ctx, s, children, others); err != nil {
		return all, err
	}
	at := time.Now().Add(min(window, time.Second)).UnixNano()
	for _, c := range children {
		if _, err := fmt.Fprintln(c.in, at); err != nil {
			return all, err
		}
	}
	for _, c := range children {
		select {
		case <-c.ended:
		case <-ctx.Done():
			return all, ctx.Err()
		}
		if c.err != nil {
			return all, c.err
		}
		var one share
		if err := json.Unmarshal(c.said.Bytes(), &one); err != nil {
			return all, err
		}
		all.Steps, all.Commits, all.CPU = all.Steps+one.Steps, all.Commits+one.Commits, all.CPU+one.CPU
		all.Micros = append(all.Micros, one.Micros...)
	}
	return all, nil
}

// told waits for the moment from which the steps of a process count.
func (o orders) told(in io.Reader) (from, to time.Time, err error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return from, to, err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	from = time.Unix(0, at)
	return from, from.Add(o.Window), err
}

// processesChild is one of the processes. It begins when it is told the moment from which its
// steps count.
func processesChild(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	var all share
	var from, to time.Time
	w := durable.Define("crowd", func(ctx context.Context, _ int) (int, error) {
		var took []int64
		for i := range fanSteps {
			began := time.Now()
			if _, err := durable.Step(ctx, "step", func(context.Context) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
			if ended := time.Now(); ended.After(from) && ended.Before(to) {
				took = append(took, ended.Sub(began).Microseconds())
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all.Steps += int64(len(took))
		all.Micros = append(all.Micros, took...)
		return 0, nil
	})
	err := unrecovered(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		var err error
		if from, to, err = o.told(in); err != nil {
			return err
		}
		errs := make(chan error, o.Runs)
		for i := range o.Runs {
			go func() {
				for n := 0; time.Now().Before(to); n++ {
					if _, err := w.Run(ctx, fmt.Sprintf("%s-%d-%d", o.Name, i, n), 0); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		if err := pause(ctx, time.Until(from)); err != nil {
			return err
		}
		commits, cpu := counts(s).Commits, cpuTime()
		if err := pause(ctx, time.Until(to)); err != nil {
			return err
		}
		all.Commits, all.CPU = counts(s).Commits-commits, cpuTime()-cpu
		for range o.Runs {
			err = errors.Join(err, <-errs)
		}
		return err
	}, w)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(all)
}
