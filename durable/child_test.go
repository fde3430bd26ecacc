package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

var errNoStock = errors.New("no stock")

// ship is a child, order its parent.
var ship = durable.Define("ship", func(ctx context.Context, item string) (string, error) {
	if item == "nothing" {
		return "", durable.Permanent(fmt.Errorf("shipping: %w", errNoStock))
	}
	if err := durable.Sleep(ctx, time.Hour); err != nil {
		return "", err
	}
	return durable.Step(ctx, "post", func(context.Context) (string, error) { return "parcel of " + item, nil })
})

func orderOf(o ...durable.StartOption) *durable.Workflow[string, string] {
	return durable.Define("order", func(ctx context.Context, item string) (string, error) {
		child, err := ship.Start(ctx, durable.AutoID, item, o...)
		if err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "meanwhile", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return child.Wait(ctx)
	})
}

func TestAChildIsStartedOnceAndItsResultIsRecordedAcrossCrashes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := durable.Options{Workflows: []durable.Definition{orderOf(), ship}}
		w.boot(t, o)
		_, err := orderOf().Start(w.ctx(), "o1", "lamp")
		require.NoError(t, err)
		synctest.Wait()
		row := w.row("o1/ship")
		require.Equal(t, "o1", row.Parent)
		require.Equal(t, "ship", row.ParentKey)
		require.Equal(t, store.Waiting, w.row("o1").Status)
		for range 3 {
			time.Sleep(10 * time.Minute)
			w.reboot(t, o)
		}
		h, _ := orderOf().Handle(w.ctx(), "o1")
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "parcel of lamp", out)
		page, err := w.data.List(context.Background(), store.Filter{Parents: []string{"o1"}})
		require.NoError(t, err)
		require.Len(t, page.Runs, 1)
		require.Contains(t, w.story("o1"), "child_started ship")
		require.Contains(t, w.story("o1"), "child_finished ship")
	})
}

func TestTheFailureOfAChildIsATypedErrorLiveAndOnReplay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var seen []string
		wf := durable.Define("order", func(ctx context.Context, item string) (string, error) {
			_, err := ship.Run(ctx, durable.AutoID, item)
			var failed *durable.RunError
			if !errors.As(err, &failed) {
				return "", fmt.Errorf("no RunError: %w", err)
			}
			seen = append(seen, fmt.Sprint(failed.RunID, failed.Status, failed.Recoverable, errors.Is(err, errNoStock), err))
			return "told", durable.Sleep(ctx, time.Hour)
		})
		o := durable.Options{Workflows: []durable.Definition{wf, ship}, Errors: []durable.ErrorKind{durable.Sentinel("no stock", errNoStock)}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "o1", "nothing")
		require.NoError(t, err)
		w.eventually("o1", store.Waiting)
		w.reboot(t, o)
		h, _ := wf.Handle(w.ctx(), "o1")
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		require.Len(t, seen, 2)
		require.Equal(t, seen[0], seen[1])
		require.Contains(t, seen[0], "o1/shipfailedfalse true run o1/ship (ship) failed: shipping: no stock")
	})
}

func TestChildrenEndWithTheirParentUnlessTheyAreAbandoned(t *testing.T) {
	for _, abandon := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			var opts []durable.StartOption
			if abandon {
				opts = append(opts, durable.Abandon())
			}
			wf := durable.Define("order", func(ctx context.Context, item string) (string, error) {
				_, err := ship.Start(ctx, "my child", item, opts...)
				return "did not wait", err
			})
			w.serve(t, wf, ship)
			out, err := wf.Run(w.ctx(), "o1", "lamp")
			require.NoError(t, err)
			require.Equal(t, "did not wait", out)
			if !abandon {
				w.eventually("my child", store.Cancelled)
				require.Contains(t, w.row("my child").Reason, "its parent o1 has ended")
				return
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			require.Equal(t, store.Completed, w.row("my child").Status)
		})
	}
}

func TestCancellingAParentCancelsItsChildren(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, orderOf(), ship)
		run, err := orderOf().Start(w.ctx(), "o1", "lamp")
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "o1", "enough"))
		_, err = run.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		w.eventually("o1/ship", store.Cancelled)
	})
}

// ErrCancelled is a run's own cancel, as its calls return it, and ErrRunCancelled that of a run
// that was waited for: code that ends with its run must not end with its child.
func TestAnOwnCancelAndThatOfARunThatIsWaitedForAreToldApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told error // to the parent, of its child
		parent := durable.Define("parent", func(ctx context.Context, _ int) (string, error) {
			child, err := ship.Start(ctx, "child", "lamp")
			if err != nil {
				return "", err
			}
			_, told = child.Wait(ctx)
			return "went on", nil
		})
		var own error // to a run, of itself
		alone := durable.Define("alone", func(ctx context.Context, _ int) (string, error) {
			_, own = durable.Await[string](ctx, "never")
			return "", own
		})
		w.serve(t, parent, alone, ship)
		run, err := parent.Start(w.ctx(), "parent", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "child", "out of stock"))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "went on", out)
		require.ErrorIs(t, told, durable.ErrRunCancelled)
		require.NotErrorIs(t, told, durable.ErrCancelled)

		other, err := alone.Start(w.ctx(), "alone", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "alone", "enough"))
		_, outside := other.Wait(w.ctx())
		require.ErrorIs(t, own, durable.ErrCancelled)
		require.NotErrorIs(t, own, durable.ErrRunCancelled)
		require.ErrorIs(t, outside, durable.ErrRunCancelled)
		require.NotErrorIs(t, outside, durable.ErrCancelled)
		_, _, result := other.Result(w.ctx())
		require.ErrorIs(t, result, durable.ErrRunCancelled)
	})
}

func TestAChildIdThatIsInUseIsAConflict(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, item string) (string, error) {
			_, err := ship.Start(ctx, "taken", item)
			if !errors.Is(err, durable.ErrConflict) {
				return "", fmt.Errorf("no conflict: %w", err)
			}
			return "conflict", nil
		})
		w.serve(t, wf, ship)
		_, err := ship.Start(w.ctx(), "taken", "another")
		require.NoError(t, err)
		out, err := wf.Run(w.ctx(), "o1", "lamp")
		require.NoError(t, err)
		require.Equal(t, "conflict", out)
	})
}

func TestAChildWithoutCodeHereIsExecutedWhereItsCodeIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ref := durable.Ref[string, string]("ship")
		wf := durable.Define("order", func(ctx context.Context, item string) (string, error) { return ref.Run(ctx, durable.AutoID, item) })
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		run, err := wf.Start(w.ctx(), "o1", "lamp")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, store.Pending, w.row("o1/ship").Status)
		ctx := w.ctx()
		w.boot(t, durable.Options{Workflows: []durable.Definition{ship}})
		out, err := run.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "parcel of lamp", out)
	})
}

func TestAFamilyKilledAtAnyWriteEndsAsIfItHadNotBeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(j *journal) []durable.Definition {
			kid := durable.Define("kid", func(ctx context.Context, n int) (int, error) {
				return durable.Step(ctx, "work", func(ctx context.Context) (int, error) { j.add(ctx); return n * n, nil })
			})
			parent := durable.Define("parent", func(ctx context.Context, in int) (string, error) {
				var kids []*durable.Run[int]
				for i := range 3 {
					k, err := kid.Start(ctx, durable.AutoID, i)
					if err != nil {
						return "", err
					}
					kids = append(kids, k)
				}
				sum := 0
				for _, k := range kids {
					v, err := k.Wait(ctx)
					if err != nil {
						return "", err
					}
					sum += v
				}
				return fmt.Sprint(sum), nil
			})
			return []durable.Definition{parent, kid}
		}
		for _, unloadAfter := range []time.Duration{0, time.Nanosecond} {
			o := durable.Options{UnloadAfter: unloadAfter}
			want, clean, writes := livesOf(t, o, define, nil)
			require.Equal(t, "5, <nil>", want)
			for at := 1; at <= writes; at++ {
				for _, after := range []bool{false, true} {
					got, j, _ := livesOf(t, o, define, []death{{at, after}})
					require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
					require.Len(t, j.times(), len(clean.times()))
				}
			}
		}
	})
}

// Two branches start the first children of a run at one moment, and the store is slow to say whether
// there are others. One waited for the other by a mutex: no virtual time passed meanwhile, and the
// bubble of a test stood still for ever.
func TestChildrenThatAreStartedWhileTheStoreIsSlowLetVirtualTimePass(t *testing.T) {
	late := time.AfterFunc(20*time.Second, func() { panic("no virtual time passes") })
	defer late.Stop()
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(context.Context, int) (int, error) { return 1, nil })
		parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
			all, err := durable.Map(ctx, "kids", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, i int) (int, error) {
				return kid.Run(ctx, durable.AutoID, i)
			})
			return len(all), err
		})
		w.boot(t, with(parent, kid))
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "list" {
				time.Sleep(20 * time.Second)
			}
			return forward()
		})
		n, err := parent.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		w.disk.tamperCalls(nil)
		pass(time.Minute) // for the calls that are under way
	})
}
