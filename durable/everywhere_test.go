package durable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The places in which a run keeps values of its user.
const (
	inInput = iota + 1
	inStep
	inPointer
	inSlice
	inMap
	inRelaxed
	inSignal
	inItem
	inBranch
	inChild
	inRefused
	inProgress
	inLateSignal
	inOutput
)

var places = map[int]string{
	inInput: "input", inStep: "step", inPointer: "pointer", inSlice: "slice", inMap: "map", inRelaxed: "relaxed step", inSignal: "signal", inItem: "item",
	inBranch: "branch", inChild: "child", inRefused: "refused output", inProgress: "progress", inLateSignal: "late signal", inOutput: "output",
}

// everywhere is a program that keeps a value of T in every place there is. Golden
// histories were made by it, so the calls it makes must not change. It is
// held up in a step, to be killed there: what it looks at afterwards, it reads.
type everywhere[T any] struct {
	hold  *hold
	make  func(place int) T
	wf    *durable.Workflow[T, T]
	child *durable.Workflow[int, T]

	mu   sync.Mutex
	seen map[int]T
}

func newEverywhere[T any](h *hold, value func(place int) T) *everywhere[T] {
	x := &everywhere[T]{hold: h, make: value, seen: map[int]T{}}
	x.wf = durable.Define("everywhere", x.run)
	x.child = durable.Define("child", func(context.Context, int) (T, error) { return value(inChild), nil })
	return x
}

func (x *everywhere[T]) defs() []durable.Definition { return []durable.Definition{x.wf, x.child} }

func (x *everywhere[T]) look(place int, v T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen[place] = v
}

func (x *everywhere[T]) run(ctx context.Context, in T) (out T, err error) {
	x.look(inInput, in)
	for _, part := range []func(context.Context) error{x.steps, x.structure, x.held} {
		if err := part(ctx); err != nil {
			return out, err
		}
	}
	late, err := durable.Await[T](ctx, "late")
	if err != nil {
		return out, err
	}
	x.look(inLateSignal, late)
	return x.make(inOutput), nil
}

func (x *everywhere[T]) steps(ctx context.Context) error {
	v, err := durable.Step(ctx, "value", func(context.Context) (T, error) { return x.make(inStep), nil })
	if err != nil {
		return err
	}
	x.look(inStep, v)
	p, err := durable.Step(ctx, "pointer", func(context.Context) (*T, error) { v := x.make(inPointer); return &v, nil })
	if err != nil {
		return err
	}
	x.look(inPointer, *p)
	list, err := durable.Step(ctx, "slice", func(context.Context) ([]T, error) { return []T{x.make(inSlice), x.make(inSlice)}, nil })
	if err != nil {
		return err
	}
	x.look(inSlice, list[1])
	named, err := durable.Step(ctx, "map", func(context.Context) (map[string]*T, error) {
		v := x.make(inMap)
		return map[string]*T{"a": &v, "none": nil}, nil
	})
	if err != nil {
		return err
	}
	if none, ok := named["none"]; !ok || none != nil {
		return errors.New("the nil of the map is lost")
	}
	x.look(inMap, *named["a"])
	if v, err = durable.Step(ctx, "relaxed", func(context.Context) (T, error) { return x.make(inRelaxed), nil }, durable.Relaxed()); err != nil {
		return err
	}
	x.look(inRelaxed, v)
	v, err = durable.Await[T](ctx, "early")
	x.look(inSignal, v)
	return err
}

func (x *everywhere[T]) structure(ctx context.Context) error {
	items, err := durable.Map(ctx, "items", []int{1, 2}, durable.MapOptions{}, func(context.Context, int) (T, error) { return x.make(inItem), nil })
	if err != nil {
		return err
	}
	x.look(inItem, items[1])
	v, err := durable.Go(ctx, "branch", func(context.Context) (T, error) { return x.make(inBranch), nil }).Wait(ctx)
	if err != nil {
		return err
	}
	x.look(inBranch, v)
	if v, err = x.child.Run(ctx, durable.AutoID, 0); err != nil {
		return err
	}
	x.look(inChild, v)
	return nil
}

// held is killed in its second attempt, and then reads what the first one came
// to and how far the second one had got.
func (x *everywhere[T]) held(ctx context.Context) error {
	refused := true
	_, err := durable.Seek(ctx, "seek", durable.Policy{MaxAttempts: 2, Initial: 1}, func(ctx context.Context) (T, error) {
		a := durable.Attempt(ctx)
		if refused = a.Number == 1; refused {
			return x.make(inRefused), nil
		}
		var v T
		if _, err := a.Failures[0].Output(&v); err != nil {
			return v, err
		}
		x.look(inRefused, v)
		v, ok, err := durable.Progress[T](ctx)
		if err != nil {
			return v, err
		}
		if !ok {
			v = x.make(inProgress)
			if err := durable.SaveProgress(ctx, v); err != nil {
				return v, err
			}
		}
		x.look(inProgress, v)
		return v, x.hold.body(ctx)
	}, func(T) error {
		if refused {
			return errors.New("not good enough")
		}
		return nil
	})
	return err
}

// begin starts the program and brings it to the step in which it is held.
func (x *everywhere[T]) begin(t *testing.T, w *world) {
	t.Helper()
	_, err := x.wf.Start(w.ctx(), "r", x.make(inInput))
	require.NoError(t, err)
	require.NoError(t, w.eng.Signal(w.ctx(), "r", "early", x.make(inSignal)))
	pass(1e9)
	require.Equal(t, 1, x.hold.count(), "%v\n%s", w.story("r"), w.log)
	require.NoError(t, w.eng.Signal(w.ctx(), "r", "late", x.make(inLateSignal), durable.SignalID("late")))
	synctest.Wait()
}

// values returns what the program has looked at, and its output.
func (x *everywhere[T]) values(t *testing.T, w *world) map[int]T {
	t.Helper()
	out, err := wait(t, w, x.wf, "r")
	require.NoError(t, err, "%s", w.log)
	x.mu.Lock()
	defer x.mu.Unlock()
	got := maps.Clone(x.seen)
	got[inOutput] = out
	require.Equal(t, slices.Sorted(maps.Keys(places)), slices.Sorted(maps.Keys(got)))
	return got
}

// unreadable is the place whose value cannot be read at the moment.
var unreadable struct {
	sync.Mutex
	place int
}

func setUnreadable(place int) {
	unreadable.Lock()
	defer unreadable.Unlock()
	unreadable.place = place
}

type picky struct{ Place int }

func (p *picky) UnmarshalJSON(b []byte) error {
	unreadable.Lock()
	defer unreadable.Unlock()
	var n int
	if _, err := fmt.Sscanf(string(b), `{"Place":%d}`, &n); err != nil {
		return err
	}
	if n == unreadable.place && n != 0 {
		return errors.New("not of this kind any more")
	}
	p.Place = n
	return nil
}

// Wherever the value stands, the run stops and nothing is failed; with code that
// can read it, it goes on.
func TestWhatCannotBeReadParksTheRunAndResumeGoesOn(t *testing.T) {
	for place, name := range places {
		if place == inOutput || place == inLateSignal {
			continue // see the tests below
		}
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				defer setUnreadable(0)
				x := newEverywhere(new(hold), func(place int) picky { return picky{place} })
				w.boot(t, with(x.defs()...))
				x.begin(t, w)
				w.crash()
				before := w.story("r")
				setUnreadable(place)
				w.expire()
				w.boot(t, with(x.defs()...))
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeUndecodable, row.Code)
				require.Contains(t, row.Reason, "not of this kind any more")
				// What a body asks for is found unreadable in the body, which begins on
				// record after an end without a word.
				after := slices.DeleteFunc(w.story("r")[len(before):], func(e string) bool { return strings.HasPrefix(e, "step_started ") })
				require.Equal(t, []string{"run_resumed", "workflow_interrupted"}, after)
				require.Equal(t, before, w.story("r")[:len(before)])
				_, err := wait(t, w, x.wf, "r")
				var und *durable.UndecodableError
				require.ErrorAs(t, err, &und)
				require.NotEmpty(t, und.Wanted)
				pass(1e12)
				require.Equal(t, store.Interrupted, w.row("r").Status, "nobody but a person goes on")

				setUnreadable(0)
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				for place, v := range x.values(t, w) {
					require.Equal(t, place, v.Place, places[place])
				}
			})
		})
	}
}

// An outcome that one reader cannot read is still the outcome.
func TestAnOutputThatCannotBeReadStaysTheOutput(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		defer setUnreadable(0)
		x := newEverywhere(&hold{open: true}, func(place int) picky { return picky{place} })
		w.boot(t, with(x.defs()...))
		x.begin(t, w)
		x.values(t, w)
		setUnreadable(inOutput)
		w.open(t, durable.Options{})
		_, err := wait(t, w, x.wf, "r")
		var und *durable.UndecodableError
		require.ErrorAs(t, err, &und)
		require.Equal(t, "the output", und.Key)
		require.Equal(t, store.Completed, w.row("r").Status)
		setUnreadable(0)
		v, err := wait(t, w, x.wf, "r")
		require.NoError(t, err)
		require.Equal(t, inOutput, v.Place)
	})
}
