// Pipeline releases a Go module: vet, test with up to five attempts, build, checksum,
// ask a person, publish to a directory. It is written like a real program, with the
// terminal mounted in it and the dashboard next to it:
//
//	go build -o pipeline ./examples/pipeline
//	./pipeline sample /tmp/greeter            # a module to release, with a flaky test
//	./pipeline durable run release --id greeter-1 --input '{"module":"/tmp/greeter","version":"v1.0.0","publish":"/tmp/published"}'
//
// Press Ctrl-C while it tests, and paste the command that it prints. Look at it
// and approve it in the browser, at the address that it prints, or with
// ./pipeline durable approve greeter-1.
//
//	go run ./examples/pipeline
//
// plays all that on its own. Read release.go first: it is the workflow.
package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func main() {
	ctx := context.Background()
	if len(os.Args) > 1 && os.Args[1] == "durable" {
		os.Exit(terminal(ctx))
	}
	root := &cobra.Command{
		Use: "pipeline", Short: "Release a Go module, durably", SilenceUsage: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return play(ctx, os.Stdout) },
	}
	root.AddCommand(
		&cobra.Command{Use: "durable", Short: "Run, resume, watch and approve releases"}, // see terminal
		&cobra.Command{
			Use: "sample DIR", Short: "Write a module to release", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return writeSample(args[0]) },
		},
	)
	if root.Execute() != nil {
		os.Exit(1)
	}
}

// terminal executes "pipeline durable ...". It returns the exit code.
func terminal(ctx context.Context) int {
	path := os.Getenv("PIPELINE_DB")
	if path == "" {
		path = "pipeline.db"
	}
	st, err := sqlite.Open(path)
	if err != nil {
		return say(err)
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{releases},
		Errors:    append(shell.Errors(), durable.Sentinel("rejected", ErrRejected)),
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return say(err)
	}
	defer eng.Close()
	root := &cobra.Command{Use: "pipeline"}
	tree := cli.Command(eng)
	for _, c := range tree.Commands() {
		switch c.Name() {
		case "run", "resume", "resume-last": // they stay, so that there is something to look at
			run := c.RunE
			c.RunE = func(cmd *cobra.Command, args []string) error {
				serve, stop := context.WithCancel(ctx)
				defer stop()
				if err := showPages(serve, eng, cmd.ErrOrStderr()); err != nil {
					return err
				}
				return run(cmd, args)
			}
		}
	}
	root.AddCommand(tree)
	return cli.ExitCode(root.Execute())
}

func say(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// showPages serves the dashboard until ctx ends, and says where.
func showPages(ctx context.Context, eng *durable.Engine, out io.Writer) error {
	addr := os.Getenv("PIPELINE_HTTP")
	if addr == "" {
		addr = "127.0.0.1:8233"
	}
	options := dashboard.Options{ShowPayloads: true, Logger: slog.New(slog.DiscardHandler)}
	l, err := dashboard.Listen(ctx, addr, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Watch and approve: http://%s\n", l.Addr())
	go func() { _ = dashboard.Serve(ctx, l, eng, options) }()
	return nil
}

//go:embed sample
var sample embed.FS

// writeSample writes a Go module with a flaky test.
func writeSample(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	files, err := sample.ReadDir("sample")
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := sample.ReadFile("sample/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(f.Name(), ".txt")), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
