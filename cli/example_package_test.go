package cli_test

import (
	"context"
	"fmt"

	"log/slog"
	"os"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The commands need no program around them. What is wrong is printed, and is an exit code.
func Example() {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	durableCmd := cli.Command(eng, cli.Program("durable"))
	durableCmd.SetOut(os.Stdout)
	durableCmd.SetErr(os.Stdout)
	for _, args := range [][]string{{"stuck"}, {"show", "order-42"}} {
		durableCmd.SetArgs(args)
		fmt.Println("exit", cli.ExitCode(durableCmd.Execute()))
	}
	// Output:
	// Nothing is stuck.
	// exit 0
	// Session not found: order-42
	// List: durable sessions ls
	// exit 3
}
