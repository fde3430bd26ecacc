package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// edit is a change of a workflow's code.
type edit struct {
	name     string
	old, new maker
	// named is how a stop may be called; nil: the changed code always goes on.
	named []string
	// undecodable: it stops because a recorded value cannot be read.
	undecodable bool
	// stops says at which moments the changed code cannot go on; nil: where what
	// is recorded is no beginning of what it does.
	stops func(m moment) bool
	// asBefore says at which moments the run ends as the old code would end it.
	asBefore func(m moment) bool
	// beside: other branches or items may go on while one is found changed.
	beside bool
}

func plain(names ...string) maker { return of(func(p *play) { p.steps(names...) }) }

func nowhere(moment) bool { return false }

var (
	eitherInsert = []string{durable.ChangeInsertedOrRenamed}
	eitherRemove = []string{durable.ChangeRemovedOrReordered, durable.ChangeRemoved}
	kindChanged  = []string{durable.ChangeKind}
	otherItems   = []string{durable.ChangeItems}
)

type priceV1 struct{ Total int }
type priceV2 struct {
	Total    int
	Currency string
}

var errFull = errors.New("full")

// edits are the typical changes of a workflow's code.
func edits() []edit {
	items := func(in ...int) maker { return itemsOf(in, 2, "one", "two") }
	return slices.Concat(editsOfSteps(), editsOfWaits(), editsOfStructure(items), editsOfValues())
}

func editsOfSteps() []edit {
	return []edit{
		{name: "insert a step at the start", old: plain("a", "b", "c"), new: plain("x", "a", "b", "c"), named: eitherInsert},
		{name: "insert a step in the middle", old: plain("a", "b", "c"), new: plain("a", "x", "b", "c"), named: eitherInsert},
		{name: "insert a step at the end", old: plain("a", "b"), new: plain("a", "b", "x")},
		{name: "remove the first step", old: plain("a", "b", "c"), new: plain("b", "c"), named: append(eitherRemove, durable.ChangeInsertedOrRenamed)},
		{name: "remove a step in the middle", old: plain("a", "b", "c"), new: plain("a", "c"), named: append(eitherRemove, durable.ChangeInsertedOrRenamed)},
		{name: "remove the last step", old: plain("a", "b", "c"), new: plain("a", "b"), named: eitherRemove},
		{name: "rename a step", old: plain("a", "b", "c"), new: plain("a", "x", "c"), named: eitherInsert},
		{name: "rename a step by its case", old: plain("a", "load_user", "c"), new: plain("a", "loadUser", "c"), named: []string{durable.ChangeRenamed}},
		{name: "rename a step, with declared names", old: plain("a", "b", "c"), named: []string{durable.ChangeRenamed},
			new: ofInput(7, func(p *play, _ int) { p.steps("a", "x", "c") }, durable.Steps("a", "x", "c"))},
		{name: "insert a step, with declared names", old: plain("a", "b", "c"), named: []string{durable.ChangeInserted},
			new: ofInput(7, func(p *play, _ int) { p.steps("a", "x", "b", "c") }, durable.Steps("a", "x", "b", "c"))},
		{name: "reorder two steps", old: plain("a", "b", "c"), new: plain("b", "a", "c"), named: append(eitherRemove, durable.ChangeInsertedOrRenamed)},
		{name: "reorder two steps, with declared names", old: plain("a", "b", "c"), named: []string{durable.ChangeReordered, durable.ChangeInserted},
			new: ofInput(7, func(p *play, _ int) { p.steps("b", "a", "c") }, durable.Steps("b", "a", "c"))},
		{name: "a step becomes a retry", old: plain("a", "b", "c"), new: of(func(p *play) { p.steps("a").retry("b", 0).steps("c") })},
		{name: "a retry becomes a step", old: of(func(p *play) { p.steps("a").retry("b", 1) }), new: of(func(p *play) {
			p.steps("a").do(func(ctx context.Context) (any, error) { return durable.Step(ctx, "b", p.flaky("b", 1)) })
		}), asBefore: func(m moment) bool { return m.done["r b"] }},
		{name: "a step becomes a Once", old: plain("a", "b", "c"), new: of(func(p *play) {
			p.steps("a").do(func(ctx context.Context) (any, error) { return durable.Once(ctx, "b", p.body("b")) }).steps("c")
		})},
		{name: "wrap two steps in a retry", old: plain("a", "b", "c"), new: of(func(p *play) { p.retry("a and b", 1).steps("c") }), named: eitherInsert},
		{name: "a loop gets longer", old: of(func(p *play) { p.loop("s", 3).steps("end") }), new: of(func(p *play) { p.loop("s", 4).steps("end") }), named: []string{durable.ChangeInserted}},
		{name: "a loop gets shorter", old: of(func(p *play) { p.loop("s", 4).steps("end") }), new: of(func(p *play) { p.loop("s", 2).steps("end") }), named: []string{durable.ChangeRemoved, durable.ChangeInsertedOrRenamed}},
		{name: "a map is ranged over in another order", old: plain("send-x", "send-y", "send-z"), new: plain("send-y", "send-z", "send-x"), named: append(eitherRemove, durable.ChangeInsertedOrRenamed)},
		{name: "insert a Once", old: plain("a", "b"), new: of(func(p *play) {
			p.steps("a").do(func(ctx context.Context) (any, error) { return durable.Once(ctx, "pay", p.body("paid")) }).steps("b")
		}), named: eitherInsert},
		{name: "a condition on what is recorded", old: plain("a", "b"), new: of(func(p *play) {
			if p.steps("a"); p.err == nil && p.out[0] == "a" {
				p.steps("b")
			} else {
				p.steps("x")
			}
		})},
		{name: "insert with Patched", old: plain("a", "b", "c"), new: of(func(p *play) {
			p.steps("a")
			if durable.Patched(p.ctx, "x") {
				p.steps("x")
			}
			p.steps("b", "c")
		}), stops: nowhere, asBefore: func(m moment) bool { return len(m.calls[""]) > 1 }},
		{name: "remove with Patched", old: plain("a", "b", "c"), new: of(func(p *play) {
			p.steps("a")
			if !durable.Patched(p.ctx, "without-b") {
				p.steps("b")
			}
			p.steps("c")
		}), stops: nowhere, asBefore: func(m moment) bool { return len(m.calls[""]) > 1 }},
		{name: "DeprecatePatch for Patched", old: patchedX, new: of(func(p *play) {
			p.steps("a")
			durable.DeprecatePatch(p.ctx, "x")
			p.steps("x", "b")
		})},
		{name: "Patched is taken away", old: patchedX, new: plain("a", "x", "b"), named: []string{durable.ChangePatchRemoved},
			stops: func(m moment) bool { return m.has("", store.Patched) }},
		{name: "go back to before Patched", old: patchedX, new: plain("a", "b"), named: []string{durable.ChangePatchRemoved, durable.ChangeInsertedOrRenamed, durable.ChangeRemovedOrReordered},
			stops: func(m moment) bool { return m.has("", store.Patched) }},
		{name: "insert, matched by name", old: plain("a", "b"), new: byName("x", "a", "b"), stops: nowhere},
		{name: "remove, matched by name", old: plain("a", "b", "c"), new: byName("a", "c"), stops: nowhere},
		{name: "reorder, matched by name", old: plain("a", "b", "c"), new: byName("c", "b", "a"), stops: nowhere},
		{name: "another kind, matched by name", old: plain("a", "go"), named: kindChanged, stops: func(m moment) bool { return m.done["r go"] },
			new: ofInput(7, func(p *play, _ int) { p.wait("go").steps("a") }, durable.MatchByName())},
	}
}

func byName(names ...string) maker {
	return ofInput(7, func(p *play, _ int) { p.steps(names...) }, durable.MatchByName())
}

var patchedX = of(func(p *play) {
	p.steps("a")
	if durable.Patched(p.ctx, "x") {
		p.steps("x")
	}
	p.steps("b")
})

func editsOfWaits() []edit {
	waits := func(name string, o ...durable.AwaitOption) maker {
		return of(func(p *play) { p.steps("a").wait(name, o...).steps("b") })
	}
	sleeps := func(d time.Duration) maker { return of(func(p *play) { p.steps("a").sleep(d).steps("b") }) }
	return []edit{
		{name: "a wait gets another name", old: waits("go"), new: waits("proceed"), named: eitherInsert},
		{name: "a wait gets a time limit", old: waits("go"), new: waits("go", durable.Timeout(time.Hour))},
		{name: "a sleep gets longer", old: sleeps(time.Hour), new: sleeps(48 * time.Hour)},
		{name: "a step becomes a wait", old: plain("a", "go", "b"), new: waits("go"), named: kindChanged},
		{name: "a wait becomes a sleep", old: waits("go"), new: sleeps(time.Hour), named: []string{durable.ChangeInserted}},
		{name: "a step becomes a child", old: plain("a", "kid", "b"), new: childOf("kid"), named: kindChanged},
		{name: "a child gets another name", old: childOf("kid"), new: childOf("niece"), named: eitherInsert, beside: true},
	}
}

func childOf(name string) maker {
	return of(func(p *play) {
		p.steps("a").do(func(ctx context.Context) (any, error) { return child(p.b, name).Run(ctx, durable.AutoID, 1) }).steps("b")
	})
}

// itemsOf is a Map over these items, each with two steps, and a step behind it.
func itemsOf(in []int, concurrency int, steps ...string) maker {
	return of(func(p *play) {
		p.items("m", in, concurrency, func(p *play, item int) {
			for _, s := range steps {
				p.do(func(ctx context.Context) (any, error) { return durable.Step(ctx, s, p.body(fmt.Sprint(s, item))) })
			}
		}).steps("end")
	})
}

// other reports whether something is recorded of one of these items of the Map
// "m".
func other(items ...int) func(m moment) bool {
	return func(m moment) bool {
		return slices.ContainsFunc(items, func(n int) bool { return m.has(fmt.Sprintf("m[%d]", n)) })
	}
}

func editsOfStructure(items func(...int) maker) []edit {
	left := func(p *play) { p.steps("l1", "l2") }
	right := func(p *play) { p.steps("r1") }
	in := []int{1, 2, 3}
	return []edit{
		{name: "a loop becomes a Map", old: of(func(p *play) { p.loop("m", 3).steps("end") }), new: items(in...), named: kindChanged},
		{name: "add a branch", old: of(func(p *play) { p.branches("left", left).steps("end") }), new: of(func(p *play) { p.branches("left", left, "right", right).steps("end") }),
			named: []string{durable.ChangeInserted, durable.ChangeInsertedOrRenamed}, beside: true},
		{name: "remove a branch", old: of(func(p *play) { p.branches("left", left, "right", right).steps("end") }), new: of(func(p *play) { p.branches("left", left).steps("end") }),
			named: append(eitherRemove, durable.ChangeInserted), beside: true},
		{name: "rename a step in a branch", old: of(func(p *play) { p.branches("left", left, "right", right) }),
			new: of(func(p *play) { p.branches("left", func(p *play) { p.steps("x", "l2") }, "right", right) }), named: eitherInsert, beside: true,
			asBefore: func(m moment) bool { return m.closed["left"] }},
		{name: "move a step into a branch", old: of(func(p *play) { p.steps("l1").branches("right", right) }),
			new: of(func(p *play) { p.branches("left", func(p *play) { p.steps("l1") }, "right", right) }), named: []string{durable.ChangeInserted}, beside: true},
		{name: "move a step into a Map", old: of(func(p *play) {
			p.steps("prepare").items("m", in, 2, func(p *play, _ int) { p.steps("one") })
		}),
			new:   of(func(p *play) { p.items("m", in, 2, func(p *play, _ int) { p.steps("prepare", "one") }) }),
			named: []string{durable.ChangeInserted, durable.ChangeRemovedOrReordered}, beside: true},
		{name: "add a step to the items", old: itemsOf(in, 2, "one", "two"), new: itemsOf(in, 2, "one", "x", "two"), named: eitherInsert, beside: true,
			asBefore: func(m moment) bool { return m.closed["m[0]"] || m.closed["m[1]"] || m.closed["m[2]"] }},
		{name: "change the concurrency of a Map", old: itemsOf(in, 1, "one", "two"), new: itemsOf(in, 3, "one", "two")},
		{name: "append an item", old: items(1, 2), new: items(1, 2, 3), named: otherItems,
			stops: func(m moment) bool { return m.has("end") }},
		{name: "drop the last item", old: items(1, 2, 3), new: items(1, 2), named: otherItems, stops: other(2)},
		{name: "reorder the items", old: items(1, 2, 3), new: items(2, 1, 3), named: otherItems, stops: other(0, 1)},
		{name: "replace an item", old: items(1, 2, 3), new: items(1, 9, 3), named: otherItems, stops: other(1)},
		{name: "add a compensation", old: undone("u1"), new: undone("u1", "u2"), named: eitherInsert},
	}
}

// undone registers compensations, makes a step and fails.
func undone(names ...string) maker {
	return of(func(p *play) {
		for _, n := range names {
			p.run(func(ctx context.Context) error {
				return durable.Compensate(ctx, n, func(ctx context.Context) error { p.b.note(ctx); return nil })
			})
		}
		p.steps("a").run(func(context.Context) error { return durable.Permanent(errFull) })
	})
}

func editsOfValues() []edit {
	price := func(fn func(ctx context.Context, body func(context.Context)) (any, error)) maker {
		return of(func(p *play) {
			p.steps("a").do(func(ctx context.Context) (any, error) { return fn(ctx, func(ctx context.Context) { p.b.note(ctx) }) }).steps("c")
		})
	}
	first := price(func(ctx context.Context, note func(context.Context)) (any, error) {
		v, err := durable.Step(ctx, "b", func(ctx context.Context) (priceV1, error) { note(ctx); return priceV1{5}, nil })
		return v.Total, err
	})
	input := func(in string) maker {
		return of(func(p *play) {
			p.steps("a").do(func(ctx context.Context) (any, error) {
				return durable.Step(ctx, "b", p.body("b"), durable.WithInput(in))
			})
		})
	}
	return []edit{
		{name: "a result gets a field", old: first, new: price(func(ctx context.Context, note func(context.Context)) (any, error) {
			v, err := durable.Step(ctx, "b", func(ctx context.Context) (priceV2, error) { note(ctx); return priceV2{5, "EUR"}, nil })
			return v.Total, err
		})},
		{name: "a result gets another type", old: first, undecodable: true, stops: func(m moment) bool { return m.done["r b"] },
			new: price(func(ctx context.Context, note func(context.Context)) (any, error) {
				return durable.Step(ctx, "b", func(ctx context.Context) (int, error) { note(ctx); return 5, nil })
			})},
		{name: "the input gets a field", old: ofInput(priceV1{5}, func(p *play, in priceV1) { p.steps("a").say(in.Total, p.err) }),
			new: ofInput(priceV2{Total: 5}, func(p *play, in priceV2) { p.steps("a").say(in.Total, p.err) })},
		{name: "the input gets another type", old: ofInput(5, func(p *play, in int) { p.steps("a").say(in, p.err) }), undecodable: true,
			stops: func(moment) bool { return true }, new: ofInput("5", func(p *play, in string) { p.steps("a").say(in, p.err) })},
		{name: "a step works on something else", old: input("x"), new: input("y"), named: []string{durable.ChangeInput},
			stops: func(m moment) bool { return m.has("b") }},
	}
}

// Every edit is made at every moment of the old code's run: just before and just
// after each of its writes. The changed code either ends the run as it should,
// with no body run that has an outcome and none left out, or stops it with a
// difference that names the edit, having run nothing; and what was stopped, the
// old code goes on with.
func TestEveryEditAtEveryMomentEndsRightOrStopsByName(t *testing.T) {
	list := edits()
	require.GreaterOrEqual(t, len(list), 25)
	total := 0
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &trial{edit: e, fresh: func(require.TestingT) *ground { return onMemory(memory.Open()) }}
				total += x.everywhere(t)
			})
		})
	}
	t.Logf("%d edits at %d moments", len(list), total)
}

// everywhere makes the edit at every moment, and returns how many there are.
func (x *trial) everywhere(t *testing.T) (points int) {
	x.clean(t)
	stopped, stops := 0, x.named != nil || x.undecodable
	pass := func() {
		// What goes on at once may share a write or not: one run has more than another.
		for at, died := 1, true; died || at <= x.writes; at++ {
			died = false
			for _, after := range []bool{false, true} {
				ok, stop := x.at(t, death{at, after})
				died = died || ok
				points += oneIf(ok)
				stopped += oneIf(ok && stop)
			}
		}
	}
	pass()
	// Of what goes on at once, one may be done in each write before the other has begun: then
	// no moment shows the edit, and another run has other moments.
	for again := 0; stops && stopped == 0 && again < 20; again++ {
		pass()
	}
	t.Logf("%d moments: %d go on, %d stop", points, points-stopped, stopped)
	require.Less(t, stopped, points, "before its first checkpoint the code may change at will")
	require.Equal(t, stops, stopped > 0)
	return points
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// trial is one edit, and what both editions come to when nothing happens to them.
type trial struct {
	edit
	fresh          func(t require.TestingT) *ground
	oldEnd, newEnd string
	code           moment // of the new edition
	newBodies      []string
	writes         int // of the old edition
}

func ends(end string, err error) string { return fmt.Sprintf("%s, %v", end, err) }

// clean lets both editions run without a crash.
func (x *trial) clean(t *testing.T) {
	x.oldEnd, x.writes, _, _ = x.whole(t, x.old)
	x.newEnd, _, x.code, x.newBodies = x.whole(t, x.new)
}

func (x *trial) whole(t *testing.T, edition maker) (string, int, moment, []string) {
	b, data := &bodies{}, x.fresh(t)
	end, writes, _, err := process(t, data, edition(b), death{}, false)
	m := momentOf(t, data)
	require.True(t, m.over, "it did not end: %v", err)
	data.close(t)
	return ends(end, err), writes, m, b.take()
}

// at kills the old edition at one write and goes on with the new one. ok is false
// when the old one has ended before that write.
func (x *trial) at(t *testing.T, d death) (ok, stop bool) {
	where := fmt.Sprintf("%s: killed at write %d, after=%v", x.name, d.at, d.after)
	b, data := &bodies{}, x.fresh(t)
	defer data.close(t)
	_, _, died, _ := process(t, data, x.old(b), d, false)
	if !died {
		return false, false
	}
	before := b.take()
	m := momentOf(t, data)
	want := x.newEnd
	if m.over || x.asBefore != nil && x.asBefore(m) {
		want = x.oldEnd
	}
	switch {
	case m.over || !m.exists:
	case x.stops != nil:
		stop = x.stops(m)
	default:
		stop = !m.fits(x.code)
	}
	end, _, _, err := process(t, data, x.new(b), death{}, false)
	ran := b.take()
	for _, body := range ran {
		key := body[:len(body)-len("/1")]
		require.False(t, m.done[key], "%s: %s has an outcome and ran again", where, body)
	}
	if !stop {
		if x.asBefore != nil && want == x.oldEnd && x.beside {
			require.NoError(t, err, where) // some of it as before, some as now, and nothing ran twice
			return true, false
		}
		require.Equal(t, want, ends(end, err), where)
		if want == x.newEnd && !m.over {
			x.complete(t, where, m, before, ran)
		}
		return true, false
	}
	x.stopped(t, where, err)
	if !x.beside {
		require.Empty(t, ran, where)
	}
	mixed := len(ran) > 0
	m = momentOf(t, data)
	end, _, _, err = process(t, data, x.old(b), death{}, true)
	for _, body := range b.take() {
		require.False(t, m.done[body[:len(body)-len("/1")]], "%s: %s has an outcome and ran again", where, body)
	}
	if mixed {
		// What stands beside has gone on with the changed code by then, and may
		// fit the old code no more: that stops it too, and misreads nothing.
		if err != nil && !errors.Is(err, durable.ErrDefinitionChanged) {
			require.Equal(t, x.oldEnd, ends(end, err), where)
		}
		return true, true
	}
	require.Equal(t, x.oldEnd, ends(end, err), "%s: resumed with the code it was started with", where)
	return true, true
}

// complete checks that every body of the new edition ran or had an outcome.
func (x *trial) complete(t *testing.T, where string, m moment, before, ran []string) {
	for _, body := range x.newBodies {
		key := body[:len(body)-len("/1")]
		if !m.done[key] {
			require.Contains(t, append(before, ran...), body, "%s: left out", where)
		}
	}
	for _, body := range ran {
		require.Contains(t, x.newBodies, body, "%s: nobody has asked for it", where)
	}
}

// stopped checks that the error names the edit.
func (x *trial) stopped(t *testing.T, where string, err error) {
	require.ErrorIs(t, err, durable.ErrInterrupted, where)
	if x.undecodable {
		var und *durable.UndecodableError
		require.ErrorAs(t, err, &und, where)
		require.NotEmpty(t, und.Recorded, where)
		require.NotEmpty(t, und.Wanted, where)
		return
	}
	var changed *durable.DefinitionChangedError
	require.ErrorAs(t, err, &changed, where)
	require.Contains(t, x.named, changed.Change, "%s: %v", where, changed)
	if changed.Call != "" && changed.Scope != "~undo" { // the engine calls compensations
		require.Regexp(t, `changes(_world)?_test\.go:\d+$`, changed.Source, where)
	}
}
