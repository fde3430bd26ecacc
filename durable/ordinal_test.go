package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A workflow may handle every error that a durable call returns, and go on. What
// it saw must then be what a replay sees: a call has its place in the log, or
// none, the same both times.

// calls are the durable calls, each with the ways in which it can end. They tell
// what they saw.
var calls = map[string]func(ctx context.Context, i int) string{
	"step": func(ctx context.Context, i int) string { return saw(durable.Step(ctx, "step", constant(i))) },
	"relaxed": func(ctx context.Context, i int) string {
		return saw(durable.Step(ctx, "relaxed", constant(i), durable.Relaxed()))
	},
	"long": func(ctx context.Context, i int) string {
		return saw(durable.Step(ctx, "long", constant(i), durable.LongOperation()))
	},
	"once":        func(ctx context.Context, i int) string { return saw(durable.Once(ctx, "once", constant(i))) },
	"step fails":  func(ctx context.Context, i int) string { return saw(durable.Step(ctx, "fails", failing)) },
	"step panics": func(ctx context.Context, i int) string { return saw(durable.Step(ctx, "panics", panicking)) },
	"retry gives up": func(ctx context.Context, i int) string {
		return saw(durable.Retry(ctx, "retry", durable.Policy{MaxAttempts: 2, Initial: time.Second}, failing))
	},
	"not to be kept": func(ctx context.Context, i int) string {
		return saw(durable.Step(ctx, "chan", func(context.Context) (chan int, error) { return make(chan int), nil }))
	},
	"no name": func(ctx context.Context, i int) string { return saw(durable.Step(ctx, "", constant(i))) },
	"name too long": func(ctx context.Context, i int) string {
		return saw(durable.Step(ctx, strings.Repeat("n", 300), constant(i)))
	},
	"bad policy": func(ctx context.Context, i int) string {
		return saw(durable.Retry(ctx, "p", durable.Policy{Multiplier: -1}, constant(i)))
	},
	"no function": func(ctx context.Context, i int) string { return saw(durable.Step[int](ctx, "nil", nil)) },
	"nested": func(ctx context.Context, i int) string {
		return saw(durable.Step(ctx, "nested", func(ctx context.Context) (int, error) { return durable.Step(ctx, "inner", constant(i)) }))
	},
	"outer context": func(ctx context.Context, i int) string {
		return saw(durable.Step(ctx, "outer", func(context.Context) (int, error) { return durable.Step(ctx, "inner", constant(i)) }))
	},
	"sleep":           func(ctx context.Context, i int) string { return saw(0, durable.Sleep(ctx, time.Second)) },
	"sleep backwards": func(ctx context.Context, i int) string { return saw(0, durable.Sleep(ctx, -1)) },
	"time-out": func(ctx context.Context, i int) string {
		return saw(durable.Await[int](ctx, "nothing", durable.Timeout(time.Second)))
	},
	"bad time-out": func(ctx context.Context, i int) string {
		return saw(durable.Await[int](ctx, "nothing", durable.Timeout(-time.Second)))
	},
	"signal": func(ctx context.Context, i int) string {
		return saw(durable.Await[int](ctx, "number", durable.Timeout(time.Second)))
	},
	"wrong signal": func(ctx context.Context, i int) string {
		return saw(durable.Await[int](ctx, "text", durable.Timeout(time.Second)))
	},
	"request": func(ctx context.Context, i int) string {
		_, err := durable.AwaitRequest[int](ctx, "nothing", durable.Timeout(time.Second))
		return saw(0, err)
	},
	"publish":        func(ctx context.Context, i int) string { return saw(0, durable.Publish(ctx, "value", i)) },
	"publish a chan": func(ctx context.Context, i int) string { return saw(0, durable.Publish(ctx, "value", make(chan int))) },
	"attributes": func(ctx context.Context, i int) string {
		return saw(0, durable.SetAttributes(ctx, map[string]string{"a": fmt.Sprint(i)}))
	},
	"bad attribute": func(ctx context.Context, i int) string {
		return saw(0, durable.SetAttributes(ctx, map[string]string{"": "a"}))
	},
	"many attributes": func(ctx context.Context, i int) string {
		return saw(0, durable.SetAttributes(ctx, manyAttributes("x"))) + saw(0, durable.SetAttributes(ctx, manyAttributes("y")))
	},
	"child":         func(ctx context.Context, i int) string { return saw(quickChild.Run(ctx, durable.AutoID, i)) },
	"child fails":   func(ctx context.Context, i int) string { return saw(quickChild.Run(ctx, durable.AutoID, -1)) },
	"child, bad id": func(ctx context.Context, i int) string { return begun(quickChild.Start(ctx, "a\nb", i)) },
	"child, no id":  func(ctx context.Context, i int) string { return begun(quickChild.Start(ctx, "", i)) },
	"child, long id": func(ctx context.Context, i int) string {
		return begun(quickChild.Start(ctx, strings.Repeat("i", 2000), i))
	},
	"child, deep id":  func(ctx context.Context, i int) string { return deep(ctx, 5, i) },
	"child, conflict": func(ctx context.Context, i int) string { return begun(quickChild.Start(ctx, "r", i)) },
	"child, occupied": func(ctx context.Context, i int) string {
		return begun(quickChild.Start(ctx, durable.AutoID, i, durable.Exclusive("taken")))
	},
	"child, too large": func(ctx context.Context, i int) string { return begun(quickChild.Start(ctx, "too large", i)) },
	"child, bad key": func(ctx context.Context, i int) string {
		return begun(quickChild.Start(ctx, durable.AutoID, i, durable.Exclusive("")))
	},
	"go":              func(ctx context.Context, i int) string { return saw(durable.Go(ctx, "go", steppingOn(i)).Wait(ctx)) },
	"go fails":        func(ctx context.Context, i int) string { return saw(durable.Go(ctx, "go", steppingOn(-1)).Wait(ctx)) },
	"go, no function": func(ctx context.Context, i int) string { return saw(durable.Go[int](ctx, "go", nil).Wait(ctx)) },
	"group": func(ctx context.Context, i int) string {
		g := durable.NewGroup(ctx)
		g.Go("one", func(ctx context.Context) error { _, err := steppingOn(i)(ctx); return err })
		g.Go("two", func(ctx context.Context) error { _, err := steppingOn(-1)(ctx); return err })
		return saw(0, g.Wait())
	},
	"first": func(ctx context.Context, i int) string {
		f := durable.Go(ctx, "runner", steppingOn(i))
		_, v, err := durable.First(ctx, "first", f)
		return saw(v, err)
	},
	"first of none": func(ctx context.Context, i int) string {
		_, v, err := durable.First[int](ctx, "first")
		return saw(v, err)
	},
	"map": func(ctx context.Context, i int) string {
		return saw(durable.Map(ctx, "map", []int{i, i + 1}, durable.MapOptions{}, onItem))
	},
	"map fails": func(ctx context.Context, i int) string {
		return saw(durable.Map(ctx, "map", []int{i, -1, i}, durable.MapOptions{Concurrency: 1}, onItem))
	},
	"map of chans": func(ctx context.Context, i int) string {
		return saw(durable.Map(ctx, "map", []chan int{nil}, durable.MapOptions{}, func(context.Context, chan int) (int, error) { return 0, nil }))
	},
	"bad map": func(ctx context.Context, i int) string {
		return saw(durable.Map(ctx, "map", []int{1}, durable.MapOptions{Concurrency: -1}, onItem))
	},
	"map of a sequence": func(ctx context.Context, i int) string {
		return saw(durable.MapSeq(ctx, "seq", slices.Values([]int{i, i + 1}), durable.MapOptions{}, onItem, 0, func(sum, v int) int { return sum + v }))
	},
	"patched":    func(ctx context.Context, i int) string { return fmt.Sprint(durable.Patched(ctx, "change")) },
	"deprecated": func(ctx context.Context, i int) string { durable.DeprecatePatch(ctx, "old change"); return "" },
	"checkpoint": func(ctx context.Context, i int) string { return saw(0, durable.Checkpoint(ctx)) },
	"draw":       func(ctx context.Context, i int) string { return durable.NewID(ctx) },
}

func constant(i int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return i, nil }
}

func failing(context.Context) (int, error)   { return 0, errors.New("it fails") }
func panicking(context.Context) (int, error) { panic("it panics") }

func steppingOn(i int) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return onItem(ctx, i) }
}

func onItem(ctx context.Context, i int) (int, error) {
	return durable.Step(ctx, "inner", func(context.Context) (int, error) {
		if i < 0 {
			return failing(ctx)
		}
		return i, nil
	})
}

func manyAttributes(prefix string) map[string]string {
	m := map[string]string{}
	for i := range 40 {
		m[fmt.Sprint(prefix, i)] = "v"
	}
	return m
}

// deep starts a child so deep within branches that the id derived for it is too
// long, and goes on there.
func deep(ctx context.Context, levels, i int) string {
	if levels > 0 {
		return saw(durable.Go(ctx, strings.Repeat("d", 250), func(ctx context.Context) (string, error) { return deep(ctx, levels-1, i), nil }).Wait(ctx))
	}
	return begun(quickChild.Start(ctx, durable.AutoID, i)) + saw(durable.Step(ctx, "behind", constant(i)))
}

// quickChild is a child that ends at once.
var quickChild = durable.Define("quick", func(ctx context.Context, i int) (int, error) {
	if i < 0 {
		return failing(ctx)
	}
	return i, nil
})

func saw[T any](v T, err error) string { return fmt.Sprintf("%v, %v\n", v, err) }

func begun(r *durable.Run[int], err error) string {
	if err == nil {
		return r.ID() + "\n"
	}
	return saw("", err)
}

// A pass is one execution of the workflow function.
type onePass struct {
	saw   []string
	fixed int // of these, how many have a recorded step behind them
}

// voyage is a run that makes calls and handles all of their errors.
type voyage struct {
	program []string
	stopAt  int // before which call it is stopped; -1: it is not
	stop    string
	after   error // what the body returns that is under way then
	eng     *durable.Engine
	passes  []*onePass
	undone  map[string]int
}

func (v *voyage) workflow() *durable.Workflow[int, string] {
	return durable.Define("voyage", func(ctx context.Context, _ int) (string, error) {
		p := &onePass{}
		v.passes = append(v.passes, p)
		undo := func(i int) error {
			return durable.Compensate(ctx, fmt.Sprint("undo", i), func(ctx context.Context) error {
				if v.undone[durable.Attempt(ctx).Key]++; i == 0 {
					p.fixed = len(p.saw) // what undo1 has recorded stands behind all of them
				}
				return nil
			})
		}
		if err := errors.Join(undo(0), undo(1)); err != nil {
			return "", err
		}
		for i, name := range v.program {
			if i == v.stopAt {
				_ = durable.Do(ctx, "stop", func(ctx context.Context) error {
					if v.stop == "cancel" {
						if err := v.eng.Cancel(context.Background(), "r", "enough"); err != nil {
							return err
						}
					}
					<-ctx.Done()
					return v.after
				})
			}
			p.saw = append(p.saw, name+": "+calls[name](ctx, i))
			if durable.Do(ctx, fmt.Sprint("fence", i), func(context.Context) error { return nil }) == nil {
				p.fixed = i + 1
			}
		}
		if v.stop == "" {
			return "", errors.New("undo it")
		}
		return "", ctx.Err()
	})
}

// sail executes the run and kills its process at a write, 0: never. It returns
// how many writes there were, and checks what must hold at its end.
func (v *voyage) sail(t require.TestingT, tt *testing.T, dieAt int) (writes int) {
	v.passes, v.undone = nil, map[string]int{}
	w := newWorld(tt)
	wf := v.workflow()
	holder := durable.Define("holder", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, 1000*time.Hour) })
	o := durable.Options{Workflows: []durable.Definition{wf, quickChild, holder}, QuarantineAfter: 100}
	died := false
	var mu sync.Mutex // a cancel is committed beside what the run writes
	sabotage := func() {
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			for _, c := range batch {
				if len(c.Start) > 0 && c.Start[0].RunID == "too large" {
					return all(batch, &store.TooLargeError{RunID: "too large", Size: 2, Limit: 1})
				}
			}
			mu.Lock()
			writes++
			last := writes == dieAt
			died = died || last
			mu.Unlock()
			errs := forward()
			if last {
				w.disk.cut()
				return all(batch, store.ErrClosed)
			}
			return errs
		})
	}
	w.boot(tt, o)
	v.eng = w.eng
	start(tt, w, holder, "holder", 0)
	_, err := holder.Start(w.ctx(), "holder of the key", 0, durable.Exclusive("taken"))
	require.NoError(t, err)
	synctest.Wait()
	options := []durable.StartOption{durable.WithSignal("number", 1), durable.WithSignal("text", "no number")}
	if v.stop == "deadline" {
		options = append(options, durable.Deadline(10*time.Minute))
	}
	_, err = wf.Start(w.ctx(), "r", 0, options...)
	require.NoError(t, err)
	sabotage()
	for range 100 {
		pass(15 * time.Second)
		if died {
			died = false
			w.crash()
			w.expire()
			v.eng = w.open(tt, o)
			sabotage()
			_, err := v.eng.Recover(w.ctx())
			require.NoError(t, err)
			continue
		}
		if w.row("r").Status.Terminal() {
			break
		}
	}
	row := w.row("r")
	want := map[string]store.Status{"": store.Failed, "cancel": store.Cancelled, "deadline": store.Failed}[v.stop]
	require.Equal(t, want, row.Status, "%s %s", row.Code, row.Reason)
	last := v.passes[len(v.passes)-1].saw
	for _, p := range v.passes {
		for i := range p.fixed {
			require.Less(t, i, len(last), "it was seen and is recorded, and the replay does not come to it: %s", p.saw[i])
			require.Equal(t, p.saw[i], last[i], "what was seen and is recorded, and the replay")
		}
	}
	require.Contains(t, v.undone, "~undo/undo0")
	require.Contains(t, v.undone, "~undo/undo1")
	found, err := operate.On(w.eng).Verify(w.ctx(), "r")
	require.NoError(t, err)
	require.Empty(t, found.Findings)
	return writes
}

// everyDeath sails once, and then once more for each write, killed there.
func (v *voyage) everyDeath(t *testing.T) (failure string) {
	writes := 0
	failure = inBubble(t, func(rt require.TestingT, t *testing.T) { writes = v.sail(rt, t, 0) })
	for at := 1; at <= writes && failure == ""; at++ {
		if failure = inBubble(t, func(rt require.TestingT, t *testing.T) { v.sail(rt, t, at) }); failure != "" {
			failure = fmt.Sprintf("killed behind write %d: %s", at, failure)
		}
	}
	return failure
}

// inBubble is bubble for a test that needs a *testing.T as well.
func inBubble(t *testing.T, fn func(rt require.TestingT, t *testing.T)) string {
	c := &collector{}
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if v := recover(); v != nil && v != any(c) {
				panic(v)
			}
		}()
		fn(c, t)
	})
	return c.failure
}

func TestACallThatIsRefusedLeavesNoGapBehind(t *testing.T) {
	for name := range calls {
		for _, stop := range []string{"", "cancel", "deadline"} {
			t.Run(name+" "+stop, func(t *testing.T) {
				v := &voyage{program: []string{name, "relaxed", name}, stop: stop, stopAt: -1}
				if stop != "" {
					v.stopAt = 1
				}
				if failure := v.everyDeath(t); failure != "" {
					t.Fatal(failure)
				}
			})
		}
	}
}

func TestAnyErrorsHandledInAnyOrderAreSeenAgainOnReplay(t *testing.T) {
	var names []string
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(rt *rapid.T) {
		v := &voyage{
			program: rapid.SliceOfN(rapid.SampledFrom(names), 1, 8).Draw(rt, "program"),
			stop:    rapid.SampledFrom([]string{"", "cancel", "deadline"}).Draw(rt, "stop"),
			stopAt:  -1,
		}
		if v.stop != "" {
			v.stopAt = rapid.IntRange(0, len(v.program)-1).Draw(rt, "stop at")
			v.after = rapid.SampledFrom([]error{nil, context.Canceled}).Draw(rt, "after the stop")
		}
		at := rapid.IntRange(0, 30).Draw(rt, "killed behind write")
		if failure := inBubble(t, func(rt require.TestingT, t *testing.T) { v.sail(rt, t, at) }); failure != "" {
			rt.Fatal(failure)
		}
	})
}

// A body that was under way when the run was stopped, and of which nothing is recorded, is
// not there on replay: what is drawn after it must not depend on it.
func TestWhatIsDrawnAfterAStopIsDrawnAgainOnReplay(t *testing.T) {
	for _, program := range [][]string{{"draw"}, {"first", "draw"}, {"draw", "first", "draw"}} {
		for _, stop := range []string{"cancel", "deadline"} {
			t.Run(strings.Join(program, " ")+" "+stop, func(t *testing.T) {
				v := &voyage{program: program, stop: stop, after: context.Canceled}
				if failure := v.everyDeath(t); failure != "" {
					t.Fatal(failure)
				}
			})
		}
	}
}
