package durable_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func ExamplePublish() {
	wf := durable.Define("import", func(ctx context.Context, files int) (int, error) {
		for i := range files {
			// ... a step that reads file i
			if err := durable.Publish(ctx, "progress", fmt.Sprintf("%d of %d", i+1, files)); err != nil {
				return i, err
			}
		}
		return files, nil
	})
	ctx, done := exampleEngine(wf)
	defer done()

	if _, err := wf.Start(ctx, "import-1", 3); err != nil {
		fmt.Println(err)
		return
	}
	last, err := durable.WaitPublished(ctx, "import-1", "progress", func(s string) bool { return s == "3 of 3" })
	fmt.Println(last, err)
	v, ok, err := durable.Published[string](ctx, "import-1", "progress")
	fmt.Println(v, ok, err)
	// Output:
	// 3 of 3 <nil>
	// 3 of 3 true <nil>
}

func ExampleRequest() {
	wf := durable.Define("account", func(ctx context.Context, balance int) (int, error) {
		for balance > 0 {
			q, err := durable.AwaitRequest[int](ctx, "withdraw")
			if err != nil {
				return balance, err
			}
			if q.Value > balance {
				err = q.Refuse(ctx, errors.New("not enough money"))
			} else {
				balance -= q.Value
				err = q.Reply(ctx, balance)
			}
			if err != nil {
				return balance, err
			}
		}
		return balance, nil
	})
	ctx, done := exampleEngine(wf)
	defer done()

	if _, err := wf.Start(ctx, "account-7", 100); err != nil {
		fmt.Println(err)
		return
	}
	for _, amount := range []int{60, 60, 40} {
		left, err := durable.Request[int](ctx, "account-7", "withdraw", amount)
		fmt.Println(left, err)
	}
	// Output:
	// 40 <nil>
	// 0 run account-7 refused request "withdraw": not enough money
	// 0 <nil>
}

func ExampleSetAttributes() {
	wf := durable.Define("order", func(ctx context.Context, _ string) (string, error) {
		return "shipped", durable.SetAttributes(ctx, map[string]string{"stage": "shipped"})
	})
	ctx, done := exampleEngine(wf)
	defer done()

	fmt.Println(wf.Run(ctx, "order-1", "book", durable.Attributes(map[string]string{"customer": "Ada", "stage": "new"})))
	// Output: shipped <nil>
}

func ExampleRetryFailed() {
	broken := true
	wf := durable.Define("send", func(ctx context.Context, to []string) (string, error) {
		send := func(ctx context.Context, who string) (string, error) {
			return durable.Step(ctx, "post", func(context.Context) (string, error) {
				if who == "Bob" && broken {
					return "", errors.New("no such address")
				}
				return "sent to " + who, nil
			})
		}
		o := durable.MapOptions{KeepGoing: true}
		out, err := durable.Map(ctx, "letters", to, o, send)
		fmt.Println(err)
		broken = false // somebody has mended the address
		out, err = durable.RetryFailed(ctx, "again", to, out, err, o, send)
		return fmt.Sprint(out), err
	})
	ctx, done := exampleEngine(wf)
	defer done()

	fmt.Println(wf.Run(ctx, "send-1", []string{"Ada", "Bob"}))
	// Output:
	// map letters: 1 item failed, the first is letters[1]: step letters[1]/post: no such address
	// [sent to Ada sent to Bob] <nil>
}

func ExampleOptions_around() {
	wf := durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, "compose", func(context.Context) (string, error) { return "hello " + name, nil })
	})
	logged := func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
		err := next(ctx)
		fmt.Printf("%s %s attempt %d: %v\n", a.RunID, a.Key, a.Number, err)
		return err
	}
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{wf}, Logger: quiet,
		Around: []func(context.Context, durable.AttemptInfo, func(context.Context) error) error{logged},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()
	fmt.Println(wf.Run(durable.NewContext(context.Background(), eng), "greet-1", "Ada"))
	// Output:
	// greet-1 compose attempt 1: <nil>
	// hello Ada <nil>
}
