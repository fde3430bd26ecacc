package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// occupied checks that err names the key and the run that holds it.
func occupied(t *testing.T, err error, id, key, holder string) {
	t.Helper()
	require.ErrorIs(t, err, durable.ErrOccupied)
	require.NotErrorIs(t, err, durable.ErrUnavailable)
	var o *store.OccupiedError
	require.ErrorAs(t, err, &o)
	require.Equal(t, store.OccupiedError{RunID: id, Key: key, Holder: holder}, *o)
}

// tryKeys reports whether nobody holds any of these keys.
func tryKeys(w *world, keys ...string) error {
	_, err := durable.Ref[int, int]("nobody's").Start(w.ctx(), durable.AutoID, 0, durable.Exclusive(keys...))
	if err == nil {
		page, listErr := w.eng.List(w.ctx(), store.Filter{Workflows: []string{"nobody's"}, Statuses: []store.Status{store.Pending}})
		if listErr != nil {
			return listErr
		}
		for _, row := range page.Runs {
			err = errors.Join(err, w.eng.Cancel(w.ctx(), row.ID, ""))
		}
	}
	return err
}

func TestARunThatHoldsAKeyKeepsOthersOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "a", 1, durable.Exclusive("tree:/src", "lamp"), durable.Exclusive("lamp"))
		require.NoError(t, err)
		info, err := w.eng.Get(w.ctx(), "a")
		require.NoError(t, err)
		require.Equal(t, []string{"lamp", "tree:/src"}, info.Exclusive)
		synctest.Wait()

		_, err = wf.Start(w.ctx(), "b", 1, durable.Exclusive("desk", "tree:/src"))
		occupied(t, err, "b", "tree:/src", "a")
		require.ErrorContains(t, err, "was not started")
		_, err = w.eng.Get(w.ctx(), "b")
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.NoError(t, tryKeys(w, "desk"), "all or none")
		_, err = durable.Ref[int, int]("elsewhere").Start(w.ctx(), "c", 1, durable.Exclusive("lamp"))
		occupied(t, err, "c", "lamp", "a")

		h, err := wf.Start(w.ctx(), "a", 1, durable.Exclusive("tree:/src", "lamp"))
		require.NoError(t, err, "its own keys are no obstacle")
		require.Equal(t, "a", h.ID())
		_, err = wf.Start(w.ctx(), "a", 2, durable.Exclusive("lamp"))
		require.ErrorIs(t, err, durable.ErrConflict)
	})
}

// Whoever asks for a run that has ended finds it, although another run holds its
// keys by now.
func TestAnEndedRunIsFoundThoughItsKeysAreTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		quick := durable.Define("quick", func(context.Context, int) (int, error) { return 5, nil })
		slow, _ := holding("slow")
		w.serve(t, quick, slow)
		_, err := quick.Run(w.ctx(), "a", 0, durable.Exclusive("desk"))
		require.NoError(t, err)
		_, err = slow.Start(w.ctx(), "b", 0, durable.Exclusive("desk"))
		require.NoError(t, err)
		out, err := quick.Run(w.ctx(), "a", 0, durable.Exclusive("desk"))
		require.NoError(t, err)
		require.Equal(t, 5, out)
	})
}

func TestEveryEndOfARunFreesItsKeysAndNothingElseDoes(t *testing.T) {
	failing := durable.Define("failing", func(context.Context, int) (int, error) { return 0, errStock })
	completing := durable.Define("completing", func(context.Context, int) (int, error) { return 0, nil })
	// Their bodies never come to an end by themselves.
	forever := func(ctx context.Context, _ int) (int, error) {
		_ = durable.Do(ctx, "before", func(context.Context) error { return nil })
		return 0, durable.Do(ctx, "forever", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	}
	held := durable.Define("held", forever)
	boots := durable.Define("boots", forever, durable.OnBoot(durable.FailOnBoot))
	sleeping := durable.Define("sleeping", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, 1000*time.Hour) })
	cancel := func(t *testing.T, w *world) { require.NoError(t, w.eng.Cancel(w.ctx(), "r", "")); pass(time.Second) }
	none := func(*testing.T, *world) {}
	for name, c := range map[string]struct {
		wf    *durable.Workflow[int, int]
		o     []durable.StartOption
		then  func(t *testing.T, w *world)
		ends  store.Status
		frees bool
	}{
		"completed":            {wf: completing, then: none, ends: store.Completed, frees: true},
		"failed":               {wf: failing, then: none, ends: store.Failed, frees: true},
		"cancelled":            {wf: sleeping, then: cancel, ends: store.Cancelled, frees: true},
		"cancelled, not begun": {wf: durable.Ref[int, int]("elsewhere"), then: cancel, ends: store.Cancelled, frees: true},
		"deadline": {wf: sleeping, o: []durable.StartOption{durable.Deadline(time.Minute)}, ends: store.Failed, frees: true,
			then: func(*testing.T, *world) { pass(time.Hour) }},
		"failed on boot": {wf: boots, ends: store.Failed, frees: true,
			then: func(t *testing.T, w *world) { synctest.Wait(); w.reboot(t, with(boots)) }},
		"quarantined": {wf: held, ends: store.Failed, frees: true, then: func(t *testing.T, w *world) {
			for range 4 {
				synctest.Wait()
				w.reboot(t, with(held))
			}
		}},
		"running":     {wf: held, then: none, ends: store.Running},
		"orphaned":    {wf: held, ends: store.Running, then: func(t *testing.T, w *world) { w.crash(); w.expire(); w.serve(t) }},
		"waiting":     {wf: sleeping, then: none, ends: store.Waiting},
		"pending":     {wf: durable.Ref[int, int]("elsewhere"), then: none, ends: store.Pending},
		"interrupted": {wf: held, ends: store.Interrupted, then: func(t *testing.T, w *world) { synctest.Wait(); require.NoError(t, w.eng.Close()); w.serve(t) }},
		"parked": {wf: held, ends: store.Interrupted, then: func(t *testing.T, w *world) {
			synctest.Wait()
			other := durable.Define("held", func(ctx context.Context, _ int) (int, error) {
				return 0, durable.Do(ctx, "another", func(context.Context) error { return nil })
			})
			w.reboot(t, with(other))
			synctest.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(t, failing, completing, held, boots, sleeping)
				_, err := c.wf.Start(w.ctx(), "r", 0, append(c.o, durable.Exclusive("desk", "lamp"))...)
				require.NoError(t, err)
				synctest.Wait()
				c.then(t, w)
				w.eventually("r", c.ends)
				for _, key := range []string{"desk", "lamp"} {
					if err := tryKeys(w, key); c.frees {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, durable.ErrOccupied)
					}
				}
			})
		})
	}
}

func TestResumeTakesTheKeysAgainAllOrNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended, bodies := false, 0
		wf := flaky("w", &mended, &bodies)
		other, h := holding("other")
		w.serve(t, wf, other)
		_, err := wf.Run(w.ctx(), "r", 10, durable.Exclusive("desk", "lamp"))
		require.ErrorContains(t, err, "not configured")
		_, err = other.Start(w.ctx(), "o", 1, durable.Exclusive("lamp"))
		require.NoError(t, err)
		synctest.Wait()

		before, row := w.events("r"), w.row("r")
		err = resume(w.eng, w.ctx(), "r")
		occupied(t, err, "r", "lamp", "o")
		require.ErrorContains(t, err, "was not resumed")
		require.Equal(t, before, w.events("r"))
		require.Equal(t, row, w.row("r"))
		require.NoError(t, tryKeys(w, "desk"), "all or none")
		require.Equal(t, 1, h.count())
		require.Equal(t, store.Running, w.row("o").Status, "the other run is not touched")

		require.NoError(t, w.eng.Cancel(w.ctx(), "o", ""))
		w.eventually("o", store.Cancelled)
		slow := durable.Define("w", func(ctx context.Context, in int) (int, error) {
			_, _ = durable.Step(ctx, "work", func(context.Context) (int, error) { return 0, nil })
			return in, durable.Sleep(ctx, time.Hour)
		})
		w.serve(t, slow)
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		w.eventually("r", store.Waiting)
		for _, key := range []string{"desk", "lamp"} {
			err := tryKeys(w, key)
			occupied(t, err, autoOf(t, err), key, "r")
		}
		pass(2 * time.Hour)
		w.eventually("r", store.Completed)
		require.NoError(t, tryKeys(w, "desk", "lamp"))
	})
}

// autoOf returns the generated id that an OccupiedError is about, and makes sure
// that there is one.
func autoOf(t *testing.T, err error) string {
	t.Helper()
	var o *store.OccupiedError
	require.ErrorAs(t, err, &o)
	require.True(t, strings.HasPrefix(o.RunID, "nobody's-"))
	return o.RunID
}

// A child that found its key held is refused on replay too, although the key is
// free by then; and the other way round.
func TestAChildThatWasRefusedForAKeyIsRefusedOnReplay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		var saw []string
		kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return 1, nil })
		other, _ := holding("other")
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			_, err := kid.Start(ctx, durable.AutoID, 0, durable.Exclusive("desk"))
			var o *store.OccupiedError
			if !errors.As(err, &o) || !errors.Is(err, durable.ErrOccupied) {
				return "", fmt.Errorf("want a refusal: %w", err)
			}
			saw = append(saw, err.Error(), o.Holder)
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return "", err
			}
			out, err := kid.Run(ctx, durable.AutoID, 0, durable.Exclusive("desk"))
			return fmt.Sprint(out), err
		})
		w.serve(t, wf, other, kid)
		_, err := other.Start(w.ctx(), "o", 1, durable.Exclusive("desk"))
		require.NoError(t, err)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "o", ""))
		w.eventually("o", store.Cancelled)
		w.reboot(t, with(wf, other, kid))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "1", out)
		require.Len(t, saw, 4)
		require.Equal(t, saw[:2], saw[2:])
		require.Equal(t, "o", saw[1])
		require.NoError(t, tryKeys(w, "desk"))
	})
}

func TestExclusiveKeysThatCannotBeKeptAreRefused(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
		w.serve(t, wf)
		for _, keys := range [][]string{{""}, {"good", "b\x00d"}, {"\xff"}, {strings.Repeat("k", 1025)}, many} {
			_, err := wf.Start(w.ctx(), "r", 0, durable.Exclusive(keys...))
			require.ErrorIs(t, err, durable.ErrInvalid, "%q", keys)
		}
		_, err := w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = wf.Run(w.ctx(), "r", 0, durable.Exclusive(many[:64]...), durable.Exclusive(many[:64]...), durable.Exclusive())
		require.NoError(t, err)
	})
}

// Runs that hold keys and are killed at any write: the key is free in the end,
// and a child that had to have it got it once.
func TestARunWithExclusiveKeysKilledAtAnyWriteFreesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(j *journal) []durable.Definition {
			kid := durable.Define("kid", func(ctx context.Context, _ int) (string, error) {
				return durable.Step(ctx, "effect", func(ctx context.Context) (string, error) { j.add(ctx); return "done", nil })
			})
			wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				out := ""
				for i := range 2 {
					// The second one can only have the key when the first is over.
					v, err := kid.Run(ctx, durable.AutoID, i, durable.Exclusive("desk"))
					if err != nil {
						return "", err
					}
					holder, err := asks.Start(ctx, durable.AutoID, i, durable.Exclusive("desk"))
					if err != nil {
						return "", err
					}
					_, err = kid.Start(ctx, durable.AutoID, 20+i, durable.Exclusive("desk"))
					out += fmt.Sprint(v, errors.Is(err, durable.ErrOccupied))
					if err := durable.Do(ctx, "free", func(ctx context.Context) error {
						return durable.Signal(ctx, holder.ID(), "answer", 1, durable.SignalID("1"))
					}); err != nil {
						return "", err
					}
					if _, err := holder.Wait(ctx); err != nil {
						return "", err
					}
				}
				return out, nil
			})
			return []durable.Definition{wf, kid, asks}
		}
		want, _, writes := livesOf(t, durable.Options{}, define, nil)
		require.Equal(t, "donetruedonetrue, <nil>", want)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				got, _, _ := livesOf(t, durable.Options{}, define, []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
			}
		}
	})
}
