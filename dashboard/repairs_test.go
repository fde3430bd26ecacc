package dashboard_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// A run that waited is continued by a claim, which tells of the steps that are
// replayed as a resume does: in the history, and in the stream.
func TestWhatAClaimReplaysIsToldInTheHistoryAndInTheStream(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("r")
	require.NoError(t, s.eng.Close())
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{})
	_, err := s.c.Approve(t.Context(), "r", "", "")
	require.NoError(t, err)
	s.until("r", "completed")
	want := []client.Skipped{{Type: "step_skipped", Key: "reserve", Reason: "replayed from snapshot"}, {Type: "step_skipped", Key: "charge", Reason: "replayed from snapshot"}}
	told := 0
	for e, err := range s.c.History(t.Context(), "r", client.EventsOptions{Skipped: true}) {
		require.NoError(t, err)
		if e.Type == "run_claimed" {
			require.Equal(t, want, e.Expands)
			told++
		}
	}
	require.Equal(t, 1, told)

	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	streamed := 0
	next := s.stream(ctx, "/api/runs/r/stream", "")
	for m, ok := next(); ok; m, ok = next() {
		var e client.Event
		if m.event == "event" {
			require.NoError(t, json.Unmarshal([]byte(m.data), &e))
		}
		if e.Type == "run_claimed" {
			require.Equal(t, want, e.Expands)
			streamed++
		}
	}
	require.Equal(t, 1, streamed)
}

func TestTheStreamOfAnEndedRunSaysThatNobodyExecutesIt(t *testing.T) {
	// It ends by itself, twenty heartbeats after the run has.
	s := open(t, memoryStore(t), dashboard.Options{Heartbeat: 50 * time.Millisecond})
	s.failed("r")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	said := ""
	next := s.stream(ctx, "/api/runs/r/stream", "")
	for m, ok := next(); ok; m, ok = next() {
		if m.event == "executor" {
			said += m.data
		}
	}
	require.Contains(t, said, `"executed":false`)
	require.NotContains(t, said, `"executed":true`)
}

// A dry run of a run that somebody has asked to cancel says so.
func TestADryRunTellsOfACancelThatIsOnRecord(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.shop.hang = make(chan struct{})
	s.start("r")
	require.Eventually(t, func() bool { return s.until("r", "running").Steps == 1 }, time.Minute, 5*time.Millisecond)
	require.NoError(t, s.eng.Close()) // interrupted, in the middle of a step
	desk := &site{t: t, st: s.st, shop: new(shop)}
	desk.serve(durable.Options{}, dashboard.Options{})
	_, err := desk.c.Cancel(t.Context(), "r", "enough")
	require.NoError(t, err)
	plan := desk.send("GET", "/api/runs/r/plan", "")
	require.Equal(t, 200, plan.status, plan.body)
	require.Contains(t, plan.body, "cancel")
}
