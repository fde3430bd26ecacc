package dashboard_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// torn makes a run that says that it waits, over the first n events of another:
// nothing is waited for there (A1).
func (s *site) torn(from, id string, n int) {
	s.t.Helper()
	s.retell(from, id, n, store.Waiting)
}

// leaveRunning makes a run that a process which is gone was executing.
func (s *site) leaveRunning(from, id string, n int) {
	s.t.Helper()
	s.retell(from, id, n, store.Running)
}

// retell makes a run from the first n events of another.
func (s *site) retell(from, id string, n int, status store.Status) {
	s.t.Helper()
	h, err := s.st.Load(context.Background(), from, store.Cursor{})
	require.NoError(s.t, err)
	row := h.Run
	row.ID, row.Status, row.Owner, row.EndedAt, row.Inbox, row.Seen, row.Last = id, status, "gone", 0, 0, 0, nil
	if status == store.Waiting {
		row.Owner = "" // else the engine itself takes it over at its next beat
	}
	var events []store.Event
	var before uint32
	for e, err := range h.Events {
		require.NoError(s.t, err)
		if len(events) == n {
			break
		}
		e.Sum = store.Seal(id, before, &e)
		before = e.Sum
		events = append(events, e)
	}
	errs := s.st.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: events}})
	require.NoError(s.t, errs[0])
}

const hopeless = "No stable event found - workflow may need manual intervention"

func TestAResumeWhoseCheckFindsNoWayOutAnswers500WithItsText(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("template")
		s.torn("template", "r", 2)
		before, err := s.st.Load(t.Context(), "r", store.Cursor{NoEvents: true})
		require.NoError(t, err)
		for _, pattern := range append(resumeDoors, "/api/runs/%s/resume?dry_run=1") {
			a := s.send("POST", door(pattern, "r"), "")
			require.Equal(t, http.StatusInternalServerError, a.status, "%s: %s", pattern, a.body)
			require.Equal(t, hopeless, a.json(t)["message"], pattern)
			require.Equal(t, "unrecoverable", a.json(t)["error"].(map[string]any)["code"])
		}
		a := s.send("GET", "/api/runs/r/plan", "")
		require.Equal(t, http.StatusInternalServerError, a.status, a.body)
		_, err = s.c.Resume(t.Context(), "r", client.ResumeOptions{})
		require.ErrorContains(t, err, hopeless)
		after, err := s.st.Load(t.Context(), "r", store.Cursor{NoEvents: true})
		require.NoError(t, err)
		require.Equal(t, before.Run, after.Run, "nothing was changed")
	})
}

func TestAResumeOverHTTPRepairsFirst(t *testing.T) {
	for i, pattern := range append(resumeDoors, resumeDoors[2]) {
		s := open(t, memoryStore(t), dashboard.Options{})
		s.asks("template")
		s.torn("template", "r", 4) // up to charge
		charged := s.shop.charged.Load()
		if i == len(resumeDoors) { // a program that leaves what is repaired to a person
			require.NoError(t, s.eng.Close())
			s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}, OnBoot: durable.LeaveOnBoot, NoReconcileOnBoot: true}, dashboard.Options{})
		}
		plan, err := s.c.Plan(t.Context(), "r", client.ResumeOptions{})
		require.NoError(t, err)
		require.Contains(t, plan.Warnings[len(plan.Warnings)-1], "A1: Status awaiting_input but no pending interaction")
		a := s.send("POST", door(pattern, "r"), "")
		require.Less(t, a.status, 300, "%s: %s", pattern, a.body)
		run := s.until("r", "waiting")
		require.EqualValues(t, 1, run.Branch)
		require.Eventually(t, func() bool { run = s.until("r", "waiting"); return len(run.Approvals) == 1 }, time.Minute, 5*time.Millisecond)
		require.Equal(t, charged, s.shop.charged.Load(), "what was recorded is not done again")
		branches, err := s.c.Branches(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, "A1: Status awaiting_input but no pending interaction", branches[1].Reason)

		// One that waits for something is not resumed, but answered.
		s.asks("fine")
		if pattern != resumeDoors[2] {
			require.Equal(t, http.StatusConflict, s.send("POST", door(pattern, "fine"), "").status)
		}
	}
}
