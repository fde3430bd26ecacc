package durabletest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

type right struct {
	name string
	fn   workflow
	o    []durabletest.Option
}

// slow is a step that takes that long.
func slow(ctx context.Context, name string, d time.Duration) (int, error) {
	return durable.Step(ctx, name, func(ctx context.Context) (int, error) {
		select {
		case <-time.After(d):
			return 1, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

func keyed(ctx context.Context) error {
	return durable.Do(ctx, "book", func(ctx context.Context) error { theBank.book(durable.IdempotencyKey(ctx)); return nil })
}

var corpusRight = []right{
	{name: "nothing at all", fn: func(context.Context, int) (string, error) { return "done", nil }},
	{name: "steps one after the other", fn: func(ctx context.Context, in int) (string, error) {
		sum := 0
		for i := range 5 {
			v, err := step(ctx, "s", i)
			if err != nil {
				return "", err
			}
			sum += v
		}
		return fmt.Sprint(sum), nil
	}, o: []durabletest.Option{durabletest.Want("10")}},
	{name: "a race of equals", fn: func(ctx context.Context, in int) (string, error) {
		branch := func(name string) *durable.Future[int] {
			return durable.Go(ctx, name, func(ctx context.Context) (int, error) { return slow(ctx, "s", time.Second) })
		}
		i, _, err := durable.First(ctx, "first", branch("a"), branch("b"), branch("c"))
		if err != nil {
			return "", err
		}
		_, err = step(ctx, fmt.Sprint("winner", i), in)
		return fmt.Sprint(i), err
	}},
	{name: "a race of a step and a timer", fn: func(ctx context.Context, in int) (string, error) {
		a := durable.Go(ctx, "work", func(ctx context.Context) (int, error) { return slow(ctx, "s", time.Minute) })
		b := durable.Go(ctx, "timer", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, 90*time.Second) })
		i, _, err := durable.First(ctx, "first", a, b)
		return fmt.Sprint(i), err
	}},
	{name: "Once without Reconcile", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Once(ctx, "pay", func(context.Context) (int, error) { return in, nil })
		if errors.Is(err, durable.ErrUnknownOutcome) {
			_, err := step(ctx, "ask a person", in)
			return "unknown", err
		}
		return "paid", err
	}},
	{name: "durable.Rand picks the step", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, fmt.Sprint("s", durable.Rand(ctx).IntN(1000)), in)
		return "", err
	}},
	{name: "durable.Rand in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return fmt.Sprint(durable.Rand(ctx).Int64()), err
	}},
	{name: "durable.NewID picks the step and is the output", fn: func(ctx context.Context, in int) (string, error) {
		id := fmt.Sprint(durable.NewID(ctx))
		_, err := step(ctx, "s"+id, in)
		return id, err
	}},
	{name: "durable.Now in the output", fn: func(ctx context.Context, in int) (string, error) {
		_, err := slow(ctx, "a", time.Second)
		return durable.Now(ctx).String(), err
	}},
	{name: "durable.Now picks the step", fn: func(ctx context.Context, in int) (string, error) {
		began := durable.Now(ctx)
		if _, err := slow(ctx, "a", 3*time.Second); err != nil {
			return "", err
		}
		_, err := step(ctx, fmt.Sprint("after ", durable.Now(ctx).Sub(began).Milliseconds()), in)
		return "", err
	}},
	{name: "elapsed durable.Now over retries", fn: func(ctx context.Context, in int) (string, error) {
		began := durable.Now(ctx)
		_, err := durable.Retry(ctx, "flaky", durable.Policy{MaxAttempts: 4, Initial: time.Second}, func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			if durable.Attempt(ctx).Number < 3 {
				return 0, errors.New("busy")
			}
			return in, nil
		})
		return durable.Now(ctx).Sub(began).String(), err
	}},
	{name: "a body that returns the time", fn: func(ctx context.Context, in int) (string, error) {
		at, err := durable.Step(ctx, "clock", func(context.Context) (time.Time, error) { return time.Now(), nil })
		return at.String(), err
	}},
	{name: "a body that returns a random text, which picks the step", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Step(ctx, "dice", func(context.Context) (string, error) { return rand.Text(), nil })
		if err != nil {
			return "", err
		}
		_, err = step(ctx, "s"+v[:4], in)
		return v, err
	}},
	{name: "a deadline", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		return "", durable.Sleep(ctx, 2*time.Hour)
	}, o: []durabletest.Option{durabletest.Start(durable.Deadline(time.Hour)), durabletest.Fails(durable.ErrDeadline)}},
	{name: "a deadline that is far", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		return "in time", durable.Sleep(ctx, time.Hour)
	}, o: []durabletest.Option{durabletest.Start(durable.Deadline(100 * time.Hour))}},
	{name: "a saga that is undone", fn: func(ctx context.Context, in int) (string, error) {
		if err := durable.Compensate(ctx, "refund", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		if err := keyed(ctx); err != nil {
			return "", err
		}
		return "", durable.Permanent(errRefused)
	}, o: append(withBank[:2:2], durabletest.Fails(errRefused))},
	{name: "an effect with a key", fn: func(ctx context.Context, in int) (string, error) { return "", keyed(ctx) }, o: withBank},
	{name: "effects with keys in the items of a Map", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Map(ctx, "m", []int{1, 2, 3}, durable.MapOptions{Concurrency: 3}, func(ctx context.Context, n int) (int, error) { return n, keyed(ctx) })
		return "", err
	}, o: withBank},
	{name: "a Map with dead letters", fn: func(ctx context.Context, in int) (string, error) {
		out, err := durable.Map(ctx, "m", []int{1, 2, 3, 4}, durable.MapOptions{Concurrency: 2, KeepGoing: true}, func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) {
				if n == 3 {
					return 0, durable.Permanent(errors.New("bad"))
				}
				return n, nil
			})
		})
		var failed *durable.MapError
		if !errors.As(err, &failed) {
			return "", err
		}
		return fmt.Sprint(out), nil
	}},
	{name: "retries with jitter", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Retry(ctx, "flaky", durable.Policy{MaxAttempts: 5, Initial: time.Second, Max: time.Minute}, func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx).Number < 4 {
				return 0, errors.New("busy")
			}
			return in, nil
		})
		return fmt.Sprint(v), err
	}},
	{name: "a step that fails and is handled", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 0, errors.New("no") })
		if err == nil {
			return "", errors.New("it has not failed")
		}
		_, err = step(ctx, "instead", in)
		return "instead", err
	}},
	{name: "months of sleep", fn: func(ctx context.Context, in int) (string, error) {
		for range 3 {
			if err := durable.Sleep(ctx, 60*24*time.Hour); err != nil {
				return "", err
			}
		}
		return "rested", nil
	}},
	{name: "a wait that times out", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Await[string](ctx, "approval", durable.Timeout(time.Hour))
		if errors.Is(err, durable.ErrTimeout) {
			return "nobody", nil
		}
		return "somebody", err
	}},
	{name: "a signal that is there", fn: func(ctx context.Context, in int) (string, error) { return durable.Await[string](ctx, "go") },
		o: []durabletest.Option{durabletest.Start(durable.WithSignal("go", "on")), durabletest.Want("on")}},
	{name: "a signal from beside", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		return durable.Await[string](ctx, "go")
	}, o: []durabletest.Option{durabletest.Beside(func(ctx context.Context, id string) { _ = durable.Signal(ctx, id, "go", "on", durable.SignalID("1")) })}},
	{name: "a child", fn: func(ctx context.Context, in int) (string, error) {
		n, err := corpusChild.Run(ctx, durable.AutoID, in)
		return fmt.Sprint(n), err
	}, o: []durabletest.Option{durabletest.Engine(durable.Options{Workflows: []durable.Definition{corpusChild}}), durabletest.Want("14")}},
	{name: "two children at once", fn: func(ctx context.Context, in int) (string, error) {
		a, err := corpusChild.Start(ctx, durable.AutoID, 1)
		if err != nil {
			return "", err
		}
		b, err := corpusChild.Start(ctx, durable.AutoID, 2)
		if err != nil {
			return "", err
		}
		x, err := a.Wait(ctx)
		if err != nil {
			return "", err
		}
		y, err := b.Wait(ctx)
		return fmt.Sprint(x, y), err
	}, o: []durabletest.Option{durabletest.Engine(durable.Options{Workflows: []durable.Definition{corpusChild}})}},
	{name: "branches that join", fn: func(ctx context.Context, in int) (string, error) {
		var all []*durable.Future[int]
		for i := range 4 {
			all = append(all, durable.Go(ctx, fmt.Sprint("b", i), func(ctx context.Context) (int, error) { return slow(ctx, "s", time.Duration(4-i)*time.Second) }))
		}
		sum := 0
		for _, f := range all {
			v, err := f.Wait(ctx)
			if err != nil {
				return "", err
			}
			sum += v
		}
		return fmt.Sprint(sum), nil
	}},
	{name: "a map with its keys sorted", fn: func(ctx context.Context, in int) (string, error) {
		m := map[string]int{"a": 1, "b": 2, "c": 3, "d": 4}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if _, err := step(ctx, k, m[k]); err != nil {
				return "", err
			}
		}
		return "", nil
	}},
	{name: "a closure that the function sets", fn: func(ctx context.Context, in int) (string, error) {
		v, err := step(ctx, "a", in)
		if err != nil {
			return "", err
		}
		w, err := durable.Step(ctx, "b", func(context.Context) (int, error) { return v + 1, nil })
		return fmt.Sprint(w), err
	}, o: []durabletest.Option{durabletest.Want("8")}},
	{name: "it continues with a new input", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		if in < 9 {
			return "", durable.Continue(ctx, in+1)
		}
		return fmt.Sprint(in), nil
	}},
	{name: "progress that a restart takes up", fn: func(ctx context.Context, in int) (string, error) {
		n, err := durable.Step(ctx, "long", func(ctx context.Context) (int, error) {
			n, _, err := durable.Progress[int](ctx)
			for err == nil && n < 3 {
				n++
				err = durable.SaveProgress(ctx, n)
			}
			return n, err
		})
		return fmt.Sprint(n), err
	}, o: []durabletest.Option{durabletest.Want("3")}},
	{name: "notes, relaxed steps and inputs", fn: func(ctx context.Context, in int) (string, error) {
		for range 3 {
			if _, err := durable.Step(ctx, "cheap", func(ctx context.Context) (int, error) { durable.Note(ctx, "k", "v"); return in, nil }, durable.Relaxed(), durable.WithInput(in)); err != nil {
				return "", err
			}
		}
		return "", nil
	}},
	{name: "a body whose goroutines end with it", fn: func(ctx context.Context, in int) (string, error) {
		return "", do(ctx, "a", func() { fan(3, func(i int) { time.Sleep(time.Duration(i) * time.Second) }) })
	}},
	{name: "clean-up after a cancel", fn: func(ctx context.Context, in int) (string, error) {
		if _, err := step(ctx, "a", in); err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		if _, err := step(ctx, "b", in); err != nil {
			return "", err
		}
		return "", durable.Sleep(ctx, time.Hour)
	}},
	{name: "a step named as one that varies", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Step(ctx, "worker", func(context.Context) (int64, error) { return counter.Add(1) / 40, nil })
		return fmt.Sprint(v), err
	}, o: []durabletest.Option{durabletest.Varies("worker")}},
}

func TestRightWorkflowsRaiseNoAlarm(t *testing.T) {
	require.GreaterOrEqual(t, len(corpusRight), 30)
	for _, r := range slices.Concat(corpusRight, newcomerRight) {
		t.Run(r.name, func(t *testing.T) {
			theBank.reset()
			durabletest.Survives(t, define(r.fn), 7, append(r.o[:len(r.o):len(r.o)], durabletest.SameProcess())...)
		})
	}
}
