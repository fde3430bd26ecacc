package traceproof_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// childEnv carries the orders for a child: this test binary, executed again.
const childEnv = "HOLDFAST_TRACEPROOF_CHILD"

// marker stands in everything a user gives to the library that may be a secret.
const marker = "s3cr3t-marker"

// orders are what a child does.
type orders struct {
	Backend, DSN string
	Dir          string // where flags are
	OTLP         string // URL of the receiver
	Life         int
	KeepIDs      bool   // the tracer has durable.SpanIDs
	BornDead     bool   // the process hangs behind the commit that starts the order
	Seven        bool   // the workflows are those of sevenlives_test.go
	Random       bool   // they are those of randomkills_test.go
	DieAt        int    // of randomkills_test.go: the place where the process kills itself; 0: nowhere
	Caller       string // likewise: the span around the start, "trace id-span id"
}

// lease is that of every life; a child whose predecessor was killed need not
// wait for it.
const lease = time.Second

// TestMain turns the binary into a child when it is told to.
func TestMain(m *testing.M) {
	env := os.Getenv(childEnv)
	if env == "" {
		os.Exit(m.Run())
	}
	var o orders
	err := json.Unmarshal([]byte(env), &o)
	switch {
	case err != nil:
	case o.Seven:
		err = o.liveSeven()
	case o.Random:
		err = o.liveAtRandom()
	default:
		err = o.live()
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o orders) open() (store.Store, error) {
	if o.Backend == "postgres" {
		return postgres.Open(o.DSN)
	}
	return sqlite.Open(o.DSN)
}

// hang is what a body does that is to be killed: it says so and never returns.
func hang(what string) error {
	fmt.Println("hanging", what)
	select {}
}

// leak is an error that tells a secret.
type leak struct{ at string }

func (l *leak) Error() string { return marker + " in " + l.at }

// workflows are the same in every life, but for what the first two do not live
// to see the end of: attempt 2 of charge and the step fetch of a branch in the
// first, attempt 3 of charge in the second.
func (o orders) workflows() (order *durable.Workflow[string, string], all []durable.Definition) {
	kid := durable.Define("parcel", func(ctx context.Context, in string) (string, error) {
		return durable.Step(ctx, "pack", func(context.Context) (string, error) { return in, nil })
	})
	order = durable.Define("order", func(ctx context.Context, in string) (string, error) {
		if _, err := durable.Step(ctx, "reserve", func(ctx context.Context) (string, error) {
			durable.Note(ctx, "seen", marker)
			durable.Logger(ctx).Debug("in the body")
			return marker + "-result", nil
		}, durable.WithInput(in)); err != nil {
			return "", err
		}
		pick := durable.Go(ctx, "pick", func(ctx context.Context) (string, error) {
			if _, err := durable.Step(ctx, "walk", func(context.Context) (string, error) { return marker, nil }); err != nil {
				return "", err
			}
			return durable.Step(ctx, "fetch", func(context.Context) (string, error) {
				if o.Life == 0 {
					return "", hang("fetch")
				}
				return marker, nil
			})
		})
		_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Millisecond}, func(ctx context.Context) (string, error) {
			switch n := durable.Attempt(ctx).Number; {
			case n == 2 && o.Life == 0, n == 3 && o.Life == 1:
				return "", hang("charge")
			case n == 2:
				panic(marker)
			case n < 4:
				return "", fmt.Errorf("charging: %w", &leak{at: "charge"})
			}
			return marker, nil
		})
		if err != nil {
			return "", err
		}
		if _, err := pick.Wait(ctx); err != nil {
			return "", err
		}
		if _, err := durable.Map(ctx, "lines", []string{marker, marker}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, in string) (string, error) {
			return durable.Step(ctx, "wrap", func(context.Context) (string, error) { return in, nil })
		}); err != nil {
			return "", err
		}
		if _, err := durable.Await[string](ctx, "approve", durable.Prompt(marker+"?")); err != nil {
			return "", err
		}
		return kid.Run(ctx, durable.AutoID, in)
	}, durable.Version("2"))
	// undone fails, with compensations.
	undone := durable.Define("undone", func(ctx context.Context, in string) (string, error) {
		if err := durable.Compensate(ctx, "refund", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		_, err := durable.Retry(ctx, "ship", durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, func(context.Context) (string, error) { return "", errors.New(marker) })
		return "", err
	})
	return order, []durable.Definition{order, kid, undone}
}

// live is one process.
func (o orders) live() error {
	ctx := context.Background()
	st, err := o.open()
	if err != nil {
		return err
	}
	if o.BornDead {
		st = bornDead{st}
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.OTLP+"/v1/traces"))
	if err != nil {
		return err
	}
	// One export for each span, before the program goes on: what a kill loses
	// is what was not ended.
	options := []sdktrace.TracerProviderOption{sdktrace.WithSyncer(spans)}
	if o.KeepIDs {
		options = append(options, sdktrace.WithIDGenerator(durable.SpanIDs{}))
	}
	tracing := sdktrace.NewTracerProvider(options...)
	metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(o.OTLP+"/v1/metrics"))
	if err != nil {
		return err
	}
	metering := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithInterval(time.Hour))))
	log, err := os.OpenFile(filepath.Join(o.Dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	order, all := o.workflows()
	eng, err := durable.Open(ctx, st, durable.Options{
		OmitTexts: true,
		Workflows: all, Lease: lease, TracerProvider: tracing, MeterProvider: metering,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	// As a program does that starts its run on every boot.
	run, err := order.Start(ctx, "order-42", marker)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if o.Life == 2 {
		if err := o.answer(ctx, eng, tracing, run, all); err != nil {
			return err
		}
	} else {
		select {} // until killed
	}
	return errors.Join(eng.Close(), tracing.Shutdown(context.Background()), metering.Shutdown(context.Background()), st.Close())
}

// answer signals what the run waits for, and waits for all there is.
func (o orders) answer(ctx context.Context, eng *durable.Engine, tracing trace.TracerProvider, run *durable.Run[string], all []durable.Definition) error {
	for {
		row, err := eng.Get(ctx, "order-42")
		if err != nil {
			return err
		}
		if row.Status == store.Waiting {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	request, span := tracing.Tracer("web").Start(ctx, "POST /approve")
	err := durable.Signal(request, "order-42", "approve", marker)
	span.End()
	if err != nil {
		return err
	}
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	undone := all[2].(*durable.Workflow[string, string])
	if _, err := undone.Run(ctx, "undone-1", marker, durable.OnQueue("undoing"), durable.Partition("acme")); err == nil {
		return errors.New("it has not failed")
	}
	return nil
}

// child is a process under our control.
type child struct {
	*exec.Cmd
	out *bufio.Scanner
}

func start(t *testing.T, o orders) *child {
	t.Helper()
	env, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(env), "OTEL_SERVICE_NAME=shop")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &child{Cmd: cmd, out: bufio.NewScanner(pipe)}
}

// await reads the child's lines until one begins with word.
func (c *child) await(t *testing.T, word string) {
	t.Helper()
	for c.out.Scan() {
		if strings.HasPrefix(c.out.Text(), word) {
			return
		}
		if strings.HasPrefix(c.out.Text(), "error") {
			t.Fatalf("child: %s", c.out.Text())
		}
	}
	t.Fatalf("the child ended without saying %q", word)
}

// kill ends the child with SIGKILL.
func (c *child) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
}
