package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

func TestRunsAreListedByFilterAndPage(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for i := range 7 {
			s.start(fmt.Sprintf("order-%d", i))
		}
		for i := range 7 {
			s.until(fmt.Sprintf("order-%d", i), "waiting")
		}
		s.failed("broken-1")
		ids := func(o client.ListOptions) (all []string) {
			t.Helper()
			for r, err := range s.c.AllRuns(t.Context(), o) {
				require.NoError(t, err)
				all = append(all, r.ID)
			}
			return all
		}
		require.Len(t, ids(client.ListOptions{Limit: 3}), 8, "every page")
		require.Equal(t, []string{"broken-1"}, ids(client.ListOptions{Statuses: []string{"failed"}}))
		require.Equal(t, []string{"broken-1"}, ids(client.ListOptions{Prefix: "bro"}))
		require.Equal(t, []string{"order-3"}, ids(client.ListOptions{Search: "ER-3", Limit: 2}))
		require.Equal(t, []string{"broken-1"}, ids(client.ListOptions{Error: "bank SAYS no"}))
		require.Equal(t, []string{"broken-1"}, ids(client.ListOptions{Codes: []string{durable.CodeError}}))
		require.Len(t, ids(client.ListOptions{Key: "approve"}), 7)
		require.Len(t, ids(client.ListOptions{Attributes: map[string]string{"customer": "ada"}}), 8)
		require.Empty(t, ids(client.ListOptions{Attributes: map[string]string{"customer": "bob"}}))
		require.Len(t, ids(client.ListOptions{Since: "1h", Workflows: []string{"checkout"}}), 8)
		require.Empty(t, ids(client.ListOptions{Until: "7d"}))
		oldest := ids(client.ListOptions{OldestFirst: true})
		newest := ids(client.ListOptions{})
		slices.Reverse(newest)
		require.Equal(t, oldest, newest)

		page, err := s.c.ListRuns(t.Context(), client.ListOptions{Statuses: []string{"failed"}, Counts: true, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"waiting": 7, "failed": 1}, page.Counts)
		counts, err := s.c.Counts(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 8, counts.Total)
		require.EqualValues(t, 7, counts.Approvals)

		for _, bad := range []string{"?status=lost", "?limit=0", "?limit=a", "?limit=5000", "?since=never", "?sort=id", "?attribute=x", "?cursor=nonsense", "?order=up"} {
			a := s.send("GET", "/api/runs"+bad, "")
			require.Equal(t, http.StatusBadRequest, a.status, bad+" "+a.body)
		}
	})
}

func TestARunIsShownWithWhereItIsAndWhatItAsks(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		run := s.asks("order-1")
		require.Equal(t, "checkout", run.Workflow)
		require.Equal(t, []string{"reserve", "charge", "approve", "ship"}, run.Declared)
		require.Equal(t, "approve", run.Key)
		require.Equal(t, 2, run.Steps)
		require.True(t, *run.Executed)
		require.Len(t, run.Approvals, 1)
		require.Equal(t, "Ship order-1?", run.Approvals[0].Prompt)
		require.Equal(t, "false", string(run.Approvals[0].Sample))

		_, err := s.c.GetRun(t.Context(), "nobody")
		require.ErrorIs(t, err, client.ErrNotFound)
		branches, err := s.c.Branches(t.Context(), "order-1")
		require.NoError(t, err)
		require.Len(t, branches, 1)
		_, err = s.c.Branches(t.Context(), "nobody")
		require.ErrorIs(t, err, client.ErrNotFound)
		flows, err := s.c.Workflows(t.Context())
		require.NoError(t, err)
		require.Equal(t, []client.Workflow{{Name: "checkout", Versions: []string{"1"}, Executors: 1}}, flows)
		health, err := s.c.Health(t.Context())
		require.Equal(t, durable.Release(), health.Release)
		require.NoError(t, err)
		require.True(t, health.Ready)
		require.Len(t, health.Executors, 1)
		require.Equal(t, http.StatusOK, s.send("GET", "/api/ready", "").status)
		require.Equal(t, http.StatusOK, s.send("GET", "/api/openapi.json", "").status)
	})
}

func TestOddIDsReachTheirRuns(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Prefix: "/ops/"})
	for _, id := range []string{"a/b", "..", ".", "history", "ä ö", "100%", "?q=1#x", "<script>", "x:5", "%2F"} {
		t.Run(id, func(t *testing.T) {
			s.asks(id)
			run, err := s.c.GetRun(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, id, run.ID)
			_, err = s.c.Approve(t.Context(), id, "", "")
			require.NoError(t, err)
			s.until(id, "completed")
			for _, err := range s.c.Watch(t.Context(), id, 0) {
				require.NoError(t, err)
			}
		})
	}
}

func TestHistoryIsReadInPagesAndByBranch(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("r")
		var types []string
		for e, err := range s.c.History(t.Context(), "r", client.EventsOptions{Limit: 2}) {
			require.NoError(t, err)
			types = append(types, e.Type)
			require.NotEmpty(t, e.Text)
		}
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed", "attempt_failed", "step_failed", "workflow_failed"}, types)

		_, err := s.c.Resume(t.Context(), "r", client.ResumeOptions{FromKey: "reserve"})
		require.NoError(t, err)
		s.until("r", "waiting")
		branches, err := s.c.Branches(t.Context(), "r")
		require.NoError(t, err)
		require.Len(t, branches, 2)
		zero, left := 0, 0
		for e, err := range s.c.History(t.Context(), "r", client.EventsOptions{All: true, Skipped: true}) {
			require.NoError(t, err)
			if e.LeftBehind {
				left++
			}
			if e.Type == "run_resumed" {
				require.Contains(t, e.Also, "WORKFLOW_STARTED")
				require.Equal(t, true, e.Data["resumed"])
				require.Equal(t, []client.Skipped{{Type: "step_skipped", Key: "reserve", Reason: "replayed from snapshot"}}, e.Expands)
			}
			if e.Type == "wait_requested" {
				require.Equal(t, []string{"APPROVAL_REQUIRED", "checkpoint_waiting"}, e.Also)
			}
		}
		require.Equal(t, 3, left)
		n := 0
		for _, err := range s.c.History(t.Context(), "r", client.EventsOptions{Branch: &zero}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 6, n)
		tail, err := s.c.Events(t.Context(), "r", client.EventsOptions{Tail: 1})
		require.NoError(t, err)
		require.Len(t, tail.Events, 1)
		require.Equal(t, "wait_requested", tail.Events[0].Type)
		for _, bad := range []string{"?after=x", "?branch=-1", "?all=maybe", "?limit=-3"} {
			require.Equal(t, 400, s.send("GET", "/api/runs/r/events"+bad, "").status, bad)
		}
		require.Equal(t, 404, s.send("GET", "/api/runs/r/events?branch=9", "").status)
		require.Equal(t, 404, s.send("GET", "/api/runs/nobody/events", "").status)
	})
}

func TestUserDataIsRedactedUnlessItIsToBeShown(t *testing.T) {
	for _, show := range []bool{false, true} {
		s := open(t, memoryStore(t), dashboard.Options{ShowPayloads: show})
		s.failed("r")
		s.asks("q")
		a := s.send("GET", "/api/runs/r/events", "")
		require.Equal(t, show, strings.Contains(a.body, "secret-shelf"), a.body)
		require.Equal(t, show, strings.Contains(a.body, "secret-note"), a.body)
		require.NotContains(t, a.body, "<b>", "escaped in JSON")
		var page client.Events
		require.NoError(t, json.Unmarshal([]byte(a.body), &page))
		p := page.Events[2].Payload
		require.Equal(t, "string", p.Type)
		require.Equal(t, !show, p.Redacted)
		require.NotZero(t, p.Size)
		a = s.send("GET", "/api/runs/r/events/3/payload", "")
		export := s.send("GET", "/api/runs/r/export", "")
		if !show {
			require.Equal(t, http.StatusForbidden, a.status)
			require.Equal(t, http.StatusForbidden, export.status)
			continue
		}
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, "application/octet-stream", a.header.Get("Content-Type"))
		require.Equal(t, `attachment; filename="event-3.json"`, a.header.Get("Content-Disposition"))
		require.Contains(t, a.body, "secret-shelf")
		require.Contains(t, export.body, "secret-shelf")
		require.Equal(t, 404, s.send("GET", "/api/runs/r/events/2/payload", "").status, "it has none")
		require.Equal(t, 404, s.send("GET", "/api/runs/r/events/99/payload", "").status)
		require.Equal(t, 400, s.send("GET", "/api/runs/r/events/x/payload", "").status)
		body, err := s.c.Payload(t.Context(), "r", 3)
		require.NoError(t, err)
		b, err := io.ReadAll(body)
		require.NoError(t, err)
		require.NoError(t, body.Close())
		require.Contains(t, string(b), "shelf")
	}
}

// A signal without a value is a no to whoever reads null as one.
func TestASignalWithoutAValueIsSentOnlyToAWaitThatTakesNothing(t *testing.T) {
	wait := durable.Define("wait", func(ctx context.Context, _ string) (bool, error) {
		if _, err := durable.Await[struct{}](ctx, "begin"); err != nil {
			return false, err
		}
		return durable.Await[bool](ctx, "sure")
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{wait}}, dashboard.Options{})
	_, err := s.c.Start(t.Context(), "wait", client.StartRequest{ID: "r", Input: json.RawMessage(`""`)})
	require.NoError(t, err)
	s.until("r", "waiting")
	a := s.send("POST", "/api/runs/r/signal/sure", `{}`)
	require.Equal(t, 400, a.status, a.body)
	require.Contains(t, a.body, "signal sure has no value, and it is not known whether run r takes it without one")
	require.Equal(t, 200, s.send("POST", "/api/runs/r/signal/begin", `{}`).status)
	require.Eventually(t, func() bool {
		a = s.send("POST", "/api/runs/r/signal/sure", `{}`)
		return strings.Contains(a.body, "signal sure has no value, and run r waits for one like false")
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, 400, a.status, a.body)
	a = s.send("POST", "/api/runs/r/signal/sure", `{"value":null}`)
	require.Equal(t, 400, a.status, a.body)
	require.Contains(t, a.body, "run r: sure waits for true or false, and the signal is null")
	require.Equal(t, 200, s.send("POST", "/api/runs/r/signal/sure", `{"value":true}`).status)
	s.until("r", "completed")
	require.Equal(t, 409, s.send("POST", "/api/runs/r/signal/sure", `{}`).status, "it has ended")
	require.Equal(t, 404, s.send("POST", "/api/runs/nosuch/signal/sure", `{}`).status)
}

func TestALargePayloadIsShownByItsHead(t *testing.T) {
	big := durable.Define("big", func(ctx context.Context, _ string) (string, error) {
		return durable.Step(ctx, "big", func(context.Context) (string, error) { return strings.Repeat("ä", 100_000), nil })
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{big}}, dashboard.Options{ShowPayloads: true})
	_, err := s.c.Start(t.Context(), "big", client.StartRequest{ID: "r"})
	require.NoError(t, err)
	s.until("r", "completed")
	page, err := s.c.Events(t.Context(), "r", client.EventsOptions{})
	require.NoError(t, err)
	p := page.Events[2].Payload
	require.True(t, p.Truncated)
	require.LessOrEqual(t, len(p.Text), 64<<10)
	require.Greater(t, len(p.Text), 60<<10)
	require.Equal(t, 200_002, p.Size)
	require.NotContains(t, p.Text, "\ufffd")
	a := s.send("GET", "/api/runs/r/events/3/payload", "")
	require.Len(t, a.body, 200_002)
}

func TestRedactIsAppliedToEveryTextOfUserOrigin(t *testing.T) {
	canary := "secret"
	s := open(t, memoryStore(t), dashboard.Options{ShowPayloads: true, Redact: func(text string) string {
		return strings.ReplaceAll(text, canary, "***")
	}})
	s.failed("r")
	s.asks("q")
	s.shop.broken.Store(true)
	_, err := s.c.Cancel(t.Context(), "q", "because of the secret")
	require.NoError(t, err)
	s.until("q", "cancelled")
	for _, path := range []string{
		"/api/runs", "/api/runs/r", "/api/runs/q", "/api/runs/r/events", "/api/runs/q/events", "/api/runs/r/plan", "/api/runs/r/events/3/payload",
		"/api/stuck", "/api/approvals", "/api/runs/r/branches", "/runs", "/runs/history",
	} {
		a := s.send("GET", path, "")
		require.Equal(t, 200, a.status, path+a.body)
		require.NotContains(t, a.body, canary, path)
	}
	require.Equal(t, 403, s.send("GET", "/api/runs/r/export", "").status, "a file cannot be redacted")
	for u, err := range s.c.Watch(t.Context(), "r", 0) {
		require.NoError(t, err)
		b, err := json.Marshal(u)
		require.NoError(t, err)
		require.NotContains(t, string(b), canary)
	}
}

func TestAPlanIsShownBeforeAnythingIsDone(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("r")
		before := s.until("r", "failed")
		plan, err := s.c.Plan(t.Context(), "r", client.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		require.Equal(t, "Resuming from step 2 of 4", plan.Summary)
		require.Equal(t, []string{"reserve"}, plan.Skipped)
		require.Equal(t, []string{"charge"}, plan.Reset)
		require.Equal(t, "charge", plan.Next.Key)
		require.True(t, plan.Served)
		same, err := s.c.Resume(t.Context(), "r", client.ResumeOptions{ResetFailures: true, DryRun: true})
		require.NoError(t, err)
		require.True(t, same.DryRun)
		require.Equal(t, plan, same.Plan)
		a := s.send("POST", "/api/runs/r/resume?dry_run=1", `{"reset_failures":true}`)
		require.Equal(t, 200, a.status)
		require.Equal(t, before, s.until("r", "failed"), "nothing was changed")

		done, err := s.c.Resume(t.Context(), "r", client.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		require.NotEqual(t, "failed", done.Run.Status)
		s.until("r", "waiting")
	})
}

func TestEveryActOfAnOperator(t *testing.T) {
	onEveryStore(t, dashboard.Options{User: func(context.Context) string { return "mara" }}, func(t *testing.T, s *site) {
		ctx := t.Context()
		s.asks("r")
		done, err := s.c.Pause(ctx, "r", "lunch")
		require.NoError(t, err)
		require.Contains(t, done.Message, "Workflow r pause")
		var run client.Run
		require.Eventually(t, func() bool {
			run, err = s.c.GetRun(ctx, "r")
			return err == nil && run.Paused
		}, time.Minute, 5*time.Millisecond)
		require.False(t, *run.Executed)
		require.Contains(t, run.Nobody, "paused")
		stuck, err := s.c.Stuck(ctx)
		require.NoError(t, err)
		require.Len(t, stuck, 1)
		require.Equal(t, durable.CodePaused, stuck[0].Code)
		_, err = s.c.Unpause(ctx, "r")
		require.NoError(t, err)
		_, err = s.c.Unpause(ctx, "r")
		require.ErrorIs(t, err, client.ErrConflict)

		jump, err := s.c.Jump(ctx, "r", client.JumpRequest{Key: "reserve", Reason: "again", DryRun: true})
		require.NoError(t, err)
		require.Equal(t, []string{"charge"}, jump.Plan.Again)
		_, err = s.c.Jump(ctx, "r", client.JumpRequest{Key: "reserve", Reason: "again"})
		require.NoError(t, err)
		require.EqualValues(t, 1, s.until("r", "waiting").Branch)

		fork, err := s.c.Fork(ctx, "r", client.ForkRequest{ID: "f", Key: "reserve", Attributes: map[string]string{"why": "test"}})
		require.NoError(t, err)
		require.Equal(t, "f", fork.RunID)
		require.Equal(t, "r", s.until("f", "waiting").ForkedFrom)
		_, err = s.c.Fork(ctx, "r", client.ForkRequest{At: 9999})
		require.ErrorIs(t, err, client.ErrConflict)

		s.failed("e")
		edit, err := s.c.Edit(ctx, "e", client.EditRequest{Key: "charge", Value: json.RawMessage(`7`), Reason: "paid by hand", DryRun: true})
		require.NoError(t, err)
		require.True(t, edit.DryRun)
		_, err = s.c.Edit(ctx, "e", client.EditRequest{Key: "reserve", Value: json.RawMessage(`7`)})
		require.ErrorIs(t, err, client.ErrInvalid, "a number where a text is recorded")
		_, err = s.c.Edit(ctx, "e", client.EditRequest{Key: "charge", Value: json.RawMessage(`7`), Reason: "paid by hand"})
		require.NoError(t, err)
		charged := s.shop.charged.Load()
		_, err = s.c.Resume(ctx, "e", client.ResumeOptions{})
		require.NoError(t, err)
		s.until("e", "waiting")
		require.Equal(t, charged, s.shop.charged.Load(), "it was not charged again")
		by := ""
		for ev, err := range s.c.History(ctx, "e", client.EventsOptions{}) {
			require.NoError(t, err)
			if ev.Type == "edited" {
				by = ev.Data["by"].(string)
			}
		}
		require.Equal(t, "mara", by)
		require.Equal(t, 400, s.send("POST", "/api/runs/e/edit", `{"value":1}`).status)

		_, err = s.c.Signal(ctx, "e", "approve", json.RawMessage(`true`), "once")
		require.NoError(t, err)
		s.until("e", "completed")
		_, err = s.c.Signal(ctx, "e", "approve", json.RawMessage(`true`), "twice")
		require.ErrorIs(t, err, client.ErrConflict)
		_, err = s.c.Cancel(ctx, "e", "")
		require.ErrorIs(t, err, client.ErrConflict)
		done, err = s.c.Cancel(ctx, "f", "changed my mind")
		require.NoError(t, err)
		require.Regexp(t, "^Workflow f (is being )?cancelled$", done.Message)
		require.Contains(t, s.until("f", "cancelled").Reason, "mara")
	})
}

func TestStartIsIdempotentAndRefusesBadInput(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.start("r")
		s.start("r")
		_, err := s.c.Start(t.Context(), "checkout", client.StartRequest{ID: "r", Input: json.RawMessage(`{"ID":"other"}`)})
		require.ErrorIs(t, err, client.ErrConflict)
		_, err = s.c.Start(t.Context(), "nowhere", client.StartRequest{ID: "x"})
		require.ErrorIs(t, err, client.ErrNotFound)
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "workflow_not_registered", e.Code)
		for _, body := range []string{`{"input":{"Idx":1}}`, `{"input":1}`, `{"colour":"red"}`, `{`, `[]`, `{} {}`, `{"id":"a\ud800"}`, `{"input":{"ID":"\udc00"}}`} {
			a := s.send("POST", "/api/workflows/checkout/runs", body)
			require.Equal(t, 400, a.status, body+a.body)
		}
		done, err := s.c.Start(t.Context(), "checkout", client.StartRequest{Exclusive: []string{"tree"}, Headers: map[string]string{"tenant": "a"}})
		require.NoError(t, err)
		require.Contains(t, done.RunID, "checkout-")
		_, err = s.c.Start(t.Context(), "checkout", client.StartRequest{ID: "second", Exclusive: []string{"tree"}})
		require.ErrorIs(t, err, client.ErrConflict)
		require.ErrorAs(t, err, &e)
		require.Equal(t, "occupied", e.Code)
	})
}

func TestAnswersGoToTheirQuestionAndOnlyOnce(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		ctx := t.Context()
		s.asks("yes")
		s.asks("no")
		s.asks("full")
		open, err := s.c.Approvals(ctx)
		require.NoError(t, err)
		require.Len(t, open, 3)
		done, err := s.c.Approve(ctx, "yes", open[0].ID, "fine")
		require.NoError(t, err)
		require.Equal(t, "Approved yes: Ship yes?", done.Message)
		s.until("yes", "completed")
		_, err = s.c.Reject(ctx, "no", "approve", "")
		require.NoError(t, err)
		s.until("no", "completed")
		_, err = s.c.Answer(ctx, "full", client.Answer{})
		require.ErrorIs(t, err, client.ErrInvalid)
		_, err = s.c.Answer(ctx, "full", client.Answer{Value: json.RawMessage(`"yes please"`)})
		require.ErrorIs(t, err, client.ErrInvalid, "a text where a boolean is waited for")
		_, err = s.c.Approve(ctx, "full", "other", "")
		require.ErrorIs(t, err, client.ErrConflict)
		a := s.send("POST", "/api/runs/full/approve", `{"approved":false}`)
		require.Equal(t, 400, a.status)
		_, err = s.c.Answer(ctx, "full", client.Answer{Value: json.RawMessage(`true`)})
		require.NoError(t, err)
		s.until("full", "completed")
		_, err = s.c.Approve(ctx, "full", "", "")
		require.ErrorIs(t, err, client.ErrConflict)
		require.ErrorContains(t, err, "status: completed")
		_, err = s.c.Approve(ctx, "nobody", "", "")
		require.ErrorIs(t, err, client.ErrNotFound)
	})
}

func TestAPagePassesOverNoRunWhateverIsSearchedFor(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.shop.broken.Store(true)
	for i := range 30 {
		s.start(fmt.Sprintf("r-%02d-%d", i, i%3))
	}
	var found []string
	for r, err := range s.c.AllRuns(t.Context(), client.ListOptions{Search: "-2", Limit: 4}) {
		require.NoError(t, err)
		found = append(found, r.ID)
	}
	slices.Sort(found)
	require.Len(t, slices.Compact(found), len(found))
	want := 0
	for i := range 30 {
		if strings.Contains(fmt.Sprintf("r-%02d-%d", i, i%3), "-2") {
			want++
		}
	}
	require.Len(t, found, want)
}
