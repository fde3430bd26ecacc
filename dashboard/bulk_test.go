package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
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
		require.Equal(t, []client.BulkOutcome{{RunID: "bad-0", Status: "failed", Done: true, Recoverable: true, Reason: "step charge: attempt 2 of 2: bank says no: card 4111-secret"}}, part.Runs, "the oldest first")
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

func TestWhatBeganSomeTimeAgoIsListedToTheEnd(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for i := range 30 {
			s.asks(fmt.Sprint("order-", i))
		}
		seen := 0
		for cursor := ""; seen == 0 || cursor != ""; {
			page, err := s.c.ListRuns(t.Context(), client.ListOptions{Since: "24h", Limit: 10, Cursor: cursor})
			require.NoError(t, err, "the second page is of the same moment as the first")
			seen, cursor = seen+len(page.Runs), page.Next
		}
		require.Equal(t, 30, seen)
		older := regexp.MustCompile(`href="([^"]*)">Older`).FindStringSubmatch(s.browse("/?q=since:24h").body)
		require.NotNil(t, older)
		page := s.browse(html.UnescapeString(older[1]))
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, "/runs/order-0\"")
	})
}

func TestRunsThatAreRefusedDoNotKeepThoseBehindThem(t *testing.T) {
	theirs := func(id string) bool { return id < "bad-05" }
	o := dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, id string) error {
		if a == dashboard.ActionCancel && id != "" && theirs(id) {
			return errors.New("not yours")
		}
		return nil
	}}
	onEveryStore(t, o, func(t *testing.T, s *site) {
		for i := range 12 {
			s.asks(fmt.Sprintf("bad-%02d", i))
		}
		req := client.BulkRequest{Filter: map[string][]string{"status": {"waiting"}, "since": {"24h"}}, DryRun: true, Limit: 2}
		dry, err := s.c.CancelAll(t.Context(), req)
		require.NoError(t, err)
		require.EqualValues(t, 12, dry.Matching)
		req.DryRun, req.Matching = false, dry.Matching
		done, refused, asked := 0, 0, 0
		for {
			out, err := s.c.CancelAll(t.Context(), req)
			require.NoError(t, err)
			asked++
			done, refused = done+out.Done, refused+out.Refused
			require.EqualValues(t, 12-done-refused, out.Remaining)
			if out.Next == "" {
				break
			}
			req.After, req.Matching = out.Next, out.Remaining
			if asked == 2 {
				s.asks("bad-new") // nobody has seen it in a dry run
			}
		}
		require.Equal(t, 6, asked)
		require.Equal(t, 7, done)
		require.Equal(t, 5, refused)
		require.Equal(t, "waiting", s.until("bad-new", "waiting").Status)
	})
}

func TestABulkActWhoseTimeEndsSaysHowManyRunsItDidNotReach(t *testing.T) {
	t.Parallel() // it mostly waits
	patience := time.Second
	for name, filter := range map[string]map[string][]string{"a filter": {"workflow": {"checkout"}}, "a search": {"q": {"bad"}}} {
		t.Run(name, func(t *testing.T) {
			o := dashboard.Options{Patience: patience, Authorize: func(_ context.Context, a dashboard.Action, id string) error {
				if a == dashboard.ActionCancel && id == "bad-1" {
					<-time.After(2 * patience)
				}
				return nil
			}}
			onStores(t, o, func(t *testing.T, s *site) {
				for i := range 4 {
					s.asks(fmt.Sprint("bad-", i))
				}
				out, err := s.c.CancelAll(t.Context(), client.BulkRequest{Filter: filter, Matching: 4})
				require.NoError(t, err)
				require.Equal(t, 1, out.Done)
				require.Zero(t, out.Refused)
				require.EqualValues(t, 3, out.Remaining)
				require.Empty(t, out.Next, "the dry run must be made again")
			})
		})
	}
}

func TestABulkActThatGoesOnReachesNoRunTwice(t *testing.T) {
	t.Parallel() // it mostly waits
	const patience = time.Second
	times := map[string]int{}
	o := dashboard.Options{Patience: patience, Authorize: func(_ context.Context, a dashboard.Action, id string) error {
		if a != dashboard.ActionCancel || id == "" {
			return nil
		}
		if times[id]++; id == "bad-4" && times[id] == 1 {
			<-time.After(2 * patience) // the time ends within a page that was begun
		}
		return errors.New("not yours") // so that it still matches
	}}
	onStores(t, o, func(t *testing.T, s *site) {
		clear(times)
		for i := range 7 {
			s.asks(fmt.Sprint("bad-", i))
		}
		req := client.BulkRequest{Filter: map[string][]string{"status": {"waiting"}, "since": {"24h"}}, Matching: 7, Limit: 2}
		var reached []string
		for _, want := range []int{2, 2, 3} {
			out, err := s.c.CancelAll(t.Context(), req)
			require.NoError(t, err)
			require.Len(t, out.Runs, want)
			for _, r := range out.Runs {
				reached = append(reached, r.RunID)
			}
			require.EqualValues(t, 7-len(reached), out.Remaining)
			req.After, req.Matching, req.Limit = out.Next, out.Remaining, 0
		}
		require.Equal(t, []string{"bad-0", "bad-1", "bad-2", "bad-3", "bad-4", "bad-5", "bad-6"}, reached)
		require.Equal(t, map[string]int{"bad-0": 1, "bad-1": 1, "bad-2": 1, "bad-3": 1, "bad-4": 2, "bad-5": 1, "bad-6": 1}, times)
	})
}

func TestASearchActsSliceBySlice(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for i := range 5 {
			s.asks(fmt.Sprint("bad-", i))
			s.asks(fmt.Sprint("fine-", i))
		}
		req := client.BulkRequest{Filter: map[string][]string{"q": {"bad"}}, Limit: 2}
		for range 20 {
			req.DryRun, req.Matching = true, 0
			dry, err := s.c.CancelAll(t.Context(), req)
			require.NoError(t, err)
			next := dry.Next
			if dry.Matching > 0 {
				req.DryRun, req.Matching = false, dry.Matching
				out, err := s.c.CancelAll(t.Context(), req)
				require.NoError(t, err)
				require.EqualValues(t, dry.Matching, out.Done)
				next = out.Next
			}
			if next == "" {
				break
			}
			req.After = next
		}
		for i := range 5 {
			s.until(fmt.Sprint("bad-", i), "cancelled")
			s.until(fmt.Sprint("fine-", i), "waiting")
		}
	})
}

func TestThePagesActSliceBySliceWithoutAScript(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	elsewhere := durable.Ref[int, int]("elsewhere") // nobody executes it
	for i := range 1050 {
		_, err := elsewhere.Start(withEngine(s), fmt.Sprintf("far-%04d", i), 0)
		require.NoError(t, err)
	}
	page := s.browse("/bulk?act=cancel&q=workflow:elsewhere")
	require.Contains(t, page.body, "50 more were not looked at")
	require.Contains(t, page.body, "Cancel 1,050 runs")
	field := regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	press := func() {
		t.Helper()
		form := url.Values{"reason": {"not wanted"}}
		for _, m := range field.FindAllStringSubmatch(page.body, -1) {
			form.Set(m[1], html.UnescapeString(m[2]))
		}
		page = s.send("POST", "/bulk/cancel", form.Encode(), "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
		require.Equal(t, http.StatusOK, page.status, page.body)
	}
	press()
	require.Contains(t, page.body, "1,000 asked to end")
	require.Contains(t, page.body, "1,000 of 1,050 done, 50 to come.")
	require.Contains(t, page.body, "Stop here")
	press()
	require.Contains(t, page.body, "1,050 asked to end")
	require.NotContains(t, page.body, "Stop here")
	require.Contains(t, s.until("far-1049", "cancelled").Reason, "not wanted", "the reason goes with every slice")
}
