package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// queues say how many runs go through a queue.
type queues struct {
	Runs   int // of a round
	Single int // that are enqueued one at a time
	Rounds int
}

const (
	queueName = "work"
	// queueMax is the global limit of the limited rounds.
	queueMax = 64
	// queueWorkers is how many processes take runs from the queue.
	queueWorkers = 2
)

// queued is the workflow of the runs that go through the queue.
var queued = durable.Define("queued", func(ctx context.Context, _ int) (int, error) { return steps(ctx, 1) })

// pile yields the ids and inputs of the runs of a round.
func pile(round string, n int) func(yield func(string, int) bool) {
	return func(yield func(string, int) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("%s-%d", round, i), i) {
				return
			}
		}
	}
}

// enqueue measures how fast runs come to stand in a queue that nobody serves yet: many in
// one call, and one at a time.
func enqueue(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var bulk, singles []float64
	// The engine has the code, and serves none of the queues.
	err = withOptions(ctx, s, durable.Options{Workflows: []durable.Definition{queued}, ServeQueues: []string{"another"}}, func(ctx context.Context, _ *durable.Engine) error {
		for round := range n.queues.Rounds {
			began := time.Now()
			all, err := queued.StartAll(ctx, pile(fmt.Sprint("bulk-", round), n.queues.Runs), durable.OnQueue(queueName))
			if err != nil || len(all.Refused) > 0 {
				return errors.Join(err, fmt.Errorf("%d of %d runs were refused", len(all.Refused), n.queues.Runs))
			}
			bulk = append(bulk, float64(n.queues.Runs)/time.Since(began).Seconds())
			began = time.Now()
			for i := range n.queues.Single {
				if _, err := queued.Enqueue(ctx, fmt.Sprintf("single-%d-%d", round, i), i, durable.OnQueue(queueName)); err != nil {
					return err
				}
			}
			singles = append(singles, micros(time.Since(began))/float64(n.queues.Single))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []result{plainResult("ENQUEUE bulk", "runs/s", bulk), plainResult("ENQUEUE single", "us/run", singles)}, nil
}

// through measures how fast the runs of a queue are executed by two processes, from the
// moment at which they may begin until the last has ended: without a global limit, and with
// one.
func through(ctx context.Context, t *target, n size) ([]result, error) {
	var results []result
	for _, limit := range []struct {
		name string
		max  int
	}{{"QUEUE", 0}, {"QUEUE limited", queueMax}} {
		var rates []float64
		for range n.queues.Rounds {
			rate, err := throughOnce(ctx, t, n.queues.Runs, limit.max)
			if err != nil {
				return nil, err
			}
			rates = append(rates, rate)
		}
		results = append(results, plainResult(limit.name, "runs/s", rates))
	}
	return results, nil
}

// throughOnce fills a queue of a new database, which is paused until its workers are there.
func throughOnce(ctx context.Context, t *target, runs, limit int) (rate float64, err error) {
	address, err := t.create(ctx)
	if err != nil {
		return 0, err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	q := store.Queue{Name: queueName, Max: limit, Paused: true}
	line := store.CapabilitiesOf(s).Queues
	if err := line.PutQueue(ctx, q); err != nil {
		return 0, err
	}
	err = withOptions(ctx, s, durable.Options{Workflows: []durable.Definition{queued}, ServeQueues: []string{"another"}}, func(ctx context.Context, _ *durable.Engine) error {
		_, err := queued.StartAll(ctx, pile("run", runs), durable.OnQueue(queueName))
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := t.settle(ctx, address); err != nil {
		return 0, err
	}
	var workers []*child
	for range queueWorkers {
		c, err := begin(ctx, orders{Role: "queue", Store: t.name, Mode: t.mode, Address: address})
		if err != nil {
			return 0, err
		}
		workers = append(workers, c)
		defer func() { err = errors.Join(err, c.end()) }()
	}
	if err := untilLive(ctx, s, workers, 0); err != nil {
		return 0, err
	}
	q.Paused, q.Revision = false, 1
	began := time.Now()
	if err := line.PutQueue(ctx, q); err != nil {
		return 0, err
	}
	err = until(ctx, func() (bool, error) {
		n, err := s.Count(ctx, store.Filter{Statuses: []store.Status{store.Completed}}, "")
		return n[""] == int64(runs), err
	})
	return float64(runs) / time.Since(began).Seconds(), err
}

// until asks from time to time until done is true: so seldom that the answers take little of what is
// measured.
func until(ctx context.Context, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// untilLive waits until each of the children has a live executor, and so many others have.
func untilLive(ctx context.Context, s store.Store, children []*child, others int) error {
	return until(ctx, func() (bool, error) {
		for _, c := range children {
			select {
			case <-c.ended:
				return false, c.err
			default:
			}
		}
		live, err := countLive(ctx, s)
		return live == others+len(children), err
	})
}

func countLive(ctx context.Context, s store.Store) (live int, err error) {
	executors, err := s.Executors(ctx)
	for _, x := range executors {
		if x.Live {
			live++
		}
	}
	return live, err
}

// queueChild executes the runs of the queue.
func queueChild(ctx context.Context, o orders, s store.Store, _ io.Writer) error {
	return withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		<-ctx.Done()
		return nil
	}, queued)
}
