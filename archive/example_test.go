package archive_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func ExampleHydrate() {
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	greet := durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, "say", func(context.Context) (string, error) { return "hello " + name, nil })
	})

	d, err := archive.OpenDir(dir) // or OpenGit
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	for boot := 1; boot <= 2; boot++ {
		history := archive.Hydrate(ctx, d, nil)
		eng, err := durable.Open(ctx, memory.Open(), durable.Options{
			Workflows: []durable.Definition{greet}, Archive: history, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			panic(err)
		}
		for _, run := range history.Runs() {
			fmt.Printf("boot %d knows %s: %s, %s\n", boot, run.ID, run.Status, run.Output)
		}
		if _, err := greet.Run(durable.NewContext(ctx, eng), "greet-1", "Ada"); err != nil {
			panic(err)
		}
		_ = eng.Close() // waits for the archive
	}
	// Output: boot 2 knows greet-1: completed, "hello Ada"
}

func ExampleRestoreWaiting() {
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	release := durable.Define("release", func(ctx context.Context, version string) (string, error) {
		sum, err := durable.Step(ctx, "build", func(context.Context) (string, error) { fmt.Println("building"); return "sha256:1f3a", nil })
		if err != nil {
			return "", err
		}
		by, err := durable.Await[string](ctx, "approve", durable.Prompt("Publish "+version+"?"))
		return version + " " + sum + ", approved by " + by, err
	})
	d, err := archive.OpenDir(dir)
	if err != nil {
		panic(err)
	}
	defer func() { _ = d.Close() }()
	boot := func() (context.Context, *durable.Engine) {
		eng, err := durable.Open(ctx, memory.Open(), durable.Options{
			Workflows: []durable.Definition{release}, Archive: d, ArchiveSync: true, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			panic(err)
		}
		return durable.NewContext(ctx, eng), eng
	}

	ectx, eng := boot()
	if _, err := release.Start(ectx, "v1.2", "v1.2"); err != nil {
		panic(err)
	}
	for entry := (*archive.Entry)(nil); entry == nil; entry, _ = d.Get(ctx, "v1.2") {
	}
	_ = eng.Close() // and the store, which was memory, is lost

	ectx, eng = boot()
	defer func() { _ = eng.Close() }()
	restored, err := archive.RestoreWaiting(ectx, eng, d)
	if err != nil {
		panic(err)
	}
	fmt.Println("restored:", restored.Runs)
	run, err := release.Handle(ectx, "v1.2")
	if err != nil {
		panic(err)
	}
	if err := durable.Signal(ectx, "v1.2", "approve", "Ada"); err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ectx))
	// Output:
	// building
	// restored: [v1.2]
	// v1.2 sha256:1f3a, approved by Ada <nil>
}
