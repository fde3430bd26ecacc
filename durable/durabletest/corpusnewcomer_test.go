package durabletest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

// What people write in their first week, with the Go they know.

// group is the errgroup.Group that everybody has.
type group struct {
	wg   sync.WaitGroup
	once sync.Once
	err  error
}

func (g *group) Go(f func() error) {
	g.wg.Go(func() {
		if err := f(); err != nil {
			g.once.Do(func() { g.err = err })
		}
	})
}

func (g *group) Wait() error { g.wg.Wait(); return g.err }

// memo is a cache as one writes it with generics.
type memo[K comparable, V any] struct{ known map[K]V }

func (m *memo[K, V]) get(ctx context.Context, name string, key K, fetch func(context.Context) (V, error)) (V, error) {
	if v, ok := m.known[key]; ok {
		return v, nil
	}
	v, err := durable.Step(ctx, name, fetch)
	if err == nil {
		m.known[key] = v
	}
	return v, err
}

var theMemo = &memo[string, int]{known: map[string]int{}}

// shop has state that its methods use as bodies.
type shop struct{ total, orders int }

func (s *shop) add(context.Context) (int, error) { s.total += 7; return 7, nil }

func (s *shop) count(context.Context) error { s.orders++; return nil }

// stamp embeds a type that encodes itself, and so all of it.
type stamp struct {
	time.Time
	By string
}

type inner struct{ N int }

// wrapper embeds what a decoder cannot make.
type wrapper struct{ *inner }

// berlin is two hours ahead all year, for this test.
var berlin = time.FixedZone("Berlin", 2*60*60)

var newcomerWrong = []wrong{
	{name: "an errgroup around steps", fn: func(ctx context.Context, in int) (string, error) {
		var g group
		for i := range 3 {
			g.Go(func() error {
				return durable.Do(ctx, fmt.Sprint("part", i), func(context.Context) error { time.Sleep(time.Second); return nil })
			})
		}
		return "", g.Wait()
	}, says: []string{"is under way in the same scope", "durable.Go", "corpusnewcomer_test.go"}},
	{name: "a generic cache around steps", fn: func(ctx context.Context, in int) (string, error) {
		rate, err := theMemo.get(ctx, "fetch rate", "EUR", func(context.Context) (int, error) { return in, nil })
		if err != nil {
			return "", err
		}
		_, err = step(ctx, "convert", rate)
		return "", err
	}, says: []string{"fetch rate", "package variable"}},
	{name: "a method that adds to a field, in the output", fn: func(ctx context.Context, in int) (string, error) {
		s := &shop{}
		if _, err := durable.Step(ctx, "add", s.add); err != nil {
			return "", err
		}
		return fmt.Sprint(s.total), nil
	}, says: []string{`"7"`, `"0"`, "return it from the step"}},
	{name: "a method that counts, and the count ends a loop", fn: func(ctx context.Context, in int) (string, error) {
		s := &shop{}
		for s.orders < 3 {
			if err := durable.Do(ctx, "order", s.count); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"order", "return it from the step"}},
	{name: "the hour in another time zone picks the step", fn: func(ctx context.Context, in int) (string, error) {
		name := "during the day"
		if time.Now().In(berlin).Hour() < 8 {
			name = "in the night"
		}
		_, err := step(ctx, name, in)
		return "", err
	}, says: []string{"in the night", "durable.Now"}},
	{name: "the branches of a Group in the order of maps.Keys", fn: func(ctx context.Context, in int) (string, error) {
		stock := map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8}
		var all []*durable.Future[int]
		for _, k := range slices.Collect(maps.Keys(stock)) {
			all = append(all, durable.Go(ctx, k, func(ctx context.Context) (int, error) { return step(ctx, "count", stock[k]) }))
		}
		for _, f := range all {
			if _, err := f.Wait(ctx); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"sort the keys"}},
	{name: "an int that is looked for behind any", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Step(ctx, "read", func(context.Context) (map[string]any, error) { return map[string]any{"n": in}, nil })
		if err != nil {
			return "", err
		}
		return fmt.Sprint(v["n"].(int)), nil
	}, says: []string{"panic", "float64, not int", "corpusnewcomer_test.go"}},
	{name: "an embedded time hides the other fields", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Step(ctx, "sign", func(context.Context) (stamp, error) { return stamp{time.Now(), "Ann"}, nil })
		return v.By, err
	}, o: []durabletest.Option{durabletest.Want("Ann")}, says: []string{"is to complete with Ann", `completed with ""`}},
	{name: "an embedded pointer that cannot be decoded", fn: func(ctx context.Context, in int) (string, error) {
		v, err := durable.Step(ctx, "wrap", func(context.Context) (wrapper, error) { return wrapper{&inner{in}}, nil })
		if err != nil {
			return "", err
		}
		return fmt.Sprint(v.N), nil
	}, says: []string{"embedded pointer", "wrap"}},
	{name: "a select on two futures", fn: func(ctx context.Context, in int) (string, error) {
		done := make(chan string, 2)
		for i, name := range []string{"slow", "fast"} {
			f := durable.Go(ctx, name, func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Duration(2-i)*time.Minute) })
			go func() { _, _ = f.Wait(ctx); done <- name }()
		}
		select {
		case name := <-done:
			_, err := step(ctx, name, in)
			return "", err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, says: []string{"durable."}},
	{name: "a deferred refund outside of a step", fn: func(ctx context.Context, in int) (_ string, err error) {
		done := false
		defer func() {
			if !done {
				theBank.book("") // the refund
			}
		}()
		if err := keyed(ctx); err != nil {
			return "", err
		}
		if _, err := step(ctx, "ship", in); err != nil {
			return "", err
		}
		done = true
		return "", nil
	}, o: withBank, says: []string{"another world", "deferred"}},
	{name: "a wait with a timeout of context", fn: func(ctx context.Context, in int) (string, error) {
		short, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		_, err := durable.Await[string](short, "approval")
		if errors.Is(err, context.DeadlineExceeded) {
			_, err = step(ctx, "remind", in)
			return "reminded", err
		}
		return "", err
	}, says: []string{"durable.Timeout"}},
}

// sumOf adds up what a step of any type returns.
func sumOf[T any](ctx context.Context, name string, items []T, of func(T) int) (int, error) {
	sum := 0
	for i, v := range items {
		n, err := durable.Step(ctx, fmt.Sprint(name, i), func(context.Context) (int, error) { return of(v), nil })
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

type address struct{ Street, Town string }

type customer struct {
	address
	Name string
	Paid json.Number
}

// cashier has dependencies, and bodies that are its methods.
type cashier struct{ bank *bank }

func (c cashier) book(ctx context.Context) (int, error) {
	return c.bank.book(durable.IdempotencyKey(ctx)), nil
}

var newcomerRight = []right{
	{name: "a generic function of steps", fn: func(ctx context.Context, in int) (string, error) {
		n, err := sumOf(ctx, "length", []string{"a", "bb", "ccc"}, func(s string) int { return len(s) })
		return fmt.Sprint(n), err
	}, o: []durabletest.Option{durabletest.Want("6")}},
	{name: "an errgroup in a body", fn: func(ctx context.Context, in int) (string, error) {
		n, err := durable.Step(ctx, "download", func(ctx context.Context) (int, error) {
			var g group
			parts := make([]int, 3)
			for i := range parts {
				g.Go(func() error { time.Sleep(time.Second); parts[i] = i; return nil })
			}
			err := g.Wait()
			return len(parts), err
		})
		return fmt.Sprint(n), err
	}, o: []durabletest.Option{durabletest.Want("3")}},
	{name: "a timeout of context in a body", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Retry(ctx, "call", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (int, error) {
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if durable.Attempt(ctx).Number == 1 {
				<-short.Done()
				return 0, short.Err()
			}
			return in, nil
		})
		return "", err
	}},
	{name: "a timeout of context around a step, which is never reached", fn: func(ctx context.Context, in int) (string, error) {
		long, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		v, err := slow(long, "call", time.Second)
		return fmt.Sprint(v), err
	}},
	{name: "methods with dependencies as bodies", fn: func(ctx context.Context, in int) (string, error) {
		_, err := durable.Step(ctx, "book", cashier{theBank}.book)
		return "", err
	}, o: withBank},
	{name: "the hour by durable.Now in another time zone", fn: func(ctx context.Context, in int) (string, error) {
		name := "during the day"
		if durable.Now(ctx).In(berlin).Hour() < 8 {
			name = "in the night"
		}
		_, err := step(ctx, name, in)
		return name, err
	}},
	{name: "a time in a zone, through a step", fn: func(ctx context.Context, in int) (string, error) {
		at, err := durable.Step(ctx, "opens", func(context.Context) (time.Time, error) { return time.Date(2030, 1, 2, 3, 4, 5, 6, berlin), nil })
		return at.Format(time.RFC3339Nano), err
	}, o: []durabletest.Option{durabletest.Want("2030-01-02T03:04:05.000000006+02:00")}},
	{name: "embedded types and json.Number in a result", fn: func(ctx context.Context, in int) (string, error) {
		c, err := durable.Step(ctx, "load", func(context.Context) (customer, error) {
			return customer{address{"Main Street", "Springfield"}, "Ann", json.Number("12345678901234567890.5")}, nil
		})
		return fmt.Sprint(c.Street, c.Town, c.Name, c.Paid), err
	}, o: []durabletest.Option{durabletest.Want("Main Street" + "Springfield" + "Ann" + "12345678901234567890.5")}},
	{name: "First instead of a select", fn: func(ctx context.Context, in int) (string, error) {
		fast := durable.Go(ctx, "fast", func(ctx context.Context) (string, error) { return "fast", durable.Sleep(ctx, time.Minute) })
		never := durable.Go(ctx, "slow", func(ctx context.Context) (string, error) { return "slow", durable.Sleep(ctx, time.Hour) })
		_, name, err := durable.First(ctx, "select", fast, never)
		if err != nil {
			return "", err
		}
		_, err = step(ctx, name, in)
		return name, err
	}, o: []durabletest.Option{durabletest.Want("fast")}},
	{name: "closures of a loop as branches", fn: func(ctx context.Context, in int) (string, error) {
		var all []*durable.Future[string]
		for i, name := range []string{"a", "b", "c"} {
			all = append(all, durable.Go(ctx, name, func(ctx context.Context) (string, error) {
				return durable.Step(ctx, "s", func(context.Context) (string, error) { return strings.Repeat(name, i+1), nil })
			}))
		}
		out := ""
		for _, f := range all {
			s, err := f.Wait(ctx)
			if err != nil {
				return "", err
			}
			out += s
		}
		return out, nil
	}, o: []durabletest.Option{durabletest.Want("abbccc")}},
	{name: "a map that is iterated in a body", fn: func(ctx context.Context, in int) (string, error) {
		n, err := durable.Step(ctx, "sum", func(context.Context) (int, error) {
			sum := 0
			for _, v := range map[string]int{"a": 1, "b": 2, "c": 3} {
				sum += v
			}
			return sum, nil
		})
		return fmt.Sprint(n), err
	}, o: []durabletest.Option{durabletest.Want("6")}},
	{name: "compensations registered in a loop", fn: func(ctx context.Context, in int) (string, error) {
		for i := range 3 {
			if err := durable.Compensate(ctx, fmt.Sprint("undo", i), func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			if _, err := step(ctx, fmt.Sprint("do", i), i); err != nil {
				return "", err
			}
		}
		return "", durable.Permanent(errRefused)
	}, o: []durabletest.Option{durabletest.Fails(errRefused)}},
}
