package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// A process dies in the middle of steps, and the run is stopped before another one takes it over. What
// was under way may have had its effect, wherever it was.
func TestWhatWasUnderWayInAProcessThatDiedIsUndoneThoughTheRunIsStoppedBeforeTheNext(t *testing.T) {
	type at func(ctx context.Context, i int) (int, error) // registers a compensation, and makes an effect
	inBranches := func(ctx context.Context, effect at) error {
		a := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { return effect(ctx, 0) })
		b := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return effect(ctx, 1) })
		_, errA := a.Wait(ctx)
		_, errB := b.Wait(ctx)
		if errA != nil {
			return errA
		}
		return errB
	}
	over := func(ctx context.Context, effect at, items int) error {
		_, err := durable.Map(ctx, "over", upTo(items), durable.MapOptions{Concurrency: 2}, effect)
		return err
	}
	for name, c := range map[string]struct {
		fn   func(ctx context.Context, effect at) error
		want []int
	}{
		"in the function": {func(ctx context.Context, effect at) error { _, err := effect(ctx, 0); return err }, []int{0}},
		"in branches":     {inBranches, []int{0, 1}},
		"in a branch of a branch": {func(ctx context.Context, effect at) error {
			return inBranches(ctx, func(ctx context.Context, i int) (int, error) {
				return durable.Go(ctx, "inner", func(ctx context.Context) (int, error) { return effect(ctx, i) }).Wait(ctx)
			})
		}, []int{0, 1}},
		"in items": {func(ctx context.Context, effect at) error { return over(ctx, effect, 3) }, []int{0, 1}},
		"in items of items": {func(ctx context.Context, effect at) error {
			return over(ctx, func(ctx context.Context, i int) (int, error) { return 0, over(ctx, effect, i+1) }, 1)
		}, []int{0}},
		"behind a relaxed step": {func(ctx context.Context, effect at) error {
			for range 2 {
				if _, err := durable.Step(ctx, "look", func(context.Context) (int, error) { return 1, nil }, durable.Relaxed()); err != nil {
					return err
				}
			}
			_, err := effect(ctx, 0)
			return err
		}, []int{0}},
	} {
		for _, within := range []bool{false, true} { // a branch of its own, to which the compensation belongs
			for how, stop := range map[string]func(t *testing.T, w *world){
				"cancel":   func(t *testing.T, w *world) { require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough")) },
				"deadline": func(*testing.T, *world) { pass(time.Hour) },
			} {
				t.Run(fmt.Sprint(name, "/", how, "/", within), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						hold := make(chan struct{})
						var mu sync.Mutex
						var begun, undone []int
						add := func(to *[]int, i int) {
							mu.Lock()
							defer mu.Unlock()
							*to = append(*to, i)
							slices.Sort(*to)
						}
						wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
							return 0, c.fn(ctx, func(ctx context.Context, i int) (int, error) {
								err := durable.Compensate(ctx, "undo", func(context.Context) error { add(&undone, i); return nil })
								if err != nil {
									return 0, err
								}
								do := func(ctx context.Context) (int, error) {
									return durable.Step(ctx, "do", func(context.Context) (int, error) {
										add(&begun, i)
										<-hold
										return 0, nil
									})
								}
								if within {
									return durable.Go(ctx, "within", do).Wait(ctx)
								}
								return do(ctx)
							})
						})
						w.boot(t, with(wf))
						_, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(30*time.Minute))
						require.NoError(t, err)
						synctest.Wait()
						require.Equal(t, c.want, begun)
						w.crash()
						close(hold)
						w.expire()
						eng := w.open(t, with(wf))
						stop(t, w)
						_, err = eng.Recover(w.ctx())
						require.NoError(t, err)
						pass(time.Minute)
						require.True(t, w.row("r").Status.Terminal(), "%s", w.story("r"))
						require.Equal(t, c.want, undone, "%s", w.story("r"))
						require.Equal(t, c.want, begun, "no body begins once the run is stopped")
					})
				})
			}
		}
	}
}
