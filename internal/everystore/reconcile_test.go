package everystore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The catalogue of torn states, on every store: one case per code. A case is
// written through the store's own interface: a history that an engine has
// recorded is told again up to some event, under a row that says what the case
// wants it to say and an owner that is gone. So these are also the states that a
// store leaves behind which cannot write a row and its events in one change. An
// operator's engine, which has none of the code, then recovers the run, and a
// program that has it carries it to its end.

// orders counts the bodies of a workflow: a step, an approval, a step.
type orders struct {
	mu     sync.Mutex
	bodies map[string]int
}

func (o *orders) define(version string) durable.Definition { return o.workflow(version) }

func (o *orders) workflow(version string) *durable.Workflow[int, string] {
	step := func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, name, func(context.Context) (string, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.bodies[name]++
			return name, nil
		})
	}
	return durable.Define("order", func(ctx context.Context, _ int) (string, error) {
		a, err := step(ctx, "a")
		if err != nil {
			return "", err
		}
		ok, err := durable.Await[string](ctx, "approve", durable.Prompt("ship?"))
		if err != nil {
			return "", err
		}
		b, err := step(ctx, "b")
		return a + ok + b, err
	}, durable.Steps("a", "b"), durable.Version(version))
}

// told is a recorded history, to be told again.
type told struct {
	row    store.Run
	events []store.Event
}

// tell records the history of an order, from its start to its end.
func (d *data) tell(t *testing.T) told {
	t.Helper()
	o := &orders{bodies: map[string]int{}}
	wf := o.workflow("1")
	p := d.program(t, wf)
	run, err := wf.Start(p, "template", 0)
	require.NoError(t, err)
	d.awaits(t, "template", store.Waiting)
	require.NoError(t, durable.Signal(p, "template", "approve", "!"))
	_, err = run.Wait(p)
	require.NoError(t, err)
	require.NoError(t, p.eng.Close())
	h, events := d.log(t, "template")
	return told{h, events}
}

// log reads the row and all events of a run.
func (d *data) log(t *testing.T, id string) (store.Run, []store.Event) {
	t.Helper()
	h, err := d.outside.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	var events []store.Event
	for ev, err := range h.Events {
		require.NoError(t, err)
		events = append(events, ev)
	}
	h.Run.Last = nil
	return h.Run, events
}

// upTo is the place of the first event with this type and key.
func (x told) upTo(t *testing.T, typ store.Type, key string) int {
	t.Helper()
	i := slices.IndexFunc(x.events, func(e store.Event) bool { return e.Type == typ && e.Key == key })
	require.GreaterOrEqual(t, i, 0, "%s %s", typ, key)
	return i + 1
}

// again creates a run from the first n events, and more, under a row that says
// status.
func (d *data) again(t *testing.T, x told, id string, n int, status store.Status, more ...store.Event) {
	t.Helper()
	row := x.row
	row.ID, row.Status, row.Owner, row.EndedAt, row.Inbox, row.Seen, row.Code, row.Reason = id, status, "gone", 0, 0, 0, "", ""
	if status == store.Interrupted || status == store.Failed {
		row.Owner = ""
	}
	var before store.Event
	events := slices.Concat(x.events[:n], more)
	for i := range events {
		e := &events[i]
		e.Seq, e.Steps = int64(i+1), max(e.Steps, before.Steps)
		e.At, e.Active = max(e.At, before.At), max(e.Active, before.Active)
		e.Sum = store.Seal(id, before.Sum, e)
		before = *e
	}
	errs := d.outside.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: events}})
	require.NoError(t, errs[0])
}

// tornCase is a torn state, or one that only looks like it.
type tornCase struct {
	name   string
	status store.Status
	typ    store.Type // the history goes up to this event
	key    string
	more   []store.Event
	code   string // empty: it is consistent
	reason string
	cutoff store.Type // the last event that is kept, and its key
	cutKey string
	bodies map[string]int // that run afterwards
	asks   bool           // the approval is asked, again or still
}

func tornCases() []tornCase {
	a, ab := map[string]int{"b": 1}, map[string]int{"a": 1, "b": 1}
	jump, _ := json.Marshal(map[string]any{"to_branch": 7})
	return []tornCase{
		{
			name: "A1 behind a step", status: store.Waiting, typ: store.StepCompleted, key: "a",
			code: durable.CodeA1, reason: "A1: Status awaiting_input but no pending interaction", cutoff: store.StepCompleted, cutKey: "a", bodies: a, asks: true,
		},
		{
			name: "A1 behind an answer", status: store.Waiting, typ: store.SignalReceived, key: "approve",
			code: durable.CodeA1, reason: "A1: Status awaiting_input but no pending interaction", cutoff: store.SignalReceived, cutKey: "approve", bodies: a,
		},
		{
			name: "A2", status: store.Running, typ: store.WaitRequested, key: "approve",
			code: durable.CodeA2, reason: "A2: Status processing but has pending interaction", cutoff: store.StepCompleted, cutKey: "a", bodies: a, asks: true,
		},
		{
			name: "A3", status: store.Running, typ: store.StepCompleted, key: "b",
			code: durable.CodeA3, reason: "A3: Status processing but all steps completed", cutoff: store.StepCompleted, cutKey: "b", bodies: map[string]int{},
		},
		{
			name: "A4, whose error is the function's", status: store.Running, typ: store.SignalReceived, key: "approve",
			more: []store.Event{{Type: store.StepFailed, Key: "b", Attempt: 1, Ordinal: 3, Data: []byte(`{"error":{"message":"no"}}`)}},
		},
		{name: "B1", status: store.Waiting, typ: store.WaitRequested, key: "approve", bodies: a, asks: true},
		{name: "B2, an old wait", status: store.Waiting, typ: store.WaitRequested, key: "approve", more: []store.Event{{Type: store.RunClaimed}, {Type: store.RunClaimed}}, bodies: a, asks: true},
		{name: "C1", status: store.Running, typ: store.SignalReceived, key: "approve", more: []store.Event{{Type: store.StepStarted, Key: "b", Attempt: 1, Ordinal: 3}}, bodies: a},
		{name: "C2", status: store.Running, typ: store.WorkflowStarted, more: []store.Event{{Type: store.StepStarted, Key: "a", Attempt: 1, Ordinal: 1}}, bodies: ab, asks: true},
		{
			name: "D2", status: store.Interrupted, typ: store.StepCompleted, key: "b", more: []store.Event{{Type: store.JumpRequested, Data: jump}},
			code: durable.CodeD2, reason: "D2: Jump requested but its branch is not the current one", cutoff: store.StepCompleted, cutKey: "b", bodies: map[string]int{},
		},
	}
}

func TestEveryTornStateIsRepairedOnceOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		operator := d.program(t)
		for i, c := range tornCases() {
			id := fmt.Sprint("torn-", i)
			n := 2
			if c.typ != store.WorkflowStarted {
				n = x.upTo(t, c.typ, c.key)
			}
			d.again(t, x, id, n, c.status, c.more...)
			rowBefore, eventsBefore := d.log(t, id)
			rec, err := operator.eng.RecoverRun(operator, id)
			require.NoError(t, err, c.name)
			if c.code == "" {
				require.Equal(t, durable.Recovery{RunID: id}, rec, c.name)
				row, events := d.log(t, id)
				require.Equal(t, rowBefore, row, "%s: nothing is written", c.name)
				require.Equal(t, eventsBefore, events, "%s: nothing is written", c.name)
			} else {
				d.checkRepaired(t, operator, &c, rec, eventsBefore)
			}
			if c.bodies != nil {
				d.finish(t, b, id, &c)
			}
		}
	})
}

// checkRepaired checks what a repair has left in the store, and that a second one
// writes nothing.
func (d *data) checkRepaired(t *testing.T, p program, c *tornCase, rec durable.Recovery, before []store.Event) {
	t.Helper()
	cut := before[rec.Cutoff-1]
	require.Equal(t, []any{true, c.code, c.reason, int32(1)}, []any{rec.Needed, rec.Code, rec.Reason, rec.NewBranch}, c.name)
	require.Equal(t, []any{c.cutoff, c.cutKey}, []any{cut.Type, cut.Key}, c.name)
	row, events := d.log(t, rec.RunID)
	require.Equal(t, before, events[:len(before)], "%s: the old events stay", c.name)
	require.Len(t, events, len(before)+1)
	last := events[len(before)]
	require.Equal(t, []any{store.WorkflowRecovered, int32(1)}, []any{last.Type, last.Branch})
	said := map[string]any{}
	require.NoError(t, json.Unmarshal(last.Data, &said))
	require.Equal(t, []any{c.reason, 0.0, 1.0, float64(rec.Cutoff)}, []any{said["reason"], said["previous_branch"], said["new_branch"], said["cutoff_event"]})
	require.Equal(t, []any{int32(1), store.Interrupted, ""}, []any{row.Branch, row.Status, row.Code}, "%s: claimable at once", c.name)
	list, err := p.eng.Branches(p, rec.RunID)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []any{true, rec.Cutoff, c.reason, len(before) - int(rec.Cutoff)}, []any{list[1].Current, list[1].Cutoff, list[1].Reason, list[1].Left})
	again, err := p.eng.RecoverRun(p, rec.RunID)
	require.NoError(t, err)
	require.Equal(t, durable.Recovery{RunID: rec.RunID}, again, "%s: once is enough", c.name)
	_, now := d.log(t, rec.RunID)
	require.Equal(t, events, now)
}

// finish lets a program that has the code carry the run to its end.
func (d *data) finish(t *testing.T, b backend, id string, c *tornCase) {
	t.Helper()
	o := &orders{bodies: map[string]int{}}
	wf := o.workflow("1")
	p := d.program(t, wf)
	run, err := wf.Handle(p, id)
	require.NoError(t, err)
	if c.asks {
		d.awaits(t, id, store.Waiting)
		h, err := d.outside.Load(context.Background(), id, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		// The answer names the wait, as a dashboard sends it.
		require.NoError(t, durable.Signal(p, id, durable.WaitKey("approve", h.Run.Branch), "!"))
	}
	out, err := run.Wait(p)
	require.NoError(t, err, c.name)
	require.Equal(t, "a!b", out, c.name)
	require.Equal(t, c.bodies, o.bodies, "%s: what was done is not done again", c.name)
	require.NoError(t, p.eng.Close())
}

func TestWithoutAStableEventNothingIsTouchedOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		d.again(t, x, "r", 2, store.Waiting)
		row, events := d.log(t, "r")
		p := d.program(t)
		rec, err := p.eng.RecoverRun(p, "r")
		require.EqualError(t, err, "No stable event found - workflow may need manual intervention")
		require.ErrorIs(t, err, durable.ErrUnrecoverable)
		require.Equal(t, durable.Recovery{RunID: "r", Needed: true, Code: durable.CodeA1, Reason: "A1: Status awaiting_input but no pending interaction"}, rec)
		var hopeless *durable.UnrecoverableError
		_, err = p.eng.Resume(p, "r", durable.ResumeOptions{})
		require.ErrorAs(t, err, &hopeless)
		rowNow, eventsNow := d.log(t, "r")
		require.Equal(t, row, rowNow)
		require.Equal(t, events, eventsNow)
	})
}

// D1: a branch was created, and the process died before it turned to it.
func TestABranchNobodyTurnedToIsHarmlessOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		d.again(t, x, "r", x.upTo(t, store.StepCompleted, "a"), store.Interrupted)
		row, events := d.log(t, "r")
		last := events[len(events)-1]
		ev := store.Event{Seq: last.Seq + 1, Branch: 1, Type: store.WorkflowRecovered, At: last.At, Steps: last.Steps, Active: last.Active}
		ev.Sum = store.Seal("r", last.Sum, &ev)
		errs := d.outside.Commit(context.Background(), []store.Change{{
			RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Events: []store.Event{ev}, Branch: &store.Branch{N: 1, Cutoff: 1, Reason: "left"},
		}})
		require.NoError(t, errs[0])
		_, events = d.log(t, "r")
		p := d.program(t)
		rec, err := p.eng.RecoverRun(p, "r")
		require.NoError(t, err)
		require.False(t, rec.Needed)
		_, now := d.log(t, "r")
		require.Equal(t, events, now)
		list, err := p.eng.Branches(p, "r")
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{list[0].Current, list[0].InLineage && list[1].InLineage})
		d.finish(t, b, "r", &tornCase{name: "D1", bodies: map[string]int{"b": 1}, asks: true})
	})
}

func TestAVersionThatIsGoneFallsBackToTheInitialOneOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		x.row.Version = "2"
		d.again(t, x, "back", x.upTo(t, store.StepCompleted, "a"), store.Running)
		x.row.InitialVersion = "2"
		d.again(t, x, "lost", x.upTo(t, store.StepCompleted, "a"), store.Running)
		row, events := d.log(t, "lost")
		o := &orders{bodies: map[string]int{}}
		p := d.program(t, o.define("1")) // Recover does it on boot
		d.awaits(t, "back", store.Waiting)
		back, _ := d.log(t, "back")
		require.Equal(t, []any{"1", int32(0)}, []any{back.Version, back.Branch}, "nothing is left behind")
		_, err := p.eng.RecoverRun(p, "lost")
		require.ErrorContains(t, err, "run lost is unrecoverable: neither its version 2 nor its initial version 2")
		rowNow, eventsNow := d.log(t, "lost")
		require.Equal(t, row, rowNow)
		require.Equal(t, events, eventsNow)
		require.NoError(t, durable.Signal(p, "back", "approve", "!"))
		h, err := o.workflow("1").Handle(p, "back")
		require.NoError(t, err)
		out, err := h.Wait(p)
		require.NoError(t, err)
		require.Equal(t, "a!b", out)
	})
}

func TestTwoRecoveriesAtOnceMakeOneBranchOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		one, other := d.program(t), d.program(t)
		for i := range 8 {
			id := fmt.Sprint("r", i)
			d.again(t, x, id, x.upTo(t, store.StepCompleted, "a"), store.Waiting)
			var both sync.WaitGroup
			recs, errs := make([]durable.Recovery, 2), make([]error, 2)
			for k, p := range []program{one, other} {
				both.Go(func() { recs[k], errs[k] = p.eng.RecoverRun(p, id) })
			}
			both.Wait()
			require.NoError(t, errors.Join(errs...))
			require.True(t, recs[0].Needed != recs[1].Needed, "one of them did it: %+v", recs)
			list, err := one.eng.Branches(one, id)
			require.NoError(t, err)
			require.Len(t, list, 2)
		}
	})
}

// F1 and F2: who looks on has no part in a run.
func TestAWatcherThatLeavesStopsNothingOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := d.tell(t)
		d.again(t, x, "r", x.upTo(t, store.SignalReceived, "approve"), store.Interrupted)
		p := d.program(t)
		var seen int64
		for ev, err := range p.eng.Watch(p, "r", 0) {
			require.NoError(t, err)
			if seen = ev.Seq; ev.Type == store.StepCompleted {
				break // the client is gone; nobody executes the run
			}
		}
		_, before := d.log(t, "r")
		rec, err := p.eng.RecoverRun(p, "r")
		require.NoError(t, err)
		require.False(t, rec.Needed)
		_, now := d.log(t, "r")
		require.Equal(t, before, now)
		d.finish(t, b, "r", &tornCase{name: "F2", bodies: map[string]int{"b": 1}})
		var types []store.Type
		for ev, err := range p.eng.Watch(p, "r", seen) { // it comes back
			require.NoError(t, err)
			types = append(types, ev.Type)
		}
		require.Equal(t, store.WorkflowCompleted, types[len(types)-1])
	})
}

func TestALiveRunIsNotRepairedOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		o := &orders{bodies: map[string]int{}}
		wf := o.workflow("1")
		p, operator := d.program(t, wf), d.program(t)
		run, err := wf.Start(p, "r", 0)
		require.NoError(t, err)
		row := d.awaits(t, "r", store.Waiting)
		running := store.Running // its owner lives, whatever the row says
		errs := d.outside.Commit(context.Background(), []store.Change{{RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Row: &store.RowPatch{Status: &running}}})
		require.NoError(t, errs[0])
		for _, eng := range []*durable.Engine{p.eng, operator.eng} {
			_, err = eng.RecoverRun(p, "r")
			require.ErrorIs(t, err, store.ErrOwned)
		}
		require.NoError(t, durable.Signal(p, "r", "approve", "!"))
		out, err := run.Wait(p)
		require.NoError(t, err)
		require.Equal(t, "a!b", out)
		require.Zero(t, d.awaits(t, "r", store.Completed).Branch)
	})
}
