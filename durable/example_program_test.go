package durable_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A whole program: it opens a store and an engine, continues what an earlier process left,
// and runs a workflow. A store that outlives the process comes from sqlite.Open("app.db")
// or postgres.Open(url).
func Example() {
	onboard := durable.Define("onboard", func(ctx context.Context, email string) (string, error) {
		account, err := durable.Step(ctx, "create account", func(context.Context) (string, error) {
			return "account of " + email, nil
		})
		if err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Millisecond); err != nil { // or a month: it survives restarts
			return "", err
		}
		return account, durable.Do(ctx, "send welcome", func(context.Context) error { return nil })
	})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	st := memory.Open()
	defer func() { _ = st.Close() }()
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{onboard}, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }() // on SIGTERM: steps in progress finish, runs can be continued
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(onboard.Run(ctx, "onboard-ada", "ada@example.com"))
	// Output: account of ada@example.com <nil>
}

func ExampleOpen() {
	greet := durable.Define("greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{greet},                    // whose runs this process executes
		Name:      "worker of the example",                        // in listings, for people
		Grace:     30 * time.Second,                               // how long Close waits for step bodies
		Retention: durable.Retention{KeepFor: 7 * 24 * time.Hour}, // ended runs are deleted after a week
		Queues:    []durable.Queue{{Name: "mail"}},                // declared here
		Logger:    quiet,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)
	fmt.Println(greet.Run(ctx, "greet-1", "Ada"))
	// Output: hello Ada <nil>
}

func ExampleSetDefault() {
	greet := durable.Define("greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: []durable.Definition{greet}, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()

	_, err = greet.Run(context.Background(), "greet-1", "Ada")
	fmt.Println(errors.Is(err, durable.ErrNoEngine))

	durable.SetDefault(eng)
	defer durable.SetDefault(nil)
	fmt.Println(greet.Run(context.Background(), "greet-1", "Ada"))
	// Output:
	// true
	// hello Ada <nil>
}

func ExampleEngine_Close() {
	wf := durable.Define("slow", func(ctx context.Context, _ int) (string, error) { return "", durable.Sleep(ctx, time.Hour) })
	st := memory.Open()
	open := func() (context.Context, *durable.Engine) {
		eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
		if err != nil {
			panic(err)
		}
		return durable.NewContext(context.Background(), eng), eng
	}
	ctx, eng := open()
	if _, err := wf.Start(ctx, "slow-1", 0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(eng.Close())

	// A closed engine starts nothing. The run is in the store, and goes on elsewhere.
	_, err := wf.Start(ctx, "slow-2", 0)
	fmt.Println(errors.Is(err, durable.ErrClosed))
	ctx, eng = open()
	defer func() { _ = eng.Close() }()
	_, err = durable.Recover(ctx)
	fmt.Println(err)
	info, err := eng.Get(ctx, "slow-1")
	fmt.Println(info.Status.Terminal(), err)
	// Output:
	// <nil>
	// true
	// <nil>
	// false <nil>
}

func ExampleWorkflow_Run() {
	add := durable.Define("add", func(_ context.Context, n []int) (int, error) {
		sum := 0
		for _, v := range n {
			sum += v
		}
		return sum, nil
	})
	ctx, done := exampleEngine(add)
	defer done()

	fmt.Println(add.Run(ctx, "add-1", []int{1, 2, 3}))
	fmt.Println(add.Run(ctx, "add-1", []int{1, 2, 3})) // the same run: its recorded result
	// Output:
	// 6 <nil>
	// 6 <nil>
}

// What became of a run is in the type of the error.
func ExampleWorkflow_Handle() {
	wf := durable.Define("order", func(ctx context.Context, item string) (string, error) { return "sent " + item, nil })
	ctx, done := exampleEngine(wf)
	defer done()
	if _, err := wf.Run(ctx, "order-1", "a book"); err != nil {
		fmt.Println(err)
		return
	}

	for _, id := range []string{"order-1", "order-2"} {
		run, err := wf.Handle(ctx, id)
		if err != nil {
			fmt.Println(err)
			continue
		}
		out, ended, err := run.Result(ctx)
		fmt.Println(out, ended, errors.Is(err, durable.ErrNotFound))
	}
	// Output:
	// sent a book true false
	//  false true
}

func ExampleRun_Wait() {
	wf := durable.Define("order", func(ctx context.Context, item string) (string, error) {
		switch item {
		case "nothing":
			return "", errors.New("there is no such item")
		case "later":
			return durable.Await[string](ctx, "go")
		}
		return "sent " + item, nil
	})
	ctx, done := exampleEngine(wf)
	defer done()

	for _, item := range []string{"book", "nothing"} {
		run, err := wf.Start(ctx, "order-"+item, item)
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := run.Wait(ctx)
		var ended *durable.RunError
		switch {
		case errors.As(err, &ended):
			fmt.Println(ended.Status, ended.Err)
		case errors.Is(err, durable.ErrInterrupted):
			fmt.Println("it stopped, and can be resumed")
		default:
			fmt.Println(out, err)
		}
	}
	// The end of the caller's context ends the wait, and not the run.
	run, err := wf.Start(ctx, "order-later", "later")
	if err != nil {
		fmt.Println(err)
		return
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = run.Wait(short)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// sent book <nil>
	// failed there is no such item
	// true
}

func exampleOpen(defs ...durable.Definition) *durable.Engine {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: defs, Logger: quiet})
	if err != nil {
		panic(err)
	}
	return eng
}

func ExampleEngine_Cancel() {
	wf := durable.Define("trip", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Compensate(ctx, "cancel the hotel", func(context.Context) error {
			fmt.Println("hotel cancelled")
			return nil
		}); err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "book the hotel", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return durable.Await[string](ctx, "passport")
	})
	eng := exampleOpen(wf)
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)

	run, err := wf.Start(ctx, "trip-1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for info, err := eng.Get(ctx, "trip-1"); err == nil && info.Status != store.Waiting; info, err = eng.Get(ctx, "trip-1") {
		time.Sleep(time.Millisecond)
	}
	if err := eng.Cancel(ctx, "trip-1", "the customer called"); err != nil {
		fmt.Println(err)
		return
	}
	_, err = run.Wait(ctx)
	fmt.Println(errors.Is(err, durable.ErrRunCancelled))
	// Output:
	// hotel cancelled
	// true
}

func ExampleEngine_List() {
	wf := durable.Define("order", func(context.Context, int) (int, error) { return 0, nil })
	eng := exampleOpen(wf)
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)
	for i := range 5 {
		if _, err := wf.Run(ctx, fmt.Sprint("order-", i), i, durable.Attributes(map[string]string{"region": "north"})); err != nil {
			fmt.Println(err)
			return
		}
	}

	f := store.Filter{Workflows: []string{"order"}, Attributes: map[string]string{"region": "north"}, OldestFirst: true, Limit: 2}
	for {
		page, err := eng.List(ctx, f)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range page.Runs {
			fmt.Println(r.ID, r.Status)
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	// Output:
	// order-0 completed
	// order-1 completed
	// order-2 completed
	// order-3 completed
	// order-4 completed
}
