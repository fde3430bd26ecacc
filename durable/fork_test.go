package durable_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// family starts a child, makes a step beside it, and waits for both the child and
// a signal.
func family(j *journal) (*durable.Workflow[int, string], *durable.Workflow[int, string]) {
	kid := durable.Define("kid", func(ctx context.Context, _ int) (string, error) {
		return "kid of " + durable.Headers(ctx)["tenant"], durable.Sleep(ctx, time.Hour)
	})
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		first, err := durable.Await[string](ctx, "hint")
		if err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "one", func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
			return "", err
		}
		k, err := kid.Start(ctx, durable.AutoID, 1)
		if err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "beside", func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
			return "", err
		}
		told, err := k.Wait(ctx)
		if err != nil {
			return "", err
		}
		second, err := durable.Await[string](ctx, "hint")
		return first + ", " + told + ", " + second, err
	}), kid
}

func TestAForkOfARunningRunLeavesOutWhatIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf, kid := family(j)
		key := make([]byte, 32)
		o := with(wf, kid)
		o.Encrypt = durable.StaticKeys("k1", map[string][]byte{"k1": key})
		o.CompressAbove = 1
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 1, durable.Header("tenant", "ann"), durable.Attributes(map[string]string{"a": "1", "b": "2"}), durable.Deadline(24*time.Hour))
		require.NoError(t, err)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "hint", "yes"))
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "hint", "more"))
		pass(time.Minute)
		require.Equal(t, store.Waiting, w.row("r").Status)
		events, row := w.events("r"), w.row("r")
		id, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", Attributes: map[string]string{"b": "", "c": "3"}})
		require.NoError(t, err)
		require.Equal(t, "f", id)
		pass(time.Minute)
		require.Equal(t, events, w.events("r"))
		require.Equal(t, row, w.row("r"))
		require.Equal(t, []int{1, 2}, j.counts("one/1", "beside/1"))
		require.Len(t, j.times(), 3, "effects of the fork have keys of their own")
		require.Equal(t, store.Waiting, w.row("f/kid").Status)
		fork := w.row("f")
		require.Equal(t, map[string]string{"a": "1", "c": "3"}, fork.Attributes)
		require.Equal(t, fork.CreatedAt.Add(24*time.Hour), fork.DeadlineAt)
		require.Empty(t, fork.Parent)
		require.Zero(t, fork.Inbox)

		// Done again with the same words, it is done already.
		for range 2 {
			again, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
			require.NoError(t, err)
			require.Equal(t, "f", again)
		}
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", At: 1})
		require.ErrorIs(t, err, durable.ErrConflict)
		_, err = operate.On(w.eng).Fork(w.ctx(), "f", operate.ForkOptions{ID: "r"})
		require.ErrorIs(t, err, durable.ErrConflict)

		require.NoError(t, w.eng.Signal(w.ctx(), "f", "hint", "another"))
		w.reboot(t, o)
		out, err := wait(t, w, wf, "f")
		require.NoError(t, err)
		require.Equal(t, "yes, kid of ann, another", out)
		out, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "yes, kid of ann, more", out)
	})
}

func TestAForkOfARunThatHasEndedGoesOnFromWhereItWasTaken(t *testing.T) {
	for _, end := range []store.Status{store.Completed, store.Failed, store.Cancelled} {
		t.Run(string(end), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j := &journal{}
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					for _, name := range []string{"one", "two"} {
						if err := durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
							return "", err
						}
					}
					switch {
					case end == store.Failed && j.counts("two/1")[0] == 1:
						return "", errStock
					case end == store.Cancelled && j.counts("two/1")[0] == 1:
						return "", durable.Sleep(ctx, time.Hour)
					}
					return "done", nil
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				synctest.Wait()
				if end == store.Cancelled {
					require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
				}
				w.eventually("r", end)
				_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", At: seqOf(t, w, "r", "one")})
				require.NoError(t, err)
				out, err := wait(t, w, wf, "f")
				require.NoError(t, err)
				require.Equal(t, "done", out)
				require.Equal(t, []int{1, 2}, j.counts("one/1", "two/1"))
				require.Equal(t, end, w.row("r").Status)
			})
		})
	}
}

func TestAForkTakesTheKeysOfItsSource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		w.boot(t, with(wf))
		_, err := wf.Start(w.ctx(), "r", 1, durable.Exclusive("door"))
		require.NoError(t, err)
		synctest.Wait()
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
		occupied(t, err, "f", "door", "r")
		_, err = w.eng.Get(w.ctx(), "f")
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		w.eventually("r", store.Cancelled)
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
		require.NoError(t, err)
		require.Error(t, tryKeys(w, "door"))
	})
}

func TestAForkOfALaterGenerationBeginsThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			v, err := durable.Step(ctx, "add", func(context.Context) (int, error) { return n + 1, nil })
			if err != nil {
				return 0, err
			}
			if v < 3 {
				return 0, durable.Continue(ctx, v)
			}
			if _, err := durable.Await[int](ctx, "go"); err != nil {
				return 0, err
			}
			return v, nil
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
		require.NoError(t, err)
		require.NoError(t, w.eng.Signal(w.ctx(), "f", "go", 1))
		out, err := wait(t, w, wf, "f")
		require.NoError(t, err)
		require.Equal(t, 3, out)
		require.Zero(t, w.row("f").Generation)
		at := seqOf(t, w, "r", "add") // and a jump within it
		_, err = operate.On(w.eng).Jump(w.ctx(), "r", at, operate.JumpOptions{})
		require.NoError(t, err)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "go", 1))
		out, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 3, out)
		require.EqualValues(t, 2, w.row("r").Generation)
		gens, err := operate.On(w.eng).Generations(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, gens, 3)
	})
}

func TestWhereARunGoesOnAndWhatItSkips(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "one", func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
				return 0, err
			}
			return durable.Retry(ctx, "charge", durable.Policy{Initial: time.Hour}, func(ctx context.Context) (int, error) {
				if j.add(ctx).Number < 3 {
					return 0, errStock
				}
				return 3, nil
			})
		}, durable.Steps("one", "charge"))
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		for _, ok := range []bool{true, false} {
			list := 0
			w.crash()
			w.expire()
			w.open(t, with(wf))
			for row, err := range operate.On(w.eng).ListResumable(w.ctx()) {
				require.NoError(t, err)
				require.Equal(t, "r", row.ID)
				list++
			}
			last, lastErr := operate.On(w.eng).LastInterrupted(w.ctx())
			at, has, err := operate.On(w.eng).ResumePoint(w.ctx(), "r")
			require.NoError(t, err)
			require.Equal(t, ok, has)
			require.Equal(t, ok, lastErr == nil)
			if !ok {
				require.Zero(t, list)
				break
			}
			require.Equal(t, 1, list)
			require.Equal(t, "r", last.ID)
			require.Equal(t, operate.ResumePoint{Key: "charge", Kind: "step", Attempt: 2, After: "one"}, at)
			require.Equal(t, "at charge, attempt 2", at.String())
			require.NoError(t, resume(w.eng, w.ctx(), "r"))
			_, err = wait(t, w, wf, "r")
			require.NoError(t, err)
		}
		var skipped [][]string
		for ev, err := range w.eng.History(w.ctx(), "r") {
			require.NoError(t, err)
			keys, err := operate.On(w.eng).Skipped(w.ctx(), "r", ev)
			require.NoError(t, err)
			if ev.Type == store.RunResumed {
				skipped = append(skipped, keys)
			} else {
				require.Empty(t, keys)
			}
		}
		require.Equal(t, [][]string{{"one"}}, skipped)
	})
}

func TestAForkHasNoMoreAttributesThanARunMayHave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		w.boot(t, with(wf))
		full := map[string]string{}
		for i := range durable.MaxAttributes {
			full[fmt.Sprint("a", i)] = "v"
		}
		require.NoError(t, second(wf.Start(w.ctx(), "r", 0, durable.Attributes(full))))
		pass(5 * time.Second)
		one := operate.ForkOptions{ID: "f", Attributes: map[string]string{"another": "v"}}
		require.ErrorIs(t, second(operate.On(w.eng).PlanFork(w.ctx(), "r", one)), durable.ErrInvalid)
		require.ErrorIs(t, second(operate.On(w.eng).Fork(w.ctx(), "r", one)), durable.ErrInvalid)
		one.Attributes["a0"] = ""
		require.NoError(t, second(operate.On(w.eng).Fork(w.ctx(), "r", one)))
		require.Len(t, w.row("f").Attributes, durable.MaxAttributes)
	})
}
