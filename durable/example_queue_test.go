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

// exampleEngineWith is exampleEngine with other options, and has called Recover.
func exampleEngineWith(o durable.Options) (ctx context.Context, done func()) {
	o.Logger = slog.New(slog.DiscardHandler)
	eng, err := durable.Open(context.Background(), memory.Open(), o)
	if err != nil {
		panic(err)
	}
	if _, err := eng.Recover(context.Background()); err != nil {
		panic(err)
	}
	return durable.NewContext(context.Background(), eng), func() { _ = eng.Close() }
}

func ExampleOnQueue() {
	send := durable.Define("send", func(ctx context.Context, to string) (string, error) {
		return durable.Step(ctx, "mail", func(ctx context.Context) (string, error) { return "sent to " + to, nil })
	})
	ctx, done := exampleEngineWith(durable.Options{
		Workflows: []durable.Definition{send},
		Queues: []durable.Queue{{
			Name:            "emails",
			Max:             20,                    // hold a place at once, over all processes
			MaxPerProcess:   5,                     // in this one
			MaxPerPartition: 2,                     // of one tenant
			Rate:            100, Per: time.Minute, // begin in any minute
		}},
	})
	defer done()

	run, err := send.Start(ctx, "mail-1", "ada@example.com", durable.OnQueue("emails"), durable.Partition("acme"), durable.Priority(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Wait(ctx))
	// Output: sent to ada@example.com <nil>
}

// A web server enqueues; workers, which have the code, execute.
func ExampleWorkflow_Enqueue() {
	report := durable.Define("report", func(ctx context.Context, month string) (string, error) {
		return durable.Step(ctx, "render", func(ctx context.Context) (string, error) { return month + ".pdf", nil })
	})
	ctx, done := exampleEngineWith(durable.Options{Workflows: []durable.Definition{report}})
	defer done()

	run, err := report.Enqueue(ctx, "report-october", "october")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Wait(ctx))
	// Output: october.pdf <nil>
}

func ExampleDedup() {
	index := durable.Define("index", func(ctx context.Context, repo string) (bool, error) { return durable.Await[bool](ctx, "done") })
	ctx, done := exampleEngineWith(durable.Options{Workflows: []durable.Definition{index}})
	defer done()

	_, _ = index.Start(ctx, "index-1", "holdfast", durable.OnQueue("index"), durable.Dedup("holdfast"))
	_, err := index.Start(ctx, "index-2", "holdfast", durable.OnQueue("index"), durable.Dedup("holdfast"))
	if conflict := (*durable.ConflictError)(nil); errors.As(err, &conflict) {
		fmt.Println(conflict.Dedup, "is being indexed by", conflict.Holder)
	}
	// Output: holdfast is being indexed by index-1
}

func ExampleDebounce() {
	save := durable.Define("save", func(ctx context.Context, text string) (string, error) { return "saved " + text, nil })
	ctx, done := exampleEngineWith(durable.Options{Workflows: []durable.Definition{save}})
	defer done()

	var run *durable.Run[string]
	for _, text := range []string{"h", "he", "hello"} {
		run, _ = save.Start(ctx, durable.AutoID, text, durable.Debounce("note-7", 50*time.Millisecond, time.Second))
	}
	fmt.Println(run.Wait(ctx))
	// Output: saved hello <nil>
}
