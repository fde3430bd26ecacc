package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// quiet keeps the examples' output to what they print.
var quiet = slog.New(slog.DiscardHandler)

// shop holds what its workflows need, as any Go program does.
type shop struct{ prices map[string]int }

func (s *shop) checkout(ctx context.Context, item string) (string, error) {
	price, err := durable.Step(ctx, "price", func(context.Context) (int, error) {
		return s.prices[item], nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s for %d", item, price), nil
}

func ExampleDefine() {
	s := &shop{prices: map[string]int{"book": 12}}
	checkout := durable.Define("checkout", s.checkout)

	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{checkout}, Logger: quiet,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()

	fmt.Println(checkout.Run(durable.NewContext(ctx, eng), "order-1", "book"))
	// Output: book for 12 <nil>
}

func ExampleWorkflow_Start() {
	greet := durable.Define("greet", func(_ context.Context, name string) (string, error) {
		return "hello " + name, nil
	})
	ctx, done := exampleEngine(greet)
	defer done()

	run, err := greet.Start(ctx, "greet-1", "Ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Wait(ctx))

	// The same id and input: the same run, which is not executed again.
	run, _ = greet.Start(ctx, "greet-1", "Ada")
	fmt.Println(run.Wait(ctx))

	// The same id and another input is a mistake.
	_, err = greet.Start(ctx, "greet-1", "Bob")
	fmt.Println(errors.Is(err, durable.ErrConflict))
	// Output:
	// hello Ada <nil>
	// hello Ada <nil>
	// true
}

func ExampleStep() {
	wf := durable.Define("report", func(ctx context.Context, day string) (string, error) {
		rows, err := durable.Step(ctx, "query", func(context.Context) ([]int, error) {
			return []int{3, 4, 5}, nil // runs again only if the process dies here
		})
		if err != nil {
			return "", err
		}
		sum := 0
		for _, n := range rows {
			sum += n
		}
		err = durable.Do(ctx, "send", func(context.Context) error {
			fmt.Println("sending", sum)
			return nil
		})
		return fmt.Sprint(day, ": ", sum), err
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "report-1", "Monday"))
	// Output:
	// sending 12
	// Monday: 12 <nil>
}

func ExampleRetry() {
	wf := durable.Define("charge", func(ctx context.Context, cents int) (string, error) {
		policy := durable.Policy{MaxAttempts: 5, Initial: time.Millisecond}
		return durable.Retry(ctx, "charge", policy, func(ctx context.Context) (string, error) {
			if n := durable.Attempt(ctx).Number; n < 3 {
				return "", fmt.Errorf("bank is busy (%d)", n)
			}
			return fmt.Sprintf("charged %d", cents), nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "charge-1", 999))
	// Output: charged 999 <nil>
}

func ExampleSeek() {
	wf := durable.Define("write", func(ctx context.Context, want int) (string, error) {
		return durable.Seek(ctx, "draft", durable.Policy{Initial: time.Millisecond},
			func(ctx context.Context) (string, error) {
				text := "x"
				if before := durable.Attempt(ctx).Failures; len(before) > 0 {
					var last string
					if _, err := before[len(before)-1].Output(&last); err != nil {
						return "", err
					}
					text = last + "x" // go on where the last one was refused
				}
				return text, nil
			},
			func(text string) error {
				if len(text) < want {
					return errors.New("too short")
				}
				return nil
			})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "write-1", 3))
	// Output: xxx <nil>
}

func ExampleRecover() {
	data := memory.Open()
	processes, reached := 0, make(chan struct{})
	wf := durable.Define("nightly", func(ctx context.Context, _ int) (string, error) {
		_, err := durable.Step(ctx, "first", func(context.Context) (int, error) {
			fmt.Println("first")
			return 1, nil
		})
		if err != nil {
			return "", err
		}
		return durable.Step(ctx, "second", func(ctx context.Context) (string, error) {
			if processes == 1 {
				close(reached)
				<-ctx.Done() // the first process is stopped here
				return "", ctx.Err()
			}
			return "done", nil
		})
	})
	open := func() (context.Context, *durable.Engine) {
		processes++
		eng, err := durable.Open(context.Background(), data.Handle(), durable.Options{
			Workflows: []durable.Definition{wf}, Logger: quiet, Grace: -1,
		})
		if err != nil {
			panic(err)
		}
		return durable.NewContext(context.Background(), eng), eng
	}

	ctx, eng := open()
	if _, err := wf.Start(ctx, "night-1", 0); err != nil {
		panic(err)
	}
	<-reached
	_ = eng.Close()

	ctx, eng = open() // the program is started again
	defer func() { _ = eng.Close() }()
	report, err := durable.Recover(ctx)
	fmt.Println("resumed", report.Resumed, err)
	run, err := wf.Handle(ctx, "night-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output:
	// first
	// resumed [night-1] <nil>
	// done <nil>
}

func ExampleAttempt() {
	wf := durable.Define("flaky", func(ctx context.Context, _ int) (int, error) {
		return durable.Retry(ctx, "call", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			a := durable.Attempt(ctx)
			for _, f := range a.Failures {
				fmt.Printf("attempt %d of %d knows: %d %v, host %s\n", a.Number, a.Max, f.Attempt, f.Err, f.Notes["host"])
			}
			durable.Note(ctx, "host", fmt.Sprint("node-", a.Number))
			if a.Number < 2 {
				return 0, errors.New("timeout")
			}
			return 7, nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "flaky-1", 0))
	// Output:
	// attempt 2 of 5 knows: 1 timeout, host "node-1"
	// 7 <nil>
}

func ExampleIdempotencyKey() {
	charged := map[string]int{} // what a payment service keeps
	wf := durable.Define("pay", func(ctx context.Context, cents int) (int, error) {
		return durable.Retry(ctx, "charge", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			key := durable.IdempotencyKey(ctx)
			charged[key] = cents
			if durable.Attempt(ctx).Number == 1 {
				return 0, errors.New("the answer was lost")
			}
			return charged[key], nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "pay-1", 500))
	fmt.Println("charges:", len(charged))
	// Output:
	// 500 <nil>
	// charges: 1
}

func ExampleRelaxed() {
	wf := durable.Define("sum", func(ctx context.Context, n int) (int, error) {
		sum := 0
		for i := range n {
			square, err := durable.Step(ctx, "square", func(context.Context) (int, error) {
				return i * i, nil // cheap and without effect: no write of its own
			}, durable.Relaxed())
			if err != nil {
				return 0, err
			}
			sum += square
		}
		return sum, nil
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "sum-1", 10))
	// Output: 285 <nil>
}

func ExampleNewID() {
	wf := durable.Define("ids", func(ctx context.Context, _ int) (bool, error) {
		a, b := durable.NewID(ctx), durable.NewID(ctx) // the same two on every replay
		return a != b && len(a) == 36, nil
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "ids-1", 0))
	// Output: true <nil>
}

func ExamplePermanent() {
	wf := durable.Define("pay", func(ctx context.Context, _ int) (int, error) {
		return durable.Retry(ctx, "charge", durable.Policy{}, func(context.Context) (int, error) {
			return 0, durable.Permanent(errors.New("card expired"))
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	_, err := wf.Run(ctx, "pay-1", 0)
	fmt.Println(err)
	// Output: run pay-1 (pay) failed: step charge: attempt 1 of 5: card expired
}

// exampleEngine is what a program does once at its start.
func exampleEngine(defs ...durable.Definition) (ctx context.Context, done func()) {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: defs, Logger: quiet})
	if err != nil {
		panic(err)
	}
	return durable.NewContext(context.Background(), eng), func() { _ = eng.Close() }
}
