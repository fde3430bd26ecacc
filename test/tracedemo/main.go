// Tracedemo sends the trace of examples/telemetry to a real backend, Jaeger, reads
// it back through the query API, prints it as a tree and compares it with the run's
// history.
//
//	make trace-demo
//
// Jaeger is built from its Go module, which takes several minutes the first time;
// the module beside this program (jaeger/go.mod) pins it, so that nothing of it is
// a dependency of the library.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/otlptest"
	"github.com/holdfast-dev/holdfast/test/tracecheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	binary := flag.String("jaeger", "", "use this `file` instead of building Jaeger")
	flag.Parse()
	if err := demo(ctx, os.Stdout, *binary); err != nil {
		fmt.Fprintf(os.Stderr, "tracedemo: %v\n", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, out io.Writer, binary string) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-tracedemo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		fmt.Fprintln(out, "Building Jaeger; the first time takes several minutes ...")
		binary = filepath.Join(dir, "jaeger")
		if err := run(ctx, nil, "go", "build", "-C", "test/tracedemo/jaeger", "-o", binary, "github.com/jaegertracing/jaeger/cmd/all-in-one"); err != nil {
			return fmt.Errorf("building Jaeger: %w", err)
		}
	}
	j, err := startJaeger(ctx, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.stop()) }()
	// Jaeger takes no metrics; they go to a receiver of our own.
	metrics, err := otlptest.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer metrics.Close()
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + metrics.URL(), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + j.collector + "/v1/traces"}
	if err := run(ctx, env, "go", "run", "./examples/telemetry", "-data", dir); err != nil {
		return fmt.Errorf("examples/telemetry: %w", err)
	}
	row, events, err := history(ctx, filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	return compare(ctx, out, j, row, events)
}

// compare reads the trace back, prints it, and says whether it is what happened.
func compare(ctx context.Context, out io.Writer, j *jaeger, row store.Run, events []store.Event) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var spans []otlptest.Span
	wrong := errors.New("the backend, Jaeger, has nothing of it")
	for wrong != nil { // it takes what it has received into its store a little later
		var err error
		if spans, err = j.trace(ctx, tracecheck.TraceID(row)); err != nil {
			return err
		}
		if wrong = tracecheck.Compare(spans, events); wrong == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("what Jaeger has of run %s is not what happened: %w", row.ID, wrong)
		case <-time.After(100 * time.Millisecond):
		}
	}
	fmt.Fprintf(out, "\nFrom Jaeger, %s/api/traces/%s:\n\n", j.query, tracecheck.TraceID(row))
	for _, root := range otlptest.Trees(spans) {
		if err := root.Print(out, "durable.step.attempt", "durable.outcome", "durable.recovered", "durable.replayed"); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%d spans of one trace; each attempt of the %d events of the run's history is there, once.\n", len(spans), len(events))
	return nil
}

// run runs a command in the working directory and passes on what it says.
func run(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// history reads the run of the example.
func history(ctx context.Context, path string) (store.Run, []store.Event, error) {
	st, err := sqlite.Open(path)
	if err != nil {
		return store.Run{}, nil, err
	}
	defer st.Close()
	h, err := st.Load(ctx, "order-42", store.Cursor{})
	if err != nil {
		return store.Run{}, nil, err
	}
	var events []store.Event
	for ev, err := range h.Events {
		if err != nil {
			return store.Run{}, nil, err
		}
		events = append(events, ev)
	}
	return h.Run, events, nil
}
