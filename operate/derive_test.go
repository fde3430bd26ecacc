package operate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// lineageOf makes events of their types and keys, such as "step_completed a".
func lineageOf(words ...string) (events []store.Event) {
	steps := int32(0)
	for i, word := range words {
		typ, key, _ := strings.Cut(word, " ")
		e := store.Event{Seq: int64(i + 1), Type: store.Type(typ), Key: key, Ordinal: 1}
		if e.Type == store.WaitRequested {
			e.Data = history.Encode(&history.WaitBegun{Name: key})
		}
		if e.Type == store.StepCompleted {
			steps++
		}
		e.Steps = steps
		events = append(events, e)
	}
	return events
}

func TestLastStableEvent(t *testing.T) {
	for _, c := range []struct {
		events []string
		want   int // from 1; 0: none
	}{
		{[]string{}, 0},
		{[]string{"workflow_created", "workflow_started", "wait_requested w", "step_started a"}, 0},
		{[]string{"workflow_created", "step_completed a", "step_started b"}, 2},
		{[]string{"workflow_created", "child_finished kid", "attempt_failed b"}, 2},
		{[]string{"workflow_created", "item_completed m[3]", "timer_set sleep"}, 2},
		{[]string{"workflow_created", "wait_requested w", "signal_received w"}, 3},
		{[]string{"workflow_created", "wait_requested w", "signal_received w", "step_completed w"}, 4},
		{[]string{"step_completed a", "wait_requested w", "step_completed b"}, 1},
		{[]string{"step_completed a", "wait_requested w", "step_completed b", "signal_received w"}, 4},
		{[]string{"step_completed a", "wait_requested w", "wait_timed_out w", "step_completed b", "wait_requested v"}, 4},
	} {
		events := lineageOf(c.events...)
		got := operate.LastStableEvent(events)
		s := history.NewSurvey("r")
		for i := range events {
			require.NoError(t, s.Add(&events[i]))
		}
		if c.want == 0 {
			require.Nil(t, got, "%v", c.events)
			require.Zero(t, s.Stable.Seq)
			continue
		}
		require.Equal(t, int64(c.want), got.Seq, "%v", c.events)
		require.Equal(t, got.Seq, s.Stable.Seq, "the summary agrees")
	}
}

func TestDeriveStatus(t *testing.T) {
	for want, words := range map[store.Status][]string{
		store.Pending:     {"workflow_created"},
		store.Running:     {"workflow_created", "workflow_started", "wait_requested w", "signal_received w"},
		store.Waiting:     {"workflow_created", "workflow_started", "step_completed a", "wait_requested w", "run_claimed"},
		store.Interrupted: {"workflow_created", "workflow_started", "step_completed a", "workflow_interrupted"},
		store.Completed:   {"workflow_created", "workflow_started", "step_completed a", "workflow_completed"},
	} {
		require.Equal(t, want, operate.DeriveStatus(lineageOf(words...)).Status)
	}
	d := operate.DeriveStatus(lineageOf("workflow_created", "workflow_started", "step_completed a", "wait_requested v", "item_completed m[1]", "wait_requested w"))
	require.Equal(t, operate.Derived{
		Status: store.Waiting, Seq: 6, Key: "w", Steps: 1, Completed: []string{"a", "m[1]"},
		Waits: []operate.PendingWait{{Key: "v", Name: "v", Seq: 4}, {Key: "w", Name: "w", Seq: 6}},
	}, d)
}
