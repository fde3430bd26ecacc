package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
)

func TestAllThatMatchAreResumedAsTheDryRunSaid(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for i := range 4 {
			s.failed(fmt.Sprint("bad-", i))
		}
		s.asks("fine")
		filter := map[string][]string{"workflow": {"checkout"}}
		dry, err := s.c.ResumeAll(t.Context(), client.BulkRequest{Filter: filter, DryRun: true})
		require.NoError(t, err)
		require.EqualValues(t, 4, dry.Matching)
		require.Equal(t, 4, dry.Done)
		require.True(t, dry.DryRun)
		require.Equal(t, "failed", s.until("bad-0", "failed").Status, "a dry run changes nothing")

		_, err = s.c.ResumeAll(t.Context(), client.BulkRequest{Filter: filter, Matching: 3})
		require.ErrorIs(t, err, client.ErrConflict, "more match than the dry run said")
		s.until("bad-3", "failed")

		part, err := s.c.ResumeAll(t.Context(), client.BulkRequest{Filter: filter, Matching: 4, Limit: 1, ResetFailures: true})
		require.NoError(t, err)
		require.Equal(t, []client.BulkOutcome{{RunID: "bad-0", Status: "failed", Done: true}}, part.Runs, "the oldest first")
		require.EqualValues(t, 3, part.Remaining)
		s.until("bad-0", "waiting")
		all, err := s.c.ResumeAll(t.Context(), client.BulkRequest{Filter: filter, Matching: 3, ResetFailures: true})
		require.NoError(t, err)
		require.Equal(t, 3, all.Done)
		require.Zero(t, all.Refused+int(all.Remaining))
		for i := range 4 {
			s.until(fmt.Sprint("bad-", i), "waiting")
		}
		done, err := s.c.CancelAll(t.Context(), client.BulkRequest{Filter: map[string][]string{"q": {"BAD"}}, Matching: 4, Reason: "not wanted"})
		require.NoError(t, err)
		require.Equal(t, 4, done.Done)
		require.Contains(t, s.until("bad-2", "cancelled").Reason, "not wanted")
		require.Equal(t, "waiting", s.until("fine", "waiting").Status)
	})
}

func TestEachRunOfABulkActIsAuthorizedAndRefusedByItself(t *testing.T) {
	o := dashboard.Options{User: func(context.Context) string { return "ada" }, Authorize: func(_ context.Context, a dashboard.Action, id string) error {
		if a == dashboard.ActionCancel && id == "theirs" {
			return errors.New("not yours")
		}
		return nil
	}}
	onStores(t, o, func(t *testing.T, s *site) {
		s.asks("mine")
		s.asks("theirs")
		out, err := s.c.CancelAll(t.Context(), client.BulkRequest{Filter: map[string][]string{"status": {"waiting"}}, Matching: 2})
		require.NoError(t, err)
		require.Equal(t, 1, out.Done)
		require.Equal(t, 1, out.Refused)
		require.Equal(t, "forbidden", out.Runs[1].Code)
		require.Contains(t, out.Runs[1].Message, "not yours")
		require.Contains(t, s.until("mine", "cancelled").Reason, "by ada")
		require.Equal(t, "waiting", s.until("theirs", "waiting").Status)

		none, err := s.c.ResumeAll(t.Context(), client.BulkRequest{Filter: map[string][]string{"status": {"waiting"}}, DryRun: true})
		require.NoError(t, err)
		require.Empty(t, none.Runs, "a resume is not for what waits")
	})
}

func TestABulkActWithoutAFilterOrADryRunIsRefused(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("a")
		for _, body := range []string{``, `{"matching":1}`, `{"filter":{},"matching":1}`, `{"filter":{"status":[]},"matching":1}`, `{"filter":{"status":["waiting"]}}`,
			`{"filter":{"nonsense":["x"]},"matching":1}`, `{"filter":{"limit":["1"]},"matching":1}`, `{"filter":{"status":["waiting"]},"matching":1,"limit":1001}`} {
			require.Equal(t, http.StatusBadRequest, s.send("POST", "/api/bulk/cancel", body).status, body)
		}
		s.until("a", "waiting")
	})
}

func TestThePagesActOnAllThatMatchWithoutAScript(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("bad-1")
		s.failed("bad-2")
		s.asks("fine")
		require.NotContains(t, s.browse("/").body, "/bulk?", "nobody means everything")
		page := s.browse("/?q=status:failed")
		require.Contains(t, page.body, `href="/bulk?act=resume&amp;q=status%3Afailed"`)
		plan := s.browse("/bulk?act=resume&q=" + url.QueryEscape("status:failed"))
		require.Equal(t, http.StatusOK, plan.status, plan.body)
		require.Contains(t, plan.body, "2 runs match")
		require.Contains(t, plan.body, "Resume 2 runs")
		require.NotRegexp(t, `(?i)<script(?:>|[^>]*>[^<])|<style|\sstyle=|\son[a-z]+=|javascript:`, plan.body)
		s.until("bad-1", "failed")
		form := func(path, body string) answer {
			return s.send("POST", path, body, "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
		}
		require.Equal(t, http.StatusConflict, form("/bulk/resume", "q=status:failed&matching=1").status)
		done := form("/bulk/resume", "q=status:failed&matching=2&reset_failures=1")
		require.Equal(t, http.StatusOK, done.status, done.body)
		require.Contains(t, done.body, "2 resumed")
		s.until("bad-1", "waiting")
		s.until("bad-2", "waiting")
		require.Equal(t, http.StatusNotFound, s.browse("/bulk?act=delete&q=status:failed").status)
	})
}
