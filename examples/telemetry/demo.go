package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/otlptest"
	"github.com/holdfast-dev/holdfast/test/tracecheck"
)

const endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"

// patience is how long a life of the shop may take.
const patience = 60 * time.Second

// demo lets the shop live three times and shows its telemetry.
func demo(ctx context.Context, out io.Writer, dir string) error {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "holdfast-telemetry-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	endpoint := os.Getenv(endpointVariable)
	var received *otlptest.Receiver
	if endpoint == "" {
		var err error
		if received, err = otlptest.Listen("127.0.0.1:0"); err != nil {
			return err
		}
		defer received.Close()
		endpoint = received.URL()
	}
	for life := 1; life <= 3; life++ {
		pid, err := live(ctx, out, dir, endpoint, life)
		switch {
		case err != nil:
			return fmt.Errorf("life %d of the shop: %w", life, err)
		case life < 3:
			fmt.Fprintf(out, "process %d was killed\n", pid)
		default:
			fmt.Fprintf(out, "process %d finished %s\n\n", pid, orderID)
		}
	}
	if received == nil {
		fmt.Fprintf(out, "Its trace is at %s.\n", endpoint)
		return nil
	}
	return show(ctx, out, dir, received)
}

// live runs this program as the shop. It returns an error unless the process ends as it
// should: by killing itself in its first two lives, successfully in the third.
func live(ctx context.Context, out io.Writer, dir, endpoint string, life int) (pid int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "-data", dir)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", lifeVariable, life), endpointVariable+"="+endpoint, "OTEL_SERVICE_NAME=shop")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err != nil && !errors.As(err, &ended):
		return 0, err
	case (err == nil) != (life == 3) || ended != nil && ended.Exited():
		return 0, fmt.Errorf("it ended with %s", cmd.ProcessState)
	}
	return cmd.Process.Pid, nil
}

// show prints the trace that was received as a tree, compares it with the history
// of the run, and names the metrics.
func show(ctx context.Context, out io.Writer, dir string, received *otlptest.Receiver) error {
	row, events, err := history(ctx, dir)
	if err != nil {
		return err
	}
	spans := tracecheck.OfRun(received.Spans(), row)
	for _, root := range otlptest.Trees(spans) {
		if err := root.Print(out, "durable.step.attempt", "durable.outcome", "durable.recovered", "durable.replayed"); err != nil {
			return err
		}
	}
	if err := tracecheck.Compare(spans, events); err != nil {
		return fmt.Errorf("the trace is not what happened: %w", err)
	}
	fmt.Fprintf(out, "\nOne trace, and each attempt of the history is in it, once.\n")
	names := map[string]bool{}
	for _, p := range received.Points() {
		names[p.Metric] = true
	}
	fmt.Fprintf(out, "%d metrics were received beside it, such as durable.run.recovered: %v.\n", len(names), names["durable.run.recovered"])
	return nil
}

// history reads the run and its events.
func history(ctx context.Context, dir string) (store.Run, []store.Event, error) {
	st, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		return store.Run{}, nil, err
	}
	defer st.Close()
	h, err := st.Load(ctx, orderID, store.Cursor{})
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
