package everystore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
)

// declaredShapes are workflows that declare their steps, so that recovery can see
// from outside that all of them are done: killed between the last outcome and the
// end of the run, they are repaired by A3, whose branch they end on. All that a
// shape may have more for it is the event that says so.
func declaredShapes() []*shape {
	declared := func(name, want string, fn func(ctx context.Context, l *life) (string, error), o ...durable.DefineOption) *shape {
		return &shape{
			name: name, want: []string{want}, may: []string{"r workflow_recovered"}, recovered: onlyA3,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define(name, func(ctx context.Context, _ int) (string, error) { return fn(ctx, l) }, o...)}
			},
		}
	}
	two := func(ctx context.Context, l *life, last string) (string, error) {
		a, err := l.step(ctx, "a", "x")
		if err != nil {
			return "", err
		}
		b, err := l.step(ctx, last, "y")
		return a + b, err
	}
	return []*shape{
		declared("declared steps", "xy, <nil>", func(ctx context.Context, l *life) (string, error) {
			return two(ctx, l, "b")
		}, durable.Steps("a", "b")),
		declared("declared steps with one name", "xy, <nil>", func(ctx context.Context, l *life) (string, error) {
			return two(ctx, l, "a")
		}, durable.Steps("a", "a")),
		declared("declared steps and more", "xy, <nil>", func(ctx context.Context, l *life) (string, error) {
			out, err := two(ctx, l, "b")
			if err != nil {
				return "", err
			}
			if err := durable.Sleep(ctx, short); err != nil {
				return "", err
			}
			return out, durable.Publish(ctx, "state", out)
		}, durable.Steps("a", "b")),
		declared("declared steps with a last one that must not run twice", "xy, <nil>", func(ctx context.Context, l *life) (string, error) {
			a, err := l.step(ctx, "a", "x")
			if err != nil {
				return "", err
			}
			b, err := durable.Once(ctx, "b", func(ctx context.Context) (string, error) { l.did(ctx); return "y", nil },
				durable.Reconcile(func(context.Context) (string, bool, error) { return "y", l.hasDone(l.trial.id, "b/1"), nil }))
			return a + b, err
		}, durable.Steps("a", "b")),
		declared("declared steps that are undone", ", run r (declared steps that are undone) failed: too bad", func(ctx context.Context, l *life) (string, error) {
			if err := l.book(ctx, "hotel", nil); err != nil {
				return "", err
			}
			return "", durable.Permanent(errors.New("too bad"))
		}, durable.Steps("book hotel")),
	}
}

// onlyA3 reports whatever else recovery has found wrong.
func onlyA3(_ *life, r durable.Report) error {
	for _, rec := range r.Repaired {
		if rec.Code != durable.CodeA3 {
			return fmt.Errorf("repaired: %+v", rec)
		}
	}
	return nil
}
