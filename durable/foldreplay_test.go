package durable_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The fold of a MapSeq panics, live and on every replay. What its items have registered is
// undone after a crash too: those that had ended, and those that were under way.
func TestItemsOfAMapSeqWhoseFoldFailsAreUndoneAfterACrash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var undone []int
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.MapSeq(ctx, "m", slices.Values([]int{0, 1}), durable.MapOptions{Concurrency: 2}, func(ctx context.Context, i int) (int, error) {
				err := durable.Compensate(ctx, "undo", func(context.Context) error { undone = append(undone, i); return nil })
				if err != nil {
					return 0, err
				}
				if err := durable.Do(ctx, "do", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				return i, durable.Sleep(ctx, time.Duration(1+i)*time.Hour)
			}, 0, func(int, int) int { panic("cannot fold") })
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(90 * time.Minute) // item 0 has ended, and its result could not be folded
		w.reboot(t, with(wf))
		pass(90 * time.Minute)
		require.Equal(t, store.Failed, w.row("r").Status)
		slices.Sort(undone)
		require.Equal(t, []int{0, 1}, undone)
	})
}

// A run whose function has gone on after the fold of a MapSeq had panicked is cancelled. Its function is told
// of the panic again, and not of the cancel in its place: what it has registered since is undone.
func TestACancelDoesNotTakeThePlaceOfAFoldThatPanicked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []string
		undone := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.MapSeq(ctx, "items", slices.Values([]int{1}), durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
				return n, nil
			}, 0, func(int, int) int { panic("cannot fold") })
			told = append(told, err.Error())
			if err := durable.Compensate(ctx, "undo", func(context.Context) error { undone++; return nil }); err != nil {
				return 0, err
			}
			return 0, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		w.boot(t, with()) // another program
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		w.reboot(t, with(wf))
		w.eventually("r", store.Cancelled)
		require.Len(t, told, 2)
		require.Equal(t, told[0], told[1])
		require.Equal(t, 1, undone)
	})
}

// panicsAt is a source that panics in place of item n.
func panicsAt(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
		panic("cannot read")
	}
}

// A replay knows what was folded before it reads as far as the source got while the item was under way.
func TestAPanicOfTheSourceDoesNotTakeThePlaceOfThatOfTheFold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []string
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.MapSeq(ctx, "items", panicsAt(2), durable.MapOptions{Concurrency: 1}, func(context.Context, int) (int, error) {
				time.Sleep(time.Second)
				return 0, nil
			}, 0, func(int, int) int { panic("cannot fold") })
			told = append(told, err.Error())
			return 0, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.reboot(t, with(wf))
		pass(2 * time.Hour)
		require.Len(t, told, 2)
		require.Equal(t, told[0], told[1])
	})
}

// A function goes on after the source of a MapSeq has panicked, which no event says. It is told so again,
// whatever has stopped the run since, and also by the replay of a branch that has ended: what it has
// registered is undone.
func TestAPanicOfTheSourceIsToldAgainToWhoHasGoneOn(t *testing.T) {
	type way struct {
		branch bool
		goesOn func(ctx context.Context) error
		then   func(t *testing.T, w *world, o durable.Options)
	}
	rest := func(ctx context.Context) error {
		return cmp.Or(durable.Sleep(ctx, time.Hour), errors.New("fails"))
	}
	away := func(t *testing.T, w *world, o durable.Options) {
		w.crash()
		w.expire()
		w.boot(t, with())
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		w.reboot(t, o)
	}
	for name, c := range map[string]way{
		"it is cancelled while nobody executes it": {goesOn: rest, then: away},
		"it is cancelled in its next step": {
			goesOn: func(ctx context.Context) error {
				return durable.Do(ctx, "hang", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			},
			then: func(t *testing.T, w *world, o durable.Options) {
				w.disk.cutBefore(store.WorkflowCancelled)
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
				pass(time.Minute)
				w.reboot(t, o)
			},
		},
		"its branch has ended": {branch: true, goesOn: rest, then: func(t *testing.T, w *world, o durable.Options) { w.reboot(t, o) }},
	} {
		for n := range 3 {
			t.Run(fmt.Sprint(name, ", item ", n), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var told []string
					undone := 0
					reads := func(ctx context.Context) (int, error) {
						_, err := durable.MapSeq(ctx, "items", panicsAt(n), durable.MapOptions{Concurrency: 1}, func(context.Context, int) (int, error) {
							time.Sleep(time.Second)
							return 0, errors.New("no item")
						}, 0, func(int, int) int { return 0 })
						told = append(told, err.Error())
						return 0, durable.Compensate(ctx, "undo", func(context.Context) error { undone++; return nil })
					}
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						var err error
						if c.branch {
							_, err = durable.Go(ctx, "branch", func(ctx context.Context) (int, error) {
								if _, err := reads(ctx); err != nil {
									return 0, err
								}
								return 0, durable.Do(ctx, "effect", func(context.Context) error { return nil })
							}).Wait(ctx)
						} else {
							_, err = reads(ctx)
						}
						return 0, cmp.Or(err, c.goesOn(ctx))
					})
					w.boot(t, with(wf))
					start(t, w, wf, "r", 0)
					pass(time.Minute)
					c.then(t, w, with(wf))
					pass(2 * time.Hour)
					require.True(t, w.row("r").Status.Terminal())
					require.Len(t, told, 2)
					require.Equal(t, told[0], told[1])
					require.Positive(t, undone)
				})
			})
		}
	}
}
