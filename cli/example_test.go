package cli_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A program mounts the commands beside its own.
func ExampleCommand() {
	greet := durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, "compose", func(context.Context) (string, error) { return "Hello, " + name, nil })
	}, durable.Steps("compose"))
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{greet}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()

	root := &cobra.Command{Use: "app"}
	root.AddCommand(cli.Command(eng, cli.Program("app")))
	root.SetOut(os.Stdout)
	root.SetErr(io.Discard) // progress
	root.SetArgs([]string{"durable", "run", "greet", "--id", "greet-1", "--input", `"Ada"`})
	fmt.Println("exit", cli.ExitCode(root.Execute()))

	root.SetErr(os.Stdout)
	root.SetArgs([]string{"durable", "resume", "greet-1"})
	fmt.Println("exit", cli.ExitCode(root.Execute()))
	// Output:
	// Workflow greet-1 completed: "Hello, Ada"
	// exit 0
	// Session greet-1 is not resumable (status: completed)
	// Copy it: app durable fork greet-1 --from 3
	// exit 4
}
