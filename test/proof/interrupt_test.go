package proof_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// polite is a program as a user writes one: on SIGINT it closes its engine, and
// prints how to go on.
func polite(st store.Store, o orders) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var eng *durable.Engine
	wf := kinds(o, func() {
		<-ctx.Done()
		for closing := false; !closing; time.Sleep(time.Millisecond) { // then no further step begins
			h, _ := eng.Health(ctx) // which has ended: the store is not asked
			closing = h.Closing
		}
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Grace: 5 * time.Second})
	if err != nil {
		return err
	}
	ectx := durable.NewContext(context.Background(), eng)
	if _, err := durable.Recover(ectx); err != nil {
		return err
	}
	run, err := wf.Start(ectx, "the run", o.Dir)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := run.Wait(ectx)
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		began := time.Now()
		if err := eng.Close(); err != nil {
			return err
		}
		fmt.Println("closed", time.Since(began) < 5*time.Second)
		err = <-ended
	}
	fmt.Println("outcome", err)
	return eng.Close()
}

// kinds has a step of every kind; each marks in the journal that it ran, and
// says so on stdout. The one that orders name then holds.
func kinds(o orders, hold func()) *durable.Workflow[string, string] {
	mark := func(ctx context.Context) durable.AttemptInfo {
		a := durable.Attempt(ctx)
		note(o, "%s %d", a.Key, a.Number)
		fmt.Println("in", a.Key, a.Number)
		if fmt.Sprint(a.Key, " ", a.Number) == o.Hold {
			hold()
		}
		return a
	}
	return durable.Define("kinds", func(ctx context.Context, dir string) (string, error) {
		plain, err := durable.Step(ctx, "plain", func(ctx context.Context) (string, error) { mark(ctx); return "plain", nil })
		if err != nil {
			return "", err
		}
		shell, err := durable.Retry(ctx, "shell", durable.Policy{MaxAttempts: 3, Initial: 10 * time.Millisecond}, func(ctx context.Context) (string, error) {
			a := mark(ctx)
			return command(ctx, dir, fmt.Sprintf("echo out of the shell; test %d -ge 2", a.Number))
		})
		if err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "test", func(ctx context.Context) error { mark(ctx); _, err := command(ctx, dir, "test -d ."); return err }); err != nil {
			return "", err
		}
		_, err = durable.Step(ctx, "validation", func(ctx context.Context) (bool, error) { mark(ctx); return shell == "out of the shell\n", nil })
		if err != nil {
			return "", err
		}
		score, err := durable.Seek(ctx, "goal", durable.Policy{Initial: 10 * time.Millisecond}, func(ctx context.Context) (int, error) {
			a := mark(ctx)
			return a.Number * 40, nil
		}, func(score int) error {
			if score < 100 {
				return fmt.Errorf("score %d", score)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		agent, err := durable.Step(ctx, "agent", func(ctx context.Context) (string, error) {
			_, ok, err := durable.Progress[string](ctx)
			if err != nil {
				return "", err
			}
			mark(ctx)
			if !ok {
				if err := durable.SaveProgress(ctx, fmt.Sprint("session of ", os.Getpid())); err != nil {
					return "", err
				}
				note(o, "session opened")
			}
			return "answer", nil
		})
		return fmt.Sprint(plain, " ", shell, score, " ", agent), err
	})
}

func TestOnAnInterruptSignalTheRunIsSavedAndTheProcessSaysHowToResume(t *testing.T) {
	backends(t, func(t *testing.T, o orders) {
		o.Role = "polite"
		for _, stopIn := range []string{"plain 1", "shell 2", "validation 1", "goal 2"} {
			o.Hold = stopIn
			c := start(t, o)
			c.await(t, "in "+stopIn)
			require.NoError(t, c.Process.Signal(os.Interrupt))
			require.Equal(t, "true", c.await(t, "closed"), "before the grace time was over")
			outcome := c.await(t, "outcome")
			require.Contains(t, outcome, "was interrupted")
			require.Contains(t, outcome, `Resume it with operate.On(engine).Resume(ctx, "the run")`)
			require.NoError(t, c.Wait())
			st, err := openStore(o.Backend, o.DSN)
			require.NoError(t, err)
			h, err := st.Load(context.Background(), "the run", store.Cursor{NoEvents: true})
			require.NoError(t, err)
			require.Equal(t, store.Interrupted, h.Run.Status)
			require.Equal(t, store.WorkflowInterrupted, h.Run.Last.Type)
			require.NoError(t, st.Close())
		}
		o.Hold = ""
		last := start(t, o)
		require.Equal(t, "<nil>", last.await(t, "outcome"))
		require.NoError(t, last.Wait())
	})
}

func TestEveryKindOfStepGoesOnWhereItWasKilled(t *testing.T) {
	backends(t, func(t *testing.T, o orders) {
		o.Role = "polite"
		kills := []string{"plain 1", "shell 1", "shell 2", "test 1", "validation 1", "goal 1", "goal 2", "goal 3", "agent 1"}
		for _, at := range kills {
			o.Hold = at
			c := start(t, o)
			c.await(t, "in "+at)
			c.kill(t)
		}
		o.Hold = ""
		last := start(t, o)
		require.Equal(t, "<nil>", last.await(t, "outcome"))
		require.NoError(t, last.Wait())
		j, err := os.ReadFile(filepath.Join(o.Dir, "journal"))
		require.NoError(t, err)
		ran := map[string]int{}
		for line := range lines(string(j)) {
			ran[line]++
		}
		for _, at := range kills {
			require.Equal(t, 2, ran[at], "%s: once killed, once to its end; %s", at, j)
		}
		require.LessOrEqual(t, ran["session opened"], 1, "an agent's session is opened once")
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer st.Close()
		eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{kinds(o, nil)}, Logger: quiet()})
		require.NoError(t, err)
		h, err := kinds(o, nil).Handle(durable.NewContext(t.Context(), eng), "the run")
		require.NoError(t, err)
		out, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "plain out of the shell\n120 answer", out)
		require.NoError(t, eng.Close())
	})
}
