package durable_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// bake is a workflow of two steps that are declared, so that it can be said how far a run is.
var bake = durable.Define("bake", func(ctx context.Context, kind string) (string, error) {
	if err := durable.Do(ctx, "knead", func(context.Context) error { return nil }); err != nil {
		return "", err
	}
	return durable.Step(ctx, "oven", func(context.Context) (string, error) { return "a loaf of " + kind, nil })
}, durable.Steps("knead", "oven"))

// bakery opens an engine that bakes.
func bakery() (*durable.Engine, context.Context) {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: []durable.Definition{bake}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	return eng, durable.NewContext(context.Background(), eng)
}

// With the steps declared, Get and every page say how far a run is.
func ExampleSteps() {
	eng, ctx := bakery()
	defer eng.Close()
	fmt.Println(bake.Run(ctx, "bread-1", "rye"))
	info, err := eng.Get(ctx, "bread-1")
	if err != nil {
		panic(err)
	}
	fmt.Printf("step %d of %d: %v\n", info.Steps, info.Total, info.Declared)
	// Output:
	// a loaf of rye <nil>
	// step 2 of 2: [knead oven]
}

func ExampleEngine_Get() {
	eng, ctx := bakery()
	defer eng.Close()
	_, err := eng.Get(ctx, "bread-1")
	fmt.Println(errors.Is(err, durable.ErrNotFound))

	if _, err := bake.Run(ctx, "bread-1", "rye"); err != nil {
		panic(err)
	}
	info, err := eng.Get(ctx, "bread-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(info.Workflow, info.Status)
	// Output:
	// true
	// bake completed
}

// Watch yields the events of a run, recorded ones and those to come, and ends with the run.
func ExampleEngine_Watch() {
	eng, ctx := bakery()
	defer eng.Close()
	run, err := bake.Start(ctx, "bread-1", "rye")
	if err != nil {
		panic(err)
	}
	for ev, err := range eng.Watch(ctx, run.ID(), 0) { // 0: from its first event on
		if err != nil {
			panic(err)
		}
		fmt.Println(ev.Seq, ev.Type)
	}
	// Output:
	// 1 workflow_created
	// 2 workflow_started
	// 3 step_completed
	// 4 step_completed
	// 5 workflow_completed
}

// A web server starts runs and waits for them, and the program that has the code executes them.
func ExampleRef() {
	ctx := context.Background()
	st := memory.Open() // two programs share a file of SQLite or a database of PostgreSQL
	worker, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{bake}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer worker.Close()
	if _, err := worker.Recover(ctx); err != nil { // takes up what others start
		panic(err)
	}

	web, err := durable.Open(ctx, st, durable.Options{Logger: quiet}) // without workflows
	if err != nil {
		panic(err)
	}
	defer web.Close()
	remote := durable.Ref[string, string]("bake") // the name, and the types that its code has
	fmt.Println(remote.Run(durable.NewContext(ctx, web), "bread-1", "rye"))
	// Output: a loaf of rye <nil>
}

// A job that only a person may begin again is not continued after a crash.
func ExampleOnBoot() {
	ctx := context.Background()
	st := memory.Open()
	launch := durable.Define("launch", func(ctx context.Context, _ int) (string, error) {
		return durable.Step(ctx, "ignite", func(context.Context) (string, error) { return "up", nil })
	}, durable.OnBoot(durable.LeaveOnBoot))
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{launch}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	crashedRun(ctx, st, "launch") // its process died
	rep, err := eng.Recover(ctx)
	fmt.Println("resumed:", rep.Resumed, "left:", rep.Left, err)
	// Output: resumed: [] left: [launch-1] <nil>
}

// crashedRun writes a run whose executor is gone.
func crashedRun(ctx context.Context, st store.Store, workflow string) {
	id := workflow + "-1"
	created := store.Event{Seq: 1, Type: store.WorkflowCreated, At: 1, Data: []byte(`{"seed":"0000000000000000"}`)}
	created.Sum = store.Seal(id, 0, &created)
	row := store.Run{ID: id, Workflow: workflow, Version: "1", InitialVersion: "1", Status: store.Running, Owner: "gone", Epoch: 1, CreatedAt: 1}
	for _, err := range st.Commit(ctx, []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: []store.Event{created}}}) {
		if err != nil {
			panic(err)
		}
	}
}

var errSoldOut = errors.New("out of stock")

// LimitError says how much may be ordered.
type LimitError struct{ Most int }

func (e *LimitError) Error() string { return fmt.Sprintf("at most %d", e.Most) }

// A registered error is found behind a step and behind Wait, in this process and in the next one,
// whatever its text is by then.
func ExampleSentinel() {
	ctx := context.Background()
	order := durable.Define("order", func(ctx context.Context, n int) (string, error) {
		err := durable.Do(ctx, "reserve", func(context.Context) error {
			return durable.Permanent(fmt.Errorf("%d lamps: %w", n, errSoldOut))
		})
		return "", err
	})
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{order}, Errors: []durable.ErrorKind{durable.Sentinel("shop.stock", errSoldOut)}, Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	_, err = order.Run(durable.NewContext(ctx, eng), "order-1", 3)
	fmt.Println(errors.Is(err, errSoldOut))
	// Output: true
}

func ExampleErrorType() {
	ctx := context.Background()
	order := durable.Define("order", func(ctx context.Context, n int) (string, error) {
		return "", durable.Do(ctx, "reserve", func(context.Context) error {
			return durable.Permanent(&LimitError{Most: 2})
		})
	})
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{order}, Errors: []durable.ErrorKind{durable.ErrorType[*LimitError]("shop.limit")}, Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	_, err = order.Run(durable.NewContext(ctx, eng), "order-1", 3)
	var limit *LimitError
	if errors.As(err, &limit) {
		fmt.Println("at most", limit.Most)
	}
	// Output: at most 2
}

// History yields what is recorded of a run, and does not wait for more.
func ExampleEngine_History() {
	eng, ctx := bakery()
	defer eng.Close()
	if _, err := bake.Run(ctx, "bread-1", "rye"); err != nil {
		panic(err)
	}
	for ev, err := range eng.History(ctx, "bread-1") {
		if err != nil {
			panic(err)
		}
		if ev.Type == store.StepCompleted {
			fmt.Println(ev.Key, "is done")
		}
	}
	// Output:
	// knead is done
	// oven is done
}
