package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// composite is a process that died within a Map whose first item is done and whose
// second has done one of its two steps.
func composite(t *trial) {
	var mu sync.Mutex
	define := func(count map[string]int) *durable.Workflow[int, []string] {
		return durable.Define("composite", func(ctx context.Context, _ int) ([]string, error) {
			return durable.Map(ctx, "items", []string{"x", "y", "z"}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, item string) (string, error) {
				out := item
				for _, name := range []string{"one", "two"} {
					v, err := durable.Step(ctx, name, func(context.Context) (string, error) {
						mu.Lock()
						defer mu.Unlock()
						count[item+"/"+name]++
						return name, nil
					})
					if err != nil {
						return "", err
					}
					out += " " + v
				}
				return out, nil
			})
		})
	}
	wf := define(map[string]int{})
	first := t.program(wf)
	_, err := wf.Run(first, "template", 0)
	require.NoError(t, err)
	require.NoError(t, first.eng.Close())
	row, events := t.log("template")
	x := history{row, events}
	t.tell(x, "r", t.upTo(x, store.StepCompleted, "items[1]/one"), store.Running)
	t.recovers(t.program(), "r")

	again := map[string]int{}
	wf = define(again)
	p := t.program(wf)
	h, err := wf.Handle(p, "r")
	require.NoError(t, err)
	out, err := h.Wait(p)
	require.NoError(t, err)
	require.Equal(t, []string{"x one two", "y one two", "z one two"}, out)
	require.Equal(t, map[string]int{"y/two": 1, "z/one": 1, "z/two": 1}, again, "what is finished inside is not run again")
}

// orphanedBranch is a branch that was created by a process that died before it made it
// the current one.
func orphanedBranch(t *trial) {
	x := t.order()
	t.tell(x, "r", t.upTo(x, store.StepCompleted, "a"), store.Interrupted)
	row, events := t.log("r")
	last := events[len(events)-1]
	ev := store.Event{Seq: last.Seq + 1, Branch: 1, Type: store.WorkflowRecovered, At: last.At, Steps: last.Steps, Active: last.Active}
	ev.Sum = store.Seal("r", last.Sum, &ev)
	errs := t.outside.Commit(context.Background(), []store.Change{{
		RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Events: []store.Event{ev}, Branch: &store.Branch{N: 1, Cutoff: 1, Reason: "left"},
	}})
	require.NoError(t, errs[0])
	p := t.program()
	t.recovers(p, "r")
	list, err := operate.On(p.eng).Branches(p, "r")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.True(t, list[0].Current)
	require.False(t, list[1].InLineage, "the branch is in no lineage")
	t.finish("r", map[string]int{"b": 1}, true)
}

// noVersion is a row without a version: the run goes on with the version it began with,
// and is pinned to it, although another one is available.
func noVersion(t *trial) {
	x := t.order()
	x.row.Version = ""
	t.tell(x, "r", t.upTo(x, store.SignalReceived, "approve"), store.Running)
	t.recovers(t.program(), "r")
	one, two := newOrders(), newOrders()
	wf := one.workflow("1")
	p := t.program(two.workflow("2"), wf)
	h, err := wf.Handle(p, "r")
	require.NoError(t, err)
	out, err := h.Wait(p)
	require.NoError(t, err)
	require.Equal(t, "a!b", out)
	require.Equal(t, map[string]int{"b": 1}, one.bodies, "by version 1")
	require.Empty(t, two.bodies, "and by it alone")
	row, _ := t.log("r")
	require.Equal(t, "1", row.Version)
}

func versionGone(t *trial) {
	x := t.order()
	x.row.Version = "2"
	t.tell(x, "r", t.upTo(x, store.StepCompleted, "a"), store.Running)
	o := newOrders()
	wf := o.workflow("1")
	p := t.program(wf) // Recover does it on boot
	t.awaits("r", store.Waiting)
	row, _ := t.log("r")
	require.Equal(t, []any{"1", int32(0)}, []any{row.Version, row.Branch}, "nothing is left behind")
	require.NoError(t, durable.Signal(p, "r", "approve", "!"))
	h, err := wf.Handle(p, "r")
	require.NoError(t, err)
	out, err := h.Wait(p)
	require.NoError(t, err)
	require.Equal(t, "a!b", out)
}

func bothVersionsGone(t *trial) {
	x := t.order()
	x.row.Version, x.row.InitialVersion = "2", "2"
	t.tell(x, "r", t.upTo(x, store.StepCompleted, "a"), store.Running)
	o := newOrders()
	p := t.program(o.workflow("1"))
	row, events := t.log("r")
	require.Equal(t, []any{store.Interrupted, durable.CodeNotRegistered, int32(0)}, []any{row.Status, row.Code, row.Branch}, "nobody executes it, and its row says so")
	require.Equal(t, store.WorkflowInterrupted, events[len(events)-1].Type)
	require.Empty(t, o.bodies)
	check := t.untouched("r")
	_, err := p.eng.RecoverRun(p, "r")
	require.ErrorContains(t, err, "run r is unrecoverable: neither its version 2 nor its initial version 2")
	check()
}

// watcherOfNobody watches a run that no process executes: it sees what is in the store,
// and leaves nothing behind.
func watcherOfNobody(t *trial) {
	x := t.order()
	n := t.upTo(x, store.SignalReceived, "approve")
	t.tell(x, "r", n, store.Interrupted)
	check := t.untouched("r")
	p := t.program()
	var seen int64
	for ev, err := range p.eng.Watch(p, "r", 0) {
		require.NoError(t, err)
		if seen = ev.Seq; seen == int64(n) {
			break
		}
	}
	require.Equal(t, int64(n), seen)
	t.recovers(p, "r")
	check()
}

func watcherLeaves(t *trial) {
	x := t.order()
	t.tell(x, "r", t.upTo(x, store.SignalReceived, "approve"), store.Interrupted)
	p := t.program()
	var seen int64
	for ev, err := range p.eng.Watch(p, "r", 0) {
		require.NoError(t, err)
		if seen = ev.Seq; ev.Type == store.StepCompleted {
			break // the client is gone; no process executes the run
		}
	}
	t.recovers(p, "r")
	t.finish("r", map[string]int{"b": 1}, false)
	var types []store.Type
	for ev, err := range p.eng.Watch(p, "r", seen) { // it comes back
		require.NoError(t, err)
		types = append(types, ev.Type)
	}
	require.NotEmpty(t, types)
	require.Equal(t, store.WorkflowCompleted, types[len(types)-1])
}

func noStableEvent(t *trial) {
	x := t.order()
	t.tell(x, "r", 2, store.Waiting)
	check := t.untouched("r")
	p := t.program()
	rec, err := p.eng.RecoverRun(p, "r")
	require.EqualError(t, err, "No stable event found - workflow may need manual intervention")
	require.ErrorIs(t, err, durable.ErrUnrecoverable)
	require.Equal(t, durable.Recovery{RunID: "r", Needed: true, Code: durable.CodeA1, Reason: "A1: Status awaiting_input but no pending interaction"}, rec)
	_, err = operate.On(p.eng).Resume(p, "r", operate.ResumeOptions{})
	var hopeless *durable.UnrecoverableError
	require.ErrorAs(t, err, &hopeless)
	check()
}

func twoAtOnce(t *trial) {
	x := t.order()
	one, other := t.program(), t.program()
	for i := range 8 {
		id := fmt.Sprint("r", i)
		t.tell(x, id, t.upTo(x, store.StepCompleted, "a"), store.Waiting)
		var both sync.WaitGroup
		recs, errs := make([]durable.Recovery, 2), make([]error, 2)
		for k, p := range []program{one, other} {
			both.Go(func() { recs[k], errs[k] = p.eng.RecoverRun(p, id) })
		}
		both.Wait()
		require.NoError(t, errors.Join(errs...))
		require.True(t, recs[0].Needed != recs[1].Needed, "one of them did it: %+v", recs)
		list, err := operate.On(one.eng).Branches(one, id)
		require.NoError(t, err)
		require.Len(t, list, 2)
	}
}

func liveRun(t *trial) {
	wf := newOrders().workflow("1")
	p, operator := t.program(wf), t.program()
	run, err := wf.Start(p, "r", 0)
	require.NoError(t, err)
	row := t.awaits("r", store.Waiting)
	running := store.Running // its owner is alive, whatever the row says
	errs := t.outside.Commit(context.Background(), []store.Change{{RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Row: &store.RowPatch{Status: &running}}})
	require.NoError(t, errs[0])
	check := t.untouched("r")
	for _, eng := range []*durable.Engine{p.eng, operator.eng} {
		_, err = eng.RecoverRun(p, "r")
		require.ErrorIs(t, err, store.ErrOwned)
	}
	check()
	require.NoError(t, durable.Signal(p, "r", "approve", "!"))
	out, err := run.Wait(p)
	require.NoError(t, err)
	require.Equal(t, "a!b", out)
	require.Zero(t, t.awaits("r", store.Completed).Branch)
}
