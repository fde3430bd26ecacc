package shell_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func ExampleWorkspace() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := durable.Define("build", func(ctx context.Context, dir string) (string, error) {
		ws := &shell.Workspace{Dir: dir, Env: []string{"GOFLAGS"}}
		if _, err := ws.Run(ctx, "compile", "sh", "-c", "echo compiled > app"); err != nil {
			return "", err
		}
		sum, err := ws.Retry(ctx, "checksum", durable.Policy{MaxAttempts: 5, Initial: time.Second}, "cksum", "app")
		if err != nil {
			return "", err
		}
		return sum.Stdout.Text, nil
	})

	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{build}, Errors: shell.Errors(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)
	worktree, err := shell.Worktree(dir) // no other run works here meanwhile
	if err != nil {
		panic(err)
	}
	run, err := build.Start(ctx, "build-7", dir, worktree...)
	if err != nil {
		panic(err)
	}
	out, err := run.Wait(ctx)
	fmt.Print(out, err)
	// Output:
	// 3920198699 9 app
	// <nil>
}
