package recovery

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// tornState is a state of the catalogue, or one that only looks like it.
type tornState struct {
	code   string
	name   string
	status store.Status
	typ    store.Type // the history goes up to this event
	key    string
	more   []store.Event
	reason string     // empty if it is consistent
	branch int32      // that a repair begins; 0: 1
	cutoff store.Type // the last event that is kept, and its key
	cutKey string
	bodies map[string]int // that run afterwards; nil if it is not carried to its end
	asks   bool           // the approval is asked, again or still
}

func tornCases() []Case {
	b, ab, none := map[string]int{"b": 1}, map[string]int{"a": 1, "b": 1}, map[string]int{}
	jump, _ := json.Marshal(map[string]any{"to_branch": 7}) // it has no value that cannot be encoded
	const (
		a1 = "A1: Status awaiting_input but no pending interaction"
		a2 = "A2: Status processing but has pending interaction"
		a3 = "A3: Status processing but all steps completed"
		d2 = "D2: Jump requested but its branch is not the current one"
	)
	var cases []Case
	for _, c := range []tornState{
		{
			code: durable.CodeA1, name: "it waits for nothing, behind a step", status: store.Waiting, typ: store.StepCompleted, key: "a",
			reason: a1, cutoff: store.StepCompleted, cutKey: "a", bodies: b, asks: true,
		},
		{
			code: durable.CodeA1, name: "it waits for nothing, behind an answer", status: store.Waiting, typ: store.SignalReceived, key: "approve",
			reason: a1, cutoff: store.SignalReceived, cutKey: "approve", bodies: b,
		},
		{
			code: durable.CodeA2, name: "it runs, and a wait is pending", status: store.Running, typ: store.WaitRequested, key: "approve",
			reason: a2, cutoff: store.StepCompleted, cutKey: "a", bodies: b, asks: true,
		},
		{
			code: durable.CodeA3, name: "it runs, and every step is completed", status: store.Running, typ: store.StepCompleted, key: "b",
			reason: a3, cutoff: store.StepCompleted, cutKey: "b", bodies: none,
		},
		{
			code: "A4", name: "it runs, and a step has failed for good", status: store.Running, typ: store.SignalReceived, key: "approve",
			more: []store.Event{{Type: store.StepFailed, Key: "b", Attempt: 1, Ordinal: 3, Data: []byte(`{"error":{"message":"no"}}`)}},
		},
		{code: "B1", name: "it waits", status: store.Waiting, typ: store.WaitRequested, key: "approve", bodies: b, asks: true},
		{
			code: "B2", name: "it has waited for long", status: store.Waiting, typ: store.WaitRequested, key: "approve",
			more: []store.Event{{Type: store.RunClaimed}, {Type: store.RunClaimed}}, bodies: b, asks: true,
		},
		{
			code: "C1", name: "a step has begun", status: store.Running, typ: store.SignalReceived, key: "approve",
			more: []store.Event{{Type: store.StepStarted, Key: "b", Attempt: 1, Ordinal: 3}}, bodies: b,
		},
		{
			code: "C2", name: "the first step has begun", status: store.Running, typ: store.WorkflowStarted,
			more: []store.Event{{Type: store.StepStarted, Key: "a", Attempt: 1, Ordinal: 1}}, bodies: ab, asks: true,
		},
		{
			code: durable.CodeD2, name: "a jump was requested and not made", status: store.Interrupted, typ: store.StepCompleted, key: "b",
			more:   []store.Event{{Type: store.JumpRequested, Data: jump}},
			reason: d2, branch: 8, cutoff: store.StepCompleted, cutKey: "b", bodies: none,
		},
	} {
		cases = append(cases, Case{Code: c.code, Name: c.name, Consistent: c.reason == "", run: c.check})
	}
	return cases
}

func (c tornState) check(t *trial) {
	const id = "torn"
	x := t.order()
	n := 2
	if c.typ != store.WorkflowStarted {
		n = t.upTo(x, c.typ, c.key)
	}
	t.tell(x, id, n, c.status, c.more...)
	operator := t.program()
	if c.reason == "" {
		t.recovers(operator, id)
	} else {
		c.repair(t, operator, id)
	}
	if c.bodies != nil {
		t.finish(id, c.bodies, c.asks)
	}
}

// repair checks what a repair leaves in the store, and that a second one writes
// nothing.
func (c tornState) repair(t *trial, p program, id string) {
	t.Helper()
	_, before := t.log(id)
	rec, err := p.eng.RecoverRun(p, id)
	require.NoError(t, err)
	branch := max(c.branch, 1)
	require.Equal(t, []any{true, c.code, c.reason, branch}, []any{rec.Needed, rec.Code, rec.Reason, rec.NewBranch})
	cut := before[rec.Cutoff-1]
	require.Equal(t, []any{c.cutoff, c.cutKey}, []any{cut.Type, cut.Key}, "the last event that is kept")
	row, events := t.log(id)
	require.Equal(t, before, events[:len(before)], "the old events stay")
	require.Len(t, events, len(before)+1)
	last := events[len(before)]
	require.Equal(t, []any{store.WorkflowRecovered, branch}, []any{last.Type, last.Branch})
	said := map[string]any{}
	require.NoError(t, json.Unmarshal(last.Data, &said))
	require.Equal(t, []any{c.reason, 0.0, float64(branch), float64(rec.Cutoff)}, []any{said["reason"], said["previous_branch"], said["new_branch"], said["cutoff_event"]})
	require.Equal(t, []any{branch, store.Interrupted, ""}, []any{row.Branch, row.Status, row.Code}, "it is claimable at once")
	list, err := operate.On(p.eng).Branches(p, id)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []any{true, rec.Cutoff, c.reason, len(before) - int(rec.Cutoff)}, []any{list[1].Current, list[1].Cutoff, list[1].Reason, list[1].Left})
	t.recovers(p, id) // once is enough
}
