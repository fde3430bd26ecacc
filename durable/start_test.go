package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

type order struct {
	ID    string
	Total int
}

func adding(bodies *int) *durable.Workflow[order, int] {
	var mu sync.Mutex
	return durable.Define("checkout", func(ctx context.Context, o order) (int, error) {
		return durable.Step(ctx, "add", func(context.Context) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			*bodies++
			return o.Total + *bodies, nil
		})
	})
}

func TestStartIsIdempotentByID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.serve(t, wf)
		in := order{"a", 10}
		for range 3 {
			out, err := run(t, w, wf, "order-42", in)
			require.NoError(t, err)
			require.Equal(t, 11, out)
		}
		w.open(t, with(wf)) // also from another process
		out, err := run(t, w, wf, "order-42", in)
		require.NoError(t, err)
		require.Equal(t, 11, out)
		require.Equal(t, 1, bodies)
		require.Len(t, w.story("order-42"), 4)
	})
}

func TestTwentyAtOnceStartOneRun(t *testing.T) {
	for name, slow := range map[string]bool{"on a fast store": false, "on a slow store": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				wf := adding(&bodies)
				var ctxs []context.Context
				for range 2 { // two processes
					w.serve(t, wf)
					ctxs = append(ctxs, w.ctx())
					if slow {
						w.disk.tamper(func(_ []store.Change, forward func() []error) []error {
							time.Sleep(time.Second)
							return forward()
						})
					}
				}
				var wg sync.WaitGroup
				errs, outs := make([]error, 20), make([]int, 20)
				for i := range 20 {
					wg.Go(func() {
						h, err := wf.Start(ctxs[i%2], "order-42", order{"a", 10})
						if err == nil {
							outs[i], err = h.Wait(context.Background())
						}
						errs[i] = err
					})
				}
				wg.Wait()
				for i := range 20 {
					require.NoError(t, errs[i])
					require.Equal(t, 11, outs[i])
				}
				require.Equal(t, 1, bodies)
			})
		})
	}
}

func TestConflictsAtOnceAreConflicts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.serve(t, wf)
		w.disk.tamper(func(_ []store.Change, forward func() []error) []error {
			time.Sleep(time.Second)
			return forward()
		})
		var wg sync.WaitGroup
		var first, other error
		wg.Go(func() { _, first = wf.Run(w.ctx(), "x", order{"a", 1}) })
		synctest.Wait()
		wg.Go(func() { _, other = wf.Run(w.ctx(), "x", order{"a", 2}) })
		wg.Wait()
		require.NoError(t, first)
		require.ErrorIs(t, other, durable.ErrConflict)
		require.Equal(t, 1, bodies)
	})
}

func TestAnIDInUseForSomethingElseIsAConflict(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		other := durable.Define("refund", func(context.Context, order) (int, error) { t.Error("ran"); return 0, nil })
		w.serve(t, wf, other)
		_, err := run(t, w, wf, "x", order{"a", 1})
		require.NoError(t, err)
		before := w.events("x")

		_, err = other.Start(w.ctx(), "x", order{"a", 1})
		var c *durable.ConflictError
		require.ErrorAs(t, err, &c)
		require.ErrorIs(t, err, durable.ErrConflict)
		require.Equal(t, durable.ConflictError{RunID: "x", Have: "checkout", Want: "refund"}, *c)

		_, err = wf.Start(w.ctx(), "x", order{"a", 2})
		require.ErrorAs(t, err, &c)
		require.True(t, c.SameFlow)
		require.ErrorContains(t, err, "another input")
		require.Equal(t, before, w.events("x"))

		// Also one that failed is there, and is not started again.
		failing := durable.Define("failing", func(context.Context, int) (int, error) { bodies++; return 0, errStock })
		w.serve(t, failing)
		bodies = 0
		for range 2 {
			_, err = run(t, w, failing, "f", 1)
			require.ErrorIs(t, err, durable.ErrRunFailed)
		}
		require.Equal(t, 1, bodies)
	})
}

func TestAutoIDIsReadable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.serve(t, wf)
		ids := map[string]bool{}
		for range 50 {
			h, err := wf.Start(w.ctx(), durable.AutoID, order{"a", 1})
			require.NoError(t, err)
			require.Regexp(t, `^checkout-2000-01-01-[2-9a-hjkmnp-z]{4,}$`, h.ID())
			_, err = h.Wait(w.ctx())
			require.NoError(t, err)
			ids[h.ID()] = true
		}
		require.Len(t, ids, 50)
		require.Equal(t, 50, bodies)
	})
}

func TestAnIDThatIsTakenIsNotHandedOutAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.serve(t, wf)
		var tried []string
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if c := batch[0]; c.Create != nil && len(tried) < 3 {
				tried = append(tried, c.RunID)
				return all(batch, &store.ExistsError{RunID: c.RunID})
			}
			return forward()
		})
		h, err := wf.Start(w.ctx(), durable.AutoID, order{"a", 1})
		require.NoError(t, err)
		require.Len(t, tried, 3)
		require.NotContains(t, tried, h.ID())
		require.Greater(t, len(h.ID()), len(tried[0]), "a longer suffix")
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
	})
}

func TestTheCallersContextNeverTouchesTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		var bodyErr error
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
				<-release
				bodyErr = ctx.Err()
				return 1, nil
			})
		})
		w.serve(t, wf)
		why := errors.New("the caller went home")
		ctx, cancel := context.WithCancelCause(w.ctx())
		h, err := wf.Start(ctx, "r", 0)
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() { _, err := h.Wait(ctx); got <- err }()
		synctest.Wait()
		cancel(why)
		require.ErrorIs(t, <-got, why)
		close(release)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.NoError(t, bodyErr)

		_, err = wf.Start(ctx, "never", 0)
		require.ErrorIs(t, err, why)
		_, err = w.eng.Get(w.ctx(), "never")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

// The end of the context while the start is being written ends the wait for it;
// the run, once written, is executed.
func TestAStartWhoseCallerLeavesWhileItWaitsIsExecuted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
		w.serve(t, wf)
		release := make(chan struct{})
		w.disk.tamper(func(_ []store.Change, forward func() []error) []error { <-release; return forward() })
		go func() { _, _ = wf.Start(w.ctx(), "first", 0) }() // leads the commit
		synctest.Wait()
		ctx, cancel := context.WithTimeout(w.ctx(), time.Second)
		defer cancel()
		_, err := wf.Start(ctx, "second", 0) // waits behind it
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(release)
		w.eventually("first", store.Completed)
		w.eventually("second", store.Completed)
	})
}

func TestAStartThatTheStoreDoesNotTakeSaysSoAndLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.serve(t, wf)
		w.disk.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, errDisk) })
		for _, id := range []string{"r", durable.AutoID} {
			_, err := wf.Start(w.ctx(), id, order{"a", 1})
			require.ErrorIs(t, err, durable.ErrUnavailable)
			require.ErrorIs(t, err, errDisk)
			require.ErrorContains(t, err, "was not started")
		}
		w.disk.tamper(nil)
		require.Zero(t, bodies)
		out, err := run(t, w, wf, "r", order{"a", 1})
		require.NoError(t, err)
		require.Equal(t, 2, out)
	})
}

func TestARefStartsAndWaitsForARunElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.boot(t, with(wf))
		w.open(t, durable.Options{})
		ref := durable.Ref[order, int]("checkout")
		h, err := ref.Start(w.ctx(), "r", order{"a", 1})
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 2, out)
		// And it is the same run for whoever has the code.
		_, err = ref.Start(w.ctx(), "r", order{"a", 1})
		require.NoError(t, err)
		require.Equal(t, 1, bodies)
	})
}

func TestAttributesAreKeptForSearching(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := adding(&bodies)
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", order{"a", 1}, durable.Attributes(map[string]string{"customer": "7"}), durable.Attributes(map[string]string{"region": "eu"}))
		require.NoError(t, err)
		_, err = run(t, w, wf, "other", order{"a", 1})
		require.NoError(t, err)
		p, err := w.eng.List(w.ctx(), store.Filter{Attributes: map[string]string{"customer": "7", "region": "eu"}})
		require.NoError(t, err)
		require.Len(t, p.Runs, 1)
		require.Equal(t, "r", p.Runs[0].ID)
	})
}

func TestAnInputThatCannotBeStoredIsNamedAndNothingIsStarted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, chan int) (int, error) { return 0, nil })
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", make(chan int))
		var enc *durable.EncodeError
		require.ErrorAs(t, err, &enc)
		require.Equal(t, "chan int", enc.Type)
		_, err = w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

// The input a workflow sees live is the one it sees on replay.
func TestTheInputIsTheSameOnReplay(t *testing.T) {
	type input struct {
		At     time.Time
		P      *int
		hidden int
		Any    any
	}
	inWorld(t, func(t *testing.T, w *world) {
		var ins []input
		var h hold
		wf := durable.Define("w", func(ctx context.Context, in input) (int, error) {
			ins = append(ins, in)
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		n := 3
		in := input{time.Now(), &n, 9, 4}
		start(t, w, wf, "r", in)
		n = 77 // the caller's value is the caller's
		synctest.Wait()
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, ins[0], ins[1])
		require.Equal(t, 3, *ins[0].P)
		require.Zero(t, ins[0].hidden)
	})
}

func TestAnOutputIsTheSameForEveryoneWhoWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (map[string]any, error) {
			return map[string]any{"n": 7, "at": time.Now()}, nil
		})
		w.serve(t, wf)
		live, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		again, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		w.open(t, durable.Options{})
		elsewhere, err := wait(t, w, durable.Ref[int, map[string]any]("w"), "r")
		require.NoError(t, err)
		require.Equal(t, live, again)
		require.Equal(t, live, elsewhere)
		_, err = wait(t, w, durable.Ref[int, []int]("w"), "r")
		var und *durable.UndecodableError
		require.ErrorAs(t, err, &und)
		require.Equal(t, "[]int", und.Wanted)
	})
}

func TestTwoVersionsServeTheirRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		define := func(v string) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				return durable.Step(ctx, "s", func(context.Context) (string, error) { return v, nil })
			}, durable.Version(v))
		}
		one, two := define("1"), define("2")
		w.boot(t, with(one, two))
		for id, wf := range map[string]*durable.Workflow[int, string]{"a": one, "b": two} {
			out, err := run(t, w, wf, id, 0)
			require.NoError(t, err)
			require.Equal(t, w.row(id).Version, out)
		}
		require.Equal(t, []string{"1", "2"}, []string{w.row("a").Version, w.row("b").Version})
		out, err := run(t, w, durable.Ref[int, string]("w"), "c", 0)
		require.NoError(t, err)
		require.Equal(t, "2", out, "without a version the newest takes it")
	})
}

func TestInfoTellsHowFarARunIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for i := range 3 {
				_ = durable.Do(ctx, fmt.Sprint("s", i), func(context.Context) error { time.Sleep(time.Second); return nil })
			}
			return 0, durable.Do(ctx, "hold", h.body)
		}, durable.Steps("s0", "s1", "s2", "hold"))
		w.serve(t, wf)
		began := time.Now()
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		i, err := w.eng.Get(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, 3, i.Steps)
		require.Equal(t, []string{"s0", "s1", "s2", "hold"}, i.Declared)
		require.Equal(t, "s2", i.Key)
		require.Equal(t, began.Add(3*time.Second).UTC(), i.LastCheckpoint.Time())
		require.Equal(t, store.Running, i.Status)
		require.Equal(t, w.eng.ID(), i.Owner)
		require.Equal(t, "w", wf.Name())
		w.reboot(t, with(wf))
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		events := w.events("r")
		last := events[len(events)-1]
		require.EqualValues(t, 4, last.Steps)
		require.Equal(t, 3*time.Second, last.Active, "the time nobody executed it does not count")
		require.EqualValues(t, 1, w.row("r").Resumes)
		var told []string
		for ev, err := range w.eng.History(w.ctx(), "r") {
			require.NoError(t, err)
			told = append(told, operate.Describe(ev))
		}
		require.Equal(t, "step_completed s0", told[2])
		require.Len(t, told, len(events))
	})
}
