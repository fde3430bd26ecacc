package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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

	Statements int64
}

// perStep is what of something a step took.
func (s *share) perStep(of float64) float64 { return of / float64(max(s.Steps, 1)) }

// since adds what a process has spent from a moment on.
func (s *share) since(from spent, st store.Store) {
	to := spending(st)
	s.Commits, s.Statements, s.CPU = to.commits-from.commits, to.statements-from.statements, to.cpu-from.cpu
}

// spent is what a process has spent so far.
type spent struct {
	commits, statements int64
	cpu                 time.Duration
}

func spending(s store.Store) spent {
	c := counts(s)
	return spent{c.Commits, c.Statements, cpuTime()}
}

// processes measures what it costs that several processes share a store: 64 short runs at a
// time, spread over one process and over more. By hand their checkpoints are batches that a loop
// gives the store, without an engine: no process can share its commits among more runs than it has.
// Alike is such a loop whose commits have as many changes as those of the engines had, so that what
// is left between the two is the work of the engines.
func processes(ctx context.Context, t *target, n size) ([]result, error) {
	of := n.crowds.Of
	rates, tails := make([][]pair, len(of)), make([][]pair, len(of))
	batches, hands, alikes := make([][]float64, len(of)), make([][]pair, len(of)), make([][]pair, len(of))
	// Of a step, of the engines and alike.
	costs, costsAlike, statements, statementsAlike := make([][]float64, len(of)), make([][]float64, len(of)), make([][]float64, len(of)), make([][]float64, len(of))
	for range n.crowds.Rounds {
		var rate, tail, alike []float64
		for i, k := range of {
			address, err := t.create(ctx)
			if err != nil {
				return nil, err
			}
			o := orders{Role: "processes", Store: t.name, Mode: t.mode, Address: address, Name: "p", Runs: sharedRuns / k, Window: n.crowds.Window}
			all, err := shared(ctx, o, k)
			if err != nil {
				return nil, fmt.Errorf("%d processes: %w", k, err)
			}
			o.Role, o.Name = "processes by hand", "h"
			hand, err := shared(ctx, o, k)
			if err != nil {
				return nil, fmt.Errorf("%d processes by hand: %w", k, err)
			}
			batch := float64(all.Steps) / float64(max(all.Commits, 1))
			o.Role, o.Name, o.Batch = "processes alike", "a", max(1, int(math.Round(batch*fanChanges/fanSteps)))
			same, err := shared(ctx, o, k)
			if err != nil {
				return nil, fmt.Errorf("%d processes alike: %w", k, err)
			}
			rate = append(rate, float64(all.Steps)/n.crowds.Window.Seconds())
			tail = append(tail, p99(all.Micros))
			rates[i] = append(rates[i], pair{rate[0], rate[i]})
			hands[i] = append(hands[i], pair{rate[0], float64(hand.Steps) / n.crowds.Window.Seconds()})
			tails[i] = append(tails[i], pair{tail[0], tail[i]})
			alike = append(alike, float64(same.Steps)/n.crowds.Window.Seconds())
			alikes[i] = append(alikes[i], pair{alike[0], alike[i]})
			batches[i] = append(batches[i], batch)
			costs[i], costsAlike[i] = append(costs[i], all.perStep(micros(all.CPU))), append(costsAlike[i], same.perStep(micros(same.CPU)))
			statements[i] = append(statements[i], all.perStep(float64(all.Statements)))
			statementsAlike[i] = append(statementsAlike[i], same.perStep(float64(same.Statements)))
		}
	}
	var results []result
	for i, k := range of {
		name := fmt.Sprintf("PROCESSES %d", k)
		results = append(results,
			pairedResult(name, "steps/s", true, rates[i]),
			pairedResult(name+" p99", "us/step", false, tails[i]),
			plainResult(name+" batch", "steps/commit", batches[i]),
			pairedResult(name+" by hand", "steps/s", true, hands[i]),
			pairedResult(name+" alike", "steps/s", true, alikes[i]),
			plainResult(name+" statements", "statements/step", statements[i]),
			plainResult(name+" statements alike", "statements/step", statementsAlike[i]))
		if slices.Max(costs[i]) > 0 {
			results = append(results, plainResult(name+" CPU", "us/step", costs[i]), plainResult(name+" CPU alike", "us/step", costsAlike[i]))
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

// shared has so many processes carry out orders. Their names begin with that of the orders, and so
// do the ids of their runs.
func shared(ctx context.Context, o orders, k int) (all share, err error) {
	s, err := connect(o.Store, o.Mode, o.Address) // creates the schema
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
		one := o
		one.Name = fmt.Sprintf("%s%d", o.Name, i)
		c, err := begin(ctx, one)
		if err != nil {
			return all, err
		}
		children = append(children, c)
	}
	if err := untilLive(ctx, s, children, others); err != nil {
		return all, err
	}
	at := time.Now().Add(min(o.Window, time.Second)).UnixNano()
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
		all.Statements += one.Statements
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
		before := spending(s)
		if err := pause(ctx, time.Until(to)); err != nil {
			return err
		}
		all.since(before, s)
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
