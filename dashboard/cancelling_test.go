package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// Nobody who has the code executes the run: its cancel is recorded, and neither
// the API nor a page says that it was cancelled before it was.
func TestACancelThatNobodyCarriesOutIsShownAsThat(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("r")
		s.asks("p")
		require.NoError(t, s.eng.Close())
		s.serve(durable.Options{}, dashboard.Options{}) // knows no workflow
		const serve = "nobody alive serves workflow checkout: start a program that does"
		done, err := s.c.Cancel(t.Context(), "r", "enough")
		require.NoError(t, err)
		require.Equal(t, "Workflow r is cancelled when somebody takes it up; "+serve, done.Message)
		require.Equal(t, "waiting", done.Run.Status)
		require.True(t, done.Run.CancelAsked)
		form := s.send("POST", "/runs/p/do/cancel", "", "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
		require.Equal(t, http.StatusSeeOther, form.status)
		require.Contains(t, form.header.Get("Location"), "?done=cancelling")
		page := s.browse("/runs/p?done=cancelling").body
		require.Contains(t, page, "The cancel is recorded.")
		require.Contains(t, page, "it is carried out once a process that serves")
		require.Contains(t, page, "Cancelling")
		require.NotContains(t, page, `name="panel" value="cancel"`, "it is asked for already")
		require.Contains(t, s.browse("/").body, "Cancelling")

		require.NoError(t, s.eng.Close())
		s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{})
		for _, id := range []string{"r", "p"} {
			require.False(t, s.until(id, "cancelled").CancelAsked)
		}
		require.NotContains(t, s.browse("/runs/p").body, "A cancel is recorded")
	})
}
