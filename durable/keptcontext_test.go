package durable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The memory of a step is used again for later ones. A context that a body has kept must
// go on to say whose it was, whenever it is first looked at.
func TestAKeptContextStaysThatOfItsStep(t *testing.T) {
	const steps = 50
	var kept []context.Context
	said := func(ctx context.Context) string {
		a := durable.Attempt(ctx)
		return fmt.Sprint(a.RunID, a.Key, a.Number, a.Max, durable.IdempotencyKey(ctx), durable.RunID(ctx))
	}
	want := func(i int) string {
		key := "a"
		if i > 0 {
			key = fmt.Sprintf("a#%d", i+1)
		}
		return fmt.Sprint("r", key, 1, 1, durable.IdempotencyKeyOf("r", 0, key), "r")
	}
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		for i := range steps {
			_, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) {
				kept = append(kept, ctx)
				if i%3 == 0 && said(ctx) != want(i) {
					return 0, fmt.Errorf("in its body, the context of step %d says %s", i, said(ctx))
				}
				if i > 0 && said(kept[i-1]) != want(i-1) {
					return 0, fmt.Errorf("in the next body, the context of step %d says %s", i-1, said(kept[i-1]))
				}
				return 0, nil
			})
			if err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(t, err)
	defer eng.Close()
	_, err = wf.Run(durable.NewContext(t.Context(), eng), "r", 0)
	require.NoError(t, err)
	for i, ctx := range kept {
		require.Equal(t, want(i), said(ctx))
		require.Equal(t, durable.Attempt(ctx).Execution, durable.Attempt(ctx).Execution)
		require.ErrorIs(t, durable.SaveProgress(ctx, 1), durable.ErrOutsideRun)
		_, ok, err := durable.Progress[int](ctx)
		require.False(t, ok || err != nil)
		_, err = durable.Step(ctx, "b", one)
		require.ErrorIs(t, err, durable.ErrNested)
		durable.Note(ctx, "k", 1) // dropped
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		<-ctx.Done()
	}
}

// A goroutine that a body has left behind looks at its context while later steps run.
func TestAContextIsLookedAtWhileLaterStepsRun(t *testing.T) {
	const steps = 200
	var left sync.WaitGroup
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		for i := range steps {
			if _, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) {
				left.Go(func() {
					key := durable.Attempt(ctx).Key
					for range 20 {
						if again := durable.Attempt(ctx).Key; again != key || durable.IdempotencyKey(ctx) != durable.IdempotencyKeyOf("r", 0, key) {
							t.Errorf("the context of %s says that it is that of %s", key, again)
						}
					}
					if want := fmt.Sprintf("a#%d", i+1); i > 0 && key != want {
						t.Errorf("the context of %s says that it is that of %s", want, key)
					}
				})
				return i, nil
			}); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(t, err)
	defer eng.Close()
	_, err = wf.Run(durable.NewContext(t.Context(), eng), "r", 0)
	require.NoError(t, err)
	left.Wait()
}

// What a body has saved before a crash is there for a goroutine that the next body leaves
// behind, whenever it first looks at its context.
func TestAGoroutineThatABodyLeftBehindSeesTheProgressOfItsStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		process, kept := 0, context.Context(nil)
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "work", func(ctx context.Context) error {
				if kept = ctx; process > 1 {
					return nil // nobody has looked at ctx
				}
				if err := durable.SaveProgress(ctx, "session 7"); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}); err != nil {
				return "", err
			}
			v, ok, err := durable.Progress[string](kept)
			return fmt.Sprintf("%s, %v, %v", v, ok, err), nil
		})
		process = 1
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		process = 2
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "session 7, true, <nil>", out)
	})
}
