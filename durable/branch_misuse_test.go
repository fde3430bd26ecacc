package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
)

func TestTheOuterContextUsedInABranchIsRefused(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(outer context.Context) (string, error) {
		calls := map[string]func() error{
			"step":           func() error { return second(durable.Step(outer, "oops", one)) },
			"wait":           func() error { return second(durable.Await[int](outer, "oops")) },
			"request":        func() error { return second(durable.AwaitRequest[int](outer, "oops")) },
			"published":      func() error { return durable.Publish(outer, "oops", 1) },
			"set attributes": func() error { return durable.SetAttributes(outer, map[string]string{"a": "b"}) },
			"compensation":   func() error { return durable.Compensate(outer, "oops", func(context.Context) error { return nil }) },
		}
		f := durable.Go(outer, "branch", func(ctx context.Context) (string, error) {
			if err := durable.Sleep(ctx, time.Second); err != nil { // until the outer function waits
				return "", err
			}
			for what, call := range calls {
				var c *misuse.OuterContextError
				if err := call(); !errors.As(err, &c) || c.Within != "branch" || !errors.Is(err, durable.ErrConcurrent) {
					return "", fmt.Errorf("%s: %w", what, err)
				}
			}
			return "refused", nil
		})
		return f.Wait(outer)
	})
	require.NoError(t, live.err)
	require.Equal(t, "refused", live.value)
	require.Equal(t, live, replay)
}

func TestAForgottenBranchIsFoundWhereverItWasBegunAndAfterACrashToo(t *testing.T) {
	forget := func(ctx context.Context) {
		durable.Go(ctx, "lost", func(ctx context.Context) (int, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			return 0, errors.New("and it fails, too")
		})
	}
	for name, body := range map[string]func(ctx context.Context) error{
		"lost": func(ctx context.Context) error { forget(ctx); return nil },
		"outer/lost": func(ctx context.Context) error {
			return second(durable.Go(ctx, "outer", func(ctx context.Context) (int, error) { forget(ctx); return 0, nil }).Wait(ctx))
		},
		"items[1]/lost": func(ctx context.Context) error {
			return second(durable.Map(ctx, "items", upTo(3), durable.MapOptions{}, func(ctx context.Context, i int) (int, error) {
				if i == 1 {
					forget(ctx)
				}
				return i, nil
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, body(ctx) })
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				pass(30 * time.Minute)
				w.reboot(t, with(wf))
				pass(time.Hour)
				_, err := wait(t, w, wf, "r")
				require.ErrorContains(t, err, "nobody has waited for "+name)
				require.Equal(t, store.Failed, w.row("r").Status)
				require.Contains(t, w.story("r"), "step_failed "+name+" 0", "nothing of it is lost")
			})
		})
	}
}

func TestAPanicOfAnItemIsADeadLetterWithItsStack(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (string, error) {
		_, err := durable.Map(ctx, "items", upTo(2), durable.MapOptions{KeepGoing: true}, func(_ context.Context, i int) (int, error) {
			if i == 1 {
				var nothing []int
				return nothing[i], nil
			}
			return i, nil
		})
		var me *durable.MapError
		var p *durable.PanicError
		if !errors.As(err, &me) || len(me.Failed) != 1 || !errors.As(me.Failed[0], &p) || !strings.Contains(p.Stack, "branch_misuse_test.go") {
			return "", fmt.Errorf("no panic with a stack: %w", err)
		}
		return me.Failed[0].Key + ": " + p.Value, nil
	})
	require.NoError(t, live.err)
	require.Equal(t, "items[1]: runtime error: index out of range [1] with length 0", live.value)
	require.Equal(t, live, replay)
}
