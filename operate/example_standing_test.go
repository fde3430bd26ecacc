package operate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func ExampleOperator_Standings() {
	checkout := durable.Define("checkout", func(ctx context.Context, _ string) (string, error) {
		if err := durable.Do(ctx, "reserve", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: 1}, func(ctx context.Context) (string, error) {
			if durable.Attempt(ctx).Number == 1 {
				return "", errors.New("bank: 503")
			}
			return "pay-1", nil
		})
	}, durable.Steps("reserve", "charge"))
	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{checkout}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()
	ctx = durable.NewContext(ctx, eng)
	run, err := checkout.Start(ctx, "order-1", "teapot")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := run.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for s, err := range operate.On(eng).Standings(ctx, "order-1") { // it has ended: one, and that is all
		fmt.Printf("%s: %d of %d, resumed %d times, %v\n", s.Status, s.Done, s.Total, s.Resumes, err)
	}

	var t operate.Tracker
	for ev, err := range eng.History(ctx, "order-1") {
		if err == nil {
			err = t.Add(ev)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if c := t.Standing().Current; c.Failed != "" {
			fmt.Printf("%s, attempt %d of %d, after %q\n", c.Key, c.Attempt, c.Max, c.Failed)
		}
	}
	// Output:
	// completed: 2 of 2, resumed 0 times, <nil>
	// charge, attempt 2 of 3, after "bank: 503"
}
