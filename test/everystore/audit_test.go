package everystore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// checkRuns looks at every run of a trial that has ended, and at what a new
// executor would find to do: nothing.
func (tr *trial) checkRuns(t require.TestingT) {
	hs := tr.held
	require.NotEmpty(t, hs)
	byID := map[string]*store.Run{}
	for _, h := range hs {
		byID[h.Run.ID] = &h.Run
	}
	for _, h := range hs {
		events := tr.checkLog(t, h)
		tr.checkRow(t, &h.Run)
		checkInbox(t, h, events)
		tr.checkOpen(t, h, events, byID)
	}
	tr.checkNothingLeft(t, hs)
}

// checkLog returns the events of a log that is gapless and sealed, in which time
// does not go back and nothing has two outcomes.
func (tr *trial) checkLog(t require.TestingT, h *store.History) (events []store.Event) {
	run := h.Run.ID
	var before store.Event
	ended := map[string]bool{}
	for e, err := range h.Events {
		require.NoError(t, err)
		require.Equal(t, before.Seq+1, e.Seq, "the log of %s", run)
		require.Equal(t, store.Seal(run, before.Sum, &e), e.Sum, "event %d of %s", e.Seq, run)
		require.GreaterOrEqual(t, e.At, before.At, "event %d of %s", e.Seq, run)
		outcome := ""
		switch e.Type {
		case store.StepCompleted, store.StepFailed, store.ItemCompleted, store.ItemFailed, store.ChildFinished,
			store.SignalReceived, store.WaitTimedOut, store.WaitClosed, store.TimerFired, store.FirstWon, store.Published, store.AttributesSet:
			outcome = e.Key
			// First has a key of its own; a child has that of its start.
			require.False(t, ended[outcome], "two outcomes of %s in %s", e.Key, run)
		case store.AttemptFailed:
			outcome = fmt.Sprintf("%s/%d", e.Key, e.Attempt)
			require.False(t, ended[outcome], "attempt %s of %s failed twice", outcome, run)
			require.False(t, ended[e.Key], "an attempt of %s in %s after its outcome", e.Key, run)
		case store.WorkflowCreated, store.WorkflowStarted:
			outcome = "~" + string(e.Type)
			require.False(t, ended[outcome], "%s twice in %s", e.Type, run)
		case store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowCancelled:
			outcome = "~end"
			require.False(t, ended[outcome], "%s ended twice", run)
		case store.WorkflowContinued:
			// Keys belong to a generation.
			created := ended["~"+string(store.WorkflowCreated)]
			ended = map[string]bool{"~" + string(store.WorkflowCreated): created}
		}
		ended[outcome] = true
		events, before = append(events, e), e
	}
	require.True(t, ended["~end"], "the log of %s does not end", run)
	return events
}

func (tr *trial) checkRow(t require.TestingT, r *store.Run) {
	require.True(t, r.Status.Terminal(), "%s ended as %s", r.ID, r.Status)
	require.Empty(t, r.Owner, "owner of %s", r.ID)
	require.False(t, r.Paused, "%s is paused", r.ID)
	require.Zero(t, r.WakeAt, "%s has a timer", r.ID)
	require.NotZero(t, r.EndedAt, r.ID)
	require.LessOrEqual(t, r.Seen, r.Inbox, r.ID)
	if r.Status == store.Completed {
		require.Empty(t, r.Code, r.ID)
		require.Empty(t, r.Reason, r.ID)
		require.False(t, r.CancelAsked, r.ID)
	}
}

// consumed is the message that an event consumed: its number, 0 for none, and
// of what kind it must be.
func consumed(t require.TestingT, e *store.Event) (int64, store.Kind) {
	var d struct {
		Message int64  `json:"message"`
		Request string `json:"request"`
	}
	if len(e.Data) > 0 {
		require.NoError(t, json.Unmarshal(e.Data, &d))
	}
	switch {
	case e.Type == store.SignalReceived && d.Request != "":
		return d.Message, store.KindRequest
	case e.Type == store.SignalReceived:
		return d.Message, store.KindSignal
	case e.Type == store.ChildFinished:
		return d.Message, store.KindChild
	case e.Type == store.CancelReceived:
		return d.Message, store.KindCancel
	}
	return 0, "" // a pause says up to where it answers, and takes nothing
}

// checkInbox: numbered without a gap, each message there once and consumed at
// most once, by an event of its kind.
func checkInbox(t require.TestingT, h *store.History, events []store.Event) {
	run := h.Run.ID
	require.EqualValues(t, len(h.Inbox), h.Run.Inbox, "inbox of %s", run)
	seen := map[string]bool{}
	for i := range h.Inbox {
		m := &h.Inbox[i]
		require.EqualValues(t, i+1, m.Seq, "inbox of %s", run)
		id := string(m.Kind) + " " + m.ID
		require.False(t, seen[id], "%s received %s twice", run, id)
		seen[id] = true
	}
	taken := map[int64]bool{}
	for i := range events {
		e := &events[i]
		n, kind := consumed(t, e)
		if e.Type == store.SignalReceived || e.Type == store.ChildFinished {
			require.NotZero(t, n, "event %d of %s consumed no message", e.Seq, run)
		}
		if n == 0 {
			continue
		}
		require.LessOrEqual(t, n, h.Run.Inbox, "event %d of %s", e.Seq, run)
		require.False(t, taken[n], "message %d of %s was consumed twice", n, run)
		require.Equal(t, kind, h.Inbox[n-1].Kind, "event %d of %s", e.Seq, run)
		taken[n] = true
	}
}

// checkOpen: what a completed run has begun is over, unless its shape leaves it
// behind; a child has the parent that started it.
func (tr *trial) checkOpen(t require.TestingT, h *store.History, events []store.Event, byID map[string]*store.Run) {
	run := h.Run.ID
	open := map[string]store.Type{}
	generation := 0
	for i := range events {
		e := &events[i]
		switch e.Type {
		case store.WorkflowContinued: // what it has left behind is over
			clear(open)
			generation++
		case store.WaitRequested, store.TimerSet:
			require.NotContains(t, open, e.Key, "%s of %s was begun twice", e.Key, run)
			open[e.Key] = e.Type
		case store.SignalReceived, store.WaitTimedOut, store.WaitClosed, store.TimerFired:
			delete(open, e.Key)
		case store.ChildStarted:
			var d struct {
				Child string `json:"child"`
			}
			require.NoError(t, json.Unmarshal(e.Data, &d))
			require.Contains(t, byID, d.Child, "%s has started a child that does not exist", run)
			require.Equal(t, run, byID[d.Child].Parent)
			key := e.Key
			if generation > 0 {
				key += fmt.Sprint("~g", generation)
			}
			require.Equal(t, key, byID[d.Child].ParentKey)
		}
	}
	if h.Run.Status != store.Completed {
		return // what cut it off closed its waits
	}
	for key := range open {
		require.Contains(t, tr.shape.leaves, key, "%s has completed with an open %s", run, open[key])
	}
}

// checkNothingLeft beats as an executor that serves all of it.
func (tr *trial) checkNothingLeft(t require.TestingT, hs []*store.History) {
	x := store.Executor{ID: "auditor of " + tr.id, Lease: longLease}
	for _, h := range hs {
		if !slices.ContainsFunc(x.Serves, func(s store.Served) bool { return s.Workflow == h.Run.Workflow }) {
			x.Serves = append(x.Serves, store.Served{Workflow: h.Run.Workflow, Versions: []string{h.Run.Version}})
		}
	}
	p, err := tr.d.outside.Beat(context.Background(), x)
	require.NoError(t, err)
	require.False(t, p.Due, "something is due")
	require.Zero(t, p.Next, "something will be due")
	require.Empty(t, p.Gone, "something belongs to the dead")
	tr.d.bury(t)
}
