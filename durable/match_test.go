package durable_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// listedByName is listed with MatchByName.
func listedByName(ran *[]string, names ...string) *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		var out []string
		for _, n := range names {
			v, err := durable.Step(ctx, n, func(context.Context) (string, error) { *ran = append(*ran, n); return n, nil })
			if err != nil {
				return "", err
			}
			out = append(out, v)
		}
		return strings.Join(out, " "), nil
	}, durable.MatchByName())
}

// stoppedAt has the run "r" of these steps stop in the body of hold.
func stoppedAt(t *testing.T, w *world, names ...string) {
	var ran []string
	held := false
	wf := listed(&ran, &held, append(names, "hold")...)
	w.serve(t, wf)
	start(t, w, wf, "r", 0)
	pass(time.Second)
	require.True(t, held)
}

func TestMatchedByNameKnownCallsAreReusedNewOnesRunAndOthersAreReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stoppedAt(t, w, "a", "b", "c", "d")
		var ran []string
		wf := listedByName(&ran, "d", "x", "b", "a", "y")
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "d x b a y", out)
		require.Equal(t, []string{"x", "y"}, ran)
		require.Len(t, w.log.find("recorded calls were not made"), 1)
		require.Contains(t, w.log.String(), "calls=[c]")
		all := w.events("r")
		last := all[len(all)-1]
		require.Equal(t, store.WorkflowCompleted, last.Type)
		require.JSONEq(t, `{"uncalled":["c"]}`, string(last.Data))
		ordinals := ""
		for _, e := range all {
			if e.Type == store.StepCompleted {
				ordinals += fmt.Sprintf("%s%d ", e.Key, e.Ordinal)
			}
		}
		require.Equal(t, "a1 b2 c3 d4 x5 y6 ", ordinals, "new calls stand behind what was recorded")
	})
}

// What runs anew under changed code is replayed like everything else, wherever
// the process is killed.
func TestMatchedByNameKilledAtAnyWriteEndsAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 1; at <= 8; at++ {
			for _, after := range []bool{false, true} {
				w := newWorld(t)
				stoppedAt(t, w, "a", "b", "c")
				w.crash()
				w.expire()
				var ran []string
				edition := edition{defs: []durable.Definition{listedByName(&ran, "x", "c", "y", "a")}}
				_, _, _, _ = process(t, onMemory(w.data), edition, death{at, after}, false)
				end, _, _, err := process(t, onMemory(w.data), edition, death{}, false)
				require.Equal(t, "x c y a, <nil>", ends(end, err), "killed at write %d, after=%v", at, after)
				for _, name := range []string{"a", "c"} {
					require.NotContains(t, ran, name)
				}
			}
		}
	})
}

// force has an operator decide that a run is matched by name: what Resume with
// Force records.
func force(t *testing.T, w *world, id string) {
	h, err := w.data.Load(context.Background(), id, store.Cursor{NoEvents: true})
	require.NoError(t, err)
	last, none, interrupted := h.Run.Last, "", store.Interrupted
	ev := store.Event{Seq: last.Seq + 1, Branch: h.Run.Branch, Type: store.WorkflowInterrupted, At: last.At, Steps: last.Steps, Active: last.Active, Data: []byte(`{"reason":"resume requested","force":true}`)}
	ev.Sum = store.Seal(id, last.Sum, &ev)
	require.NoError(t, w.data.Commit(context.Background(), []store.Change{{
		RunID: id, Expect: store.Expect{Epoch: h.Run.Epoch, TakeEpoch: true, Statuses: []store.Status{store.Interrupted}},
		Events: []store.Event{ev}, Yield: true, Row: &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none},
	}})[0])
}

func TestAForcedRunIsMatchedByNameFromThenOnAndNoOtherIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var ran []string
		held := &hold{}
		define := func(names ...string) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				for _, n := range names {
					if err := durable.Do(ctx, n, func(ctx context.Context) error {
						mu.Lock()
						ran = append(ran, n)
						mu.Unlock()
						if n == "hold" {
							return held.body(ctx)
						}
						return nil
					}); err != nil {
						return "", err
					}
				}
				return strings.Join(names, ","), nil
			})
		}
		before, after := define("a", "b", "hold"), define("x", "b", "hold", "z")
		w.serve(t, before)
		start(t, w, before, "r", 0)
		start(t, w, before, "other", 0)
		pass(time.Second)
		ran, held.runs = nil, nil // it is killed in hold once more
		w.reboot(t, with(after))
		for _, id := range []string{"r", "other"} {
			_, err := wait(t, w, after, id)
			require.ErrorIs(t, err, durable.ErrDefinitionChanged)
		}
		w.crash()
		w.expire()
		force(t, w, "r")
		w.boot(t, with(after))
		pass(time.Second)
		require.Equal(t, []string{"x", "hold"}, ran)
		w.reboot(t, with(after)) // nobody forces it again
		out, err := wait(t, w, after, "r")
		require.NoError(t, err)
		require.Equal(t, "x,b,hold,z", out)
		require.Equal(t, []string{"x", "hold", "hold", "z"}, ran)
		_, err = wait(t, w, after, "other")
		require.ErrorIs(t, err, durable.ErrDefinitionChanged)
	})
}

// By name, a Map may have more or fewer items, but an item is never taken for
// another one; branches are scopes like the function.
func TestItemsAndBranchesMatchedByName(t *testing.T) {
	shape := func(held *hold, ran *[]string, items []int, steps ...string) *durable.Workflow[int, string] {
		var mu sync.Mutex
		note := func(what string) { mu.Lock(); defer mu.Unlock(); *ran = append(*ran, what) }
		return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			f := durable.Go(ctx, "branch", func(ctx context.Context) (string, error) {
				for _, n := range steps {
					if err := durable.Do(ctx, n, func(context.Context) error { note(n); return nil }); err != nil {
						return "", err
					}
				}
				return strings.Join(steps, ""), durable.Do(ctx, "hold", held.body)
			})
			out, err := durable.Map(ctx, "m", items, durable.MapOptions{Concurrency: 1}, func(_ context.Context, i int) (int, error) {
				note(fmt.Sprint("item", i))
				return 10 * i, nil
			})
			if err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "end", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			v, err := f.Wait(ctx)
			return fmt.Sprint(out, v), err
		}, durable.MatchByName())
	}
	for name, c := range map[string]struct {
		items []int
		steps []string
		out   string
		ran   []string
		says  string
	}{
		"more items":          {[]int{1, 2, 3}, []string{"p", "q"}, "[10 20 30]pq", []string{"item3"}, ""},
		"fewer items":         {[]int{1}, []string{"p", "q"}, "[10]pq", nil, "m[1]"},
		"another item":        {[]int{1, 7}, []string{"p", "q"}, "", nil, "Item 1 of m is another one"},
		"edited branch":       {[]int{1, 2}, []string{"q", "x"}, "[10 20]qx", []string{"x"}, "branch/p"},
		"branch with nothing": {[]int{1, 2}, nil, "[10 20]", nil, "branch/p branch/q"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				held := &hold{}
				var ran []string
				before := shape(held, &ran, []int{1, 2}, "p", "q")
				w.serve(t, before)
				start(t, w, before, "r", 0)
				pass(time.Second)
				ran = nil
				after := shape(held, &ran, c.items, c.steps...)
				w.reboot(t, with(after))
				out, err := wait(t, w, after, "r")
				require.ElementsMatch(t, c.ran, ran)
				if c.out == "" {
					require.ErrorIs(t, err, durable.ErrDefinitionChanged)
					require.ErrorContains(t, err, c.says)
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.out, out)
				if c.says != "" {
					require.Contains(t, w.log.String(), c.says)
				}
			})
		})
	}
}

// What was recorded without a value is not read as the zero value of what the code returns now: the
// run stops, and goes on with the code that fits.
func TestAResultIsNotReadFromWhatWasRecordedWithoutOne(t *testing.T) {
	for name, call := range map[string]struct {
		before func(ctx context.Context) error
		now    func(ctx context.Context) (bill, error)
	}{
		"step": {
			func(ctx context.Context) error { return gives(ctx, "s", struct{}{}) },
			func(ctx context.Context) (bill, error) {
				return durable.Step(ctx, "s", func(context.Context) (bill, error) { return bill{1}, nil })
			},
		},
		"branch": {
			func(ctx context.Context) error {
				return second(durable.Go(ctx, "s", func(context.Context) (struct{}, error) { return struct{}{}, nil }).Wait(ctx))
			},
			func(ctx context.Context) (bill, error) {
				return durable.Go(ctx, "s", func(context.Context) (bill, error) { return bill{1}, nil }).Wait(ctx)
			},
		},
		"item": {
			func(ctx context.Context) error {
				return second(durable.Map(ctx, "s", upTo(1), durable.MapOptions{}, func(context.Context, int) (struct{}, error) { return struct{}{}, nil }))
			},
			func(ctx context.Context) (bill, error) {
				out, err := durable.Map(ctx, "s", upTo(1), durable.MapOptions{}, func(context.Context, int) (bill, error) { return bill{1}, nil })
				if err != nil {
					return bill{}, err
				}
				return out[0], nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				old := durable.Define("w", func(ctx context.Context, _ int) (bill, error) {
					if err := call.before(ctx); err != nil {
						return bill{}, err
					}
					return bill{7}, durable.Sleep(ctx, time.Hour)
				})
				changed := durable.Define("w", func(ctx context.Context, _ int) (bill, error) {
					b, err := call.now(ctx)
					if err != nil {
						return bill{}, err
					}
					return b, durable.Sleep(ctx, time.Hour)
				})
				w.boot(t, with(old))
				start(t, w, old, "r", 0)
				pass(time.Minute)
				w.reboot(t, with(changed))
				pass(2 * time.Hour)
				row := w.row("r")
				require.Equal(t, durable.CodeUndecodable, row.Code, row.Status)
				require.Contains(t, row.Reason, "without a value")
				w.reboot(t, with(old))
				out, err := wait(t, w, old, "r")
				require.NoError(t, err)
				require.Equal(t, bill{7}, out)
			})
		})
	}
}

// A program that takes a run without a result for one with a result is told.
func TestAnOutputIsNotReadFromARunWithoutOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (struct{}, error) { return struct{}{}, nil })
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		h, err := durable.Ref[int, bill]("w").Handle(w.ctx(), "r")
		require.NoError(t, err)
		var read *durable.UndecodableError
		_, err = h.Wait(w.ctx())
		require.ErrorAs(t, err, &read)
		_, done, err := h.Result(w.ctx())
		require.ErrorAs(t, err, &read)
		require.True(t, done)
	})
}
