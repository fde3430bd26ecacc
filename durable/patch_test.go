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
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// asked is a workflow that asks for a change between two steps, waits, and asks
// again; way tells how it was answered.
func asksBefore(way func(ctx context.Context) string) *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		p := &play{ctx: ctx, b: &bodies{}}
		p.steps("a")
		first := way(ctx)
		p.steps(first)
		p.run(func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) })
		p.steps("b")
		if again := way(ctx); again != first {
			return "", fmt.Errorf("%s and then %s", first, again)
		}
		return p.result()
	})
}

func patchedWay(ctx context.Context) string {
	if durable.Patched(ctx, "new/way") {
		return "new"
	}
	return "old"
}

func TestPatchedIsTrueForNewRunsFalseForOldOnesAndKeepsItsAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		before, after := asksBefore(func(context.Context) string { return "old" }), asksBefore(patchedWay)
		w.boot(t, with(before))
		start(t, w, before, "before", 0)
		w.eventually("before", store.Waiting)
		w.reboot(t, with(after))
		start(t, w, after, "after", 0)
		w.eventually("after", store.Waiting)
		w.reboot(t, with(after))
		for id, want := range map[string]string{"before": "a old b", "after": "a new b"} {
			out, err := wait(t, w, after, id)
			require.NoError(t, err)
			require.Equal(t, want, out)
		}
		require.NotContains(t, strings.Join(w.story("before"), ","), "patched", "it costs nothing to a run that was there before")
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "step_completed a", "patched ~patched:new%2Fway", "step_completed new",
			"timer_set sleep", "run_claimed", "timer_fired sleep", "step_completed b", "workflow_completed",
		}, w.story("after"))
	})
}

// A fork has copied calls of the new way, and goes on with it.
func TestAForkKeepsTheAnswerOfPatched(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := asksBefore(patchedWay)
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		for id, at := range map[string]int64{"after": 0, "before": seqOf(t, w, "r", "a")} {
			_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: id, At: at})
			require.NoError(t, err)
			out, err := wait(t, w, wf, id)
			require.NoError(t, err)
			require.Equal(t, "a new b", out)
			require.Equal(t, 1, strings.Count(strings.Join(w.story(id), ","), "patched ~"), w.story(id))
		}
	})
}

// The marker shifts nothing: the calls of a run count alike with and without it,
// and it takes no write of its own.
func TestAMarkerHasNoOrdinalAndRidesAlong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := asksBefore(patchedWay)
		w.boot(t, with(wf))
		writes := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error { writes++; return forward() })
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.Equal(t, 4, writes, "created, a, new with its marker, the timer")
		ordinals := map[string]int32{}
		for _, e := range w.events("r") {
			ordinals[e.Key] = e.Ordinal
		}
		require.Equal(t, map[string]int32{"": 0, "a": 1, "~patched:new%2Fway": 2, "new": 2, "sleep": 3}, ordinals)
		form, err := operate.On(w.eng).Form(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, []string{"a", "new", "sleep"}, form.Observed, "a marker is no call")
	})
}

// Patched, then DeprecatePatch, then neither: a run goes through all three.
func TestAChangeIsDeprecatedAndThenForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		deprecated := asksBefore(func(ctx context.Context) string { durable.DeprecatePatch(ctx, "new/way"); return "new" })
		gone := asksBefore(func(context.Context) string { return "new" })
		w.boot(t, with(asksBefore(patchedWay)))
		start(t, w, gone, "r", 0)
		w.eventually("r", store.Waiting)
		w.reboot(t, with(deprecated)) // it waits: nobody has replayed it
		start(t, w, deprecated, "fresh", 0)
		w.eventually("fresh", store.Waiting)

		w.reboot(t, with(gone))
		pass(2 * time.Hour)
		_, err := wait(t, w, gone, "r")
		var changed *durable.DefinitionChangedError
		require.ErrorAs(t, err, &changed)
		require.Equal(t, durable.ChangePatchRemoved, changed.Change)
		require.ErrorContains(t, err, `has durable.DeprecatePatch(ctx, "new/way") in its place`)
		out, err := wait(t, w, gone, "fresh")
		require.NoError(t, err, "what was never patched has no marker")
		require.Equal(t, "a new b", out)

		w.reboot(t, with(deprecated))
		goesOn(t, w, "r")
		out, err = wait(t, w, deprecated, "r")
		require.NoError(t, err)
		require.Equal(t, "a new b", out)
	})
}

func TestARunThatCameByDeprecatePatchNeedsNeither(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := &hold{}
		define := func(way func(ctx context.Context)) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				way(ctx)
				p := &play{ctx: ctx, b: &bodies{}}
				p.steps("new")
				return "done", durable.Do(ctx, "hold", held.body)
			})
		}
		first := define(func(ctx context.Context) { durable.Patched(ctx, "x") })
		w.boot(t, with(first))
		start(t, w, first, "r", 0)
		pass(time.Second)
		held.runs = nil
		w.reboot(t, with(define(func(ctx context.Context) { durable.DeprecatePatch(ctx, "x") })))
		pass(time.Second)
		require.Equal(t, 2, held.count())
		// Killed in the body: only the deprecation itself was recorded meanwhile.
		gone := define(func(context.Context) {})
		w.reboot(t, with(gone))
		out, err := wait(t, w, gone, "r")
		require.NoError(t, err)
		require.Equal(t, "done", out)
	})
}

// patchShapes ask in every kind of scope, in a loop, and with both calls.
func patchShapes(j *journal) map[string]*durable.Workflow[int, string] {
	step := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil })
	}
	ways := func(ctx context.Context, change string) (string, error) {
		name := "old"
		if durable.Patched(ctx, change) {
			name = "new"
		}
		return name, step(ctx, name)
	}
	return map[string]*durable.Workflow[int, string]{
		"function": durable.Define("function", func(ctx context.Context, _ int) (string, error) {
			if err := step(ctx, "a"); err != nil {
				return "", err
			}
			one, err := ways(ctx, "one")
			if err != nil {
				return "", err
			}
			durable.DeprecatePatch(ctx, "gone")
			two, err := ways(ctx, "two")
			id := durable.NewID(ctx)
			if err := durable.Do(ctx, "same", func(ctx context.Context) error {
				if a := j.add(ctx); a.Number > 1 || id == "" {
					return errors.New("again")
				}
				return nil
			}); err != nil {
				return "", err
			}
			return one + two, err
		}),
		"loop": durable.Define("loop", func(ctx context.Context, n int) (string, error) {
			var out []string
			for range 3 {
				way, err := ways(ctx, "loop")
				if err != nil {
					return "", err
				}
				out = append(out, way)
			}
			return strings.Join(out, ","), nil
		}),
		"branches and items": durable.Define("branches and items", func(ctx context.Context, _ int) (string, error) {
			branch := func(ctx context.Context) (string, error) {
				if err := step(ctx, "b"); err != nil {
					return "", err
				}
				return ways(ctx, "one")
			}
			left, right := durable.Go(ctx, "left", branch), durable.Go(ctx, "right", branch)
			l, err := left.Wait(ctx)
			if err != nil {
				return "", err
			}
			r, err := right.Wait(ctx)
			if err != nil {
				return "", err
			}
			out, err := durable.Map(ctx, "m", []int{1, 2, 3}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, _ int) (string, error) {
				return ways(ctx, "one")
			})
			return l + r + strings.Join(out, ""), err
		}),
	}
}

func TestPatchedKilledAtAnyWriteAnswersAlike(t *testing.T) {
	for name := range patchShapes(&journal{}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				define := func(j *journal) *durable.Workflow[int, string] { return patchShapes(j)[name] }
				want, clean, writes := lives(t, define, nil)
				require.Contains(t, want, "new")
				require.NotContains(t, want, "old")
				for at := 1; at <= writes; at++ {
					for _, after := range []bool{false, true} {
						got, j, _ := lives(t, define, []death{{at, after}})
						require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
						require.Len(t, j.times(), len(clean.times()))
					}
				}
			})
		})
	}
}

// What cannot be answered is a panic of the run, and of nothing else.
func TestPatchedInTheWrongPlaceIsAnErrorOfTheRun(t *testing.T) {
	require.True(t, durable.Patched(context.Background(), "x"), "outside a run the code is as it is now")
	durable.DeprecatePatch(context.Background(), "x")
	for name, c := range map[string]struct {
		call func(ctx context.Context) error
		says string
	}{
		"in a body": {func(ctx context.Context) error {
			return durable.Do(ctx, "s", func(ctx context.Context) error { durable.Patched(ctx, "x"); return nil })
		}, "in the body of s"},
		"without name": {func(ctx context.Context) error { durable.Patched(ctx, ""); return nil }, "must not be empty"},
		"nil context":  {func(context.Context) error { var none context.Context; durable.DeprecatePatch(none, "x"); return nil }, "nil context"},
		"outer context": {func(outer context.Context) error {
			f := durable.Go(outer, "b", func(context.Context) (bool, error) { return durable.Patched(outer, "x"), nil })
			_, err := f.Wait(outer)
			return err
		}, "with the context of"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, c.call(ctx) })
				w.serve(t, wf)
				_, err := run(t, w, wf, "r", 0)
				var p *durable.PanicError
				require.ErrorAs(t, err, &p)
				require.ErrorContains(t, err, c.says)
			})
		})
	}
}
