package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
)

// The route of a paused run takes one that has failed, too, and asks for both
// names: the workflow's and the run's.
func TestAFailedRunIsAcceptedForResumeUnderItsWorkflow(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("r")
		require.Equal(t, http.StatusNotFound, s.send("POST", "/workflows/other/resume/r", "").status)
		require.Equal(t, http.StatusNotFound, s.send("POST", "/workflows/checkout/resume/nobody", "").status)
		require.Equal(t, "failed", s.until("r", "failed").Status, "nothing has changed")

		a := s.send("POST", "/workflows/checkout/resume/r", "")
		require.Equal(t, http.StatusAccepted, a.status, a.body)
		require.Equal(t, "r", a.json(t)["run_id"])
		s.until("r", "waiting")
		skipped := map[string]int{}
		for e, err := range s.c.History(t.Context(), "r", client.EventsOptions{Skipped: true}) {
			require.NoError(t, err)
			for _, one := range e.Expands {
				require.Equal(t, "step_skipped", one.Type)
				require.Equal(t, "replayed from snapshot", one.Reason)
				skipped[one.Key]++
			}
		}
		require.Equal(t, map[string]int{"reserve": 1}, skipped)

		// A run that is called history is a run, and no archive.
		s.start("history")
		s.until("history", "waiting")
		require.Equal(t, "history", s.send("GET", "/api/runs/history", "").json(t)["id"])
		require.Equal(t, "r", s.send("GET", "/runs/r", "").json(t)["id"])
		require.JSONEq(t, `{"runs":[],"source":"git"}`, s.send("GET", "/runs/history", "").body)
	})
}
