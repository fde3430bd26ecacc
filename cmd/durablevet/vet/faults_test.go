package vet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Each of these tests makes the mistake that a rule is for, in a real run, and checks
// that the wrong thing happens. docs/durablevet.md names them.

// process opens an engine on the data of another.
func process(t *testing.T, st *memory.Store, wf durable.Definition) (context.Context, *durable.Engine) {
	t.Helper()
	eng, err := durable.Open(t.Context(), st.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return durable.NewContext(t.Context(), eng), eng
}

// restarted executes a run until it waits for "go", ends the process, and continues the
// run in another one with the workflow then, to which the answer is sent.
func restarted[O any](t *testing.T, wf, then *durable.Workflow[int, O], between func()) (out O, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := memory.Open()
		ctx, eng := process(t, st, wf)
		_, startErr := wf.Start(ctx, "r", 0)
		require.NoError(t, startErr)
		synctest.Wait() // the run waits
		require.NoError(t, eng.Close())
		between()
		ctx, eng = process(t, st, then)
		_, recoverErr := durable.Recover(ctx)
		require.NoError(t, recoverErr)
		require.NoError(t, durable.Signal(ctx, "r", "go", true))
		h, handleErr := then.Handle(ctx, "r")
		require.NoError(t, handleErr)
		out, err = h.Wait(ctx)
		require.NoError(t, eng.Close())
	})
	return out, err
}

// undisturbed executes a run in one process.
func undisturbed[O any](t *testing.T, wf *durable.Workflow[int, O]) (out O, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, eng := process(t, memory.Open(), wf)
		out, err = wf.Run(ctx, "r", 0, durable.WithSignal("go", true))
		require.NoError(t, eng.Close())
	})
	return out, err
}

func await(ctx context.Context) error {
	_, err := durable.Await[bool](ctx, "go")
	return err
}

func named(ctx context.Context, name string) error {
	return durable.Do(ctx, name, func(context.Context) error { return nil })
}

func stopped(t *testing.T, code string, err error) {
	t.Helper()
	var interrupted *durable.InterruptedError
	require.ErrorAs(t, err, &interrupted)
	require.Equal(t, code, interrupted.Code, "%s", interrupted.Reason)
}

func TestFaultClock(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		if err := named(ctx, fmt.Sprint("hour ", time.Now().Hour())); err != nil {
			return 0, err
		}
		return 0, await(ctx)
	})
	_, err := undisturbed(t, wf)
	require.NoError(t, err)
	_, err = restarted(t, wf, wf, func() { time.Sleep(time.Hour) })
	stopped(t, durable.CodeDefinitionChanged, err)
}

func TestFaultRandom(t *testing.T) {
	var booked int64
	wf := durable.Define("w", func(ctx context.Context, _ int) (int64, error) {
		n := rand.Int64()
		if err := durable.Do(ctx, "book", func(context.Context) error { booked = n; return nil }); err != nil {
			return 0, err
		}
		return n, await(ctx)
	})
	n, err := restarted(t, wf, wf, func() {})
	require.NoError(t, err)
	require.NotEqual(t, booked, n, "the run ends with a number that was never booked")
}

func TestFaultMapOrder(t *testing.T) {
	m := map[string]bool{}
	for i := range 1000 {
		m[fmt.Sprint("step ", i)] = true
	}
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		made := 0
		for name := range m {
			if made++; made > 10 {
				break
			}
			if err := named(ctx, name); err != nil {
				return 0, err
			}
		}
		return 0, await(ctx)
	})
	var err error
	for range 20 { // two executions may happen to have one order
		if _, err = restarted(t, wf, wf, func() {}); err != nil {
			break
		}
	}
	stopped(t, durable.CodeDefinitionChanged, err)
}

func TestFaultGoroutine(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		began, second := make(chan struct{}), make(chan error)
		go func() {
			<-began
			second <- named(ctx, "second")
		}()
		return durable.Step(ctx, "first", func(context.Context) (int, error) {
			close(began)
			return 0, durable.Permanent(<-second)
		})
	})
	_, err := undisturbed(t, wf)
	require.ErrorIs(t, err, durable.ErrConcurrent)
}

func TestFaultSelect(t *testing.T) {
	var news chan int
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		name := "nothing"
		select {
		case <-news:
			name = "news"
		default:
		}
		if err := named(ctx, name); err != nil {
			return 0, err
		}
		return 0, await(ctx)
	})
	news = make(chan int, 1)
	news <- 1
	_, err := restarted(t, wf, wf, func() {})
	stopped(t, durable.CodeDefinitionChanged, err)
}

func TestFaultIO(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		before, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		if err := os.WriteFile(file, append(before, "paid\n"...), 0o600); err != nil {
			return 0, err
		}
		return 0, await(ctx)
	})
	_, err := restarted(t, wf, wf, func() {})
	require.NoError(t, err)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "paid\npaid\n", string(written), "once for each execution")
}

var visits int

func TestFaultGlobal(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		visits++
		if err := named(ctx, fmt.Sprint("visit ", visits)); err != nil {
			return 0, err
		}
		return 0, await(ctx)
	})
	_, err := restarted(t, wf, wf, func() {})
	stopped(t, durable.CodeDefinitionChanged, err)
}

func TestFaultCapture(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		n := 0
		if err := durable.Do(ctx, "load", func(context.Context) error { n = 7; return nil }); err != nil {
			return 0, err
		}
		return n, await(ctx)
	})
	n, err := undisturbed(t, wf)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	n, err = restarted(t, wf, wf, func() {})
	require.NoError(t, err)
	require.Zero(t, n, "the body was not run again")
}

func TestFaultStepName(t *testing.T) {
	send := func(ctx context.Context, what string) (string, error) {
		return durable.Step(ctx, "send", func(context.Context) (string, error) { return what, nil })
	}
	before := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		if _, err := send(ctx, "first"); err != nil {
			return "", err
		}
		second, err := send(ctx, "second")
		if err != nil {
			return "", err
		}
		return second, await(ctx)
	}, durable.MatchByName())
	after := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		second, err := send(ctx, "second")
		if err != nil {
			return "", err
		}
		return second, await(ctx)
	}, durable.MatchByName())
	got, err := restarted(t, before, after, func() {})
	require.NoError(t, err)
	require.Equal(t, "first", got, "the result of the step that was removed")
}

func TestFaultJSON(t *testing.T) {
	type account struct {
		Name    string
		balance int
	}
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		a, err := durable.Step(ctx, "load", func(context.Context) (account, error) { return account{"Ada", 7}, nil })
		return a.balance, err
	})
	balance, err := undisturbed(t, wf)
	require.NoError(t, err)
	require.Zero(t, balance, "the field is not in the record")
}

func TestFaultDropped(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		_ = durable.Do(ctx, "send", func(context.Context) error { return durable.Permanent(errors.New("no address")) })
		return "sent", nil
	})
	out, err := undisturbed(t, wf)
	require.NoError(t, err)
	require.Equal(t, "sent", out, "and nothing was")
}

func TestFaultContextBackground(t *testing.T) {
	wf := durable.Define("w", func(context.Context, int) (int, error) {
		return 0, named(context.Background(), "send")
	})
	_, err := undisturbed(t, wf)
	require.ErrorIs(t, err, durable.ErrOutsideRun)
}

func TestFaultContextOuter(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Go(ctx, "branch", func(context.Context) (int, error) {
			return 0, named(ctx, "send")
		}).Wait(ctx)
	})
	_, err := undisturbed(t, wf)
	require.ErrorContains(t, err, `"send" was called in branch with the context of the workflow function`)
}

func TestFaultContextDeadline(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		return 0, await(ctx)
	})
	_, err := undisturbed(t, wf)
	stopped(t, durable.CodeUnrecorded, err)
}
