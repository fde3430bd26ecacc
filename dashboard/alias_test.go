package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// The three doors through which a run is resumed, by path.
var resumeDoors = []string{"/api/runs/%s/resume", "/api/workflows/%s/resume", "/workflows/checkout/resume/%s"}

func door(pattern, id string) string {
	before, after, _ := strings.Cut(pattern, "%s")
	return before + id + after
}

func TestResumeAnswersWithTheStateOfTheWorkflow(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("r")
		a := s.send("POST", "/api/workflows/r/resume", "")
		require.Equal(t, 200, a.status, a.body)
		state := a.json(t)
		require.Equal(t, "r", state["id"])
		require.NotEqual(t, "failed", state["status"])
		require.NotContains(t, a.body, "bank says no")
		require.NotContains(t, state, "ended_at")
		s.until("r", "waiting")
		require.EqualValues(t, 3, s.shop.charged.Load(), "the failed step was tried again, the one before was not")
		resumed := false
		for e, err := range s.c.History(t.Context(), "r", client.EventsOptions{}) {
			require.NoError(t, err)
			for _, also := range e.Also {
				resumed = resumed || also == "WORKFLOW_STARTED" && e.Data["resumed"] == true
			}
		}
		require.True(t, resumed)
	})
}

func TestResumeIsRefusedTheSameWayAtEveryDoor(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for _, pattern := range resumeDoors {
			a := s.send("POST", door(pattern, "nobody"), "")
			require.Equal(t, http.StatusNotFound, a.status, pattern)
		}
		s.asks("done")
		_, err := s.c.Approve(t.Context(), "done", "", "")
		require.NoError(t, err)
		s.until("done", "completed")
		s.asks("gone")
		_, err = s.c.Cancel(t.Context(), "gone", "")
		require.NoError(t, err)
		s.until("gone", "cancelled")
		s.shop.nothing.Store(true)
		s.start("empty")
		s.until("empty", "failed")
		s.shop.nothing.Store(false)
		s.asks("waits")
		for _, pattern := range resumeDoors {
			for id, status := range map[string]string{"done": "completed", "gone": "cancelled"} {
				a := s.send("POST", door(pattern, id), "")
				require.Equal(t, http.StatusConflict, a.status, pattern)
				message := "Session " + id + " is not resumable (status: " + status + ")"
				require.Equal(t, message, a.json(t)["message"])
				require.Equal(t, message, a.json(t)["error"].(map[string]any)["message"])
				require.Equal(t, "not_resumable", a.json(t)["error"].(map[string]any)["code"])
			}
			a := s.send("POST", door(pattern, "empty"), "")
			require.Equal(t, http.StatusConflict, a.status, pattern+a.body)
			require.Equal(t, "no_checkpoint", a.json(t)["error"].(map[string]any)["code"])
			require.Equal(t, "failed", s.until("empty", "failed").Status, "it stays failed")
		}
		for _, pattern := range resumeDoors[:2] {
			a := s.send("POST", door(pattern, "waits"), "")
			require.Equal(t, http.StatusConflict, a.status, "who waits is answered, not resumed")
		}
		for _, id := range []string{"waits", "done", "gone"} {
			s.notPlanned(id)
		}
		a := s.send("POST", "/workflows/other/resume/waits", "")
		require.Equal(t, http.StatusNotFound, a.status, "no run of that workflow")
		a = s.send("POST", "/api/runs/empty/resume", `{"force":true}`)
		require.Equal(t, http.StatusOK, a.status, a.body)
		s.until("empty", "waiting")
	})
}

func TestAFailureThatIsFinalCanBeResumedAllTheSame(t *testing.T) {
	final := durable.Define("final", func(ctx context.Context, _ string) (string, error) {
		return durable.Step(ctx, "one", func(context.Context) (string, error) { return "", durable.Permanent(errors.New("never")) })
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{final}}, dashboard.Options{})
	_, err := s.c.Start(t.Context(), "final", client.StartRequest{ID: "r"})
	require.NoError(t, err)
	require.False(t, s.until("r", "failed").Recoverable, "no button")
	a := s.send("POST", "/api/workflows/r/resume", "")
	require.Equal(t, 200, a.status, a.body)
}

func TestARunWhoseCheckpointCannotBeReadStaysFailed(t *testing.T) {
	keys := durable.StaticKeys("k", map[string][]byte{"k": make([]byte, durable.KeySize)})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	w := durable.Options{Workflows: []durable.Definition{s.shop.workflow()}, Encrypt: keys}
	s.serve(w, dashboard.Options{ShowPayloads: true})
	s.failed("r")
	page, err := s.c.Events(t.Context(), "r", client.EventsOptions{})
	require.NoError(t, err)
	require.Equal(t, "k", page.Events[2].Payload.KeyID, "it says which key")
	w.Encrypt = nil
	s.serve(w, dashboard.Options{ShowPayloads: true})
	for _, pattern := range resumeDoors {
		a := s.send("POST", door(pattern, "r"), "")
		require.Equal(t, http.StatusConflict, a.status, a.body)
		require.Equal(t, "undecodable", a.json(t)["error"].(map[string]any)["code"])
		require.Equal(t, "failed", s.until("r", "failed").Status)
	}
	page, err = s.c.Events(t.Context(), "r", client.EventsOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, page.Events[2].Payload.Error)
}

func TestResumeOfARunWhoseTreeAnotherOneHolds(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		in := json.RawMessage(`{"ID":"x","Total":1}`)
		s.shop.broken.Store(true)
		_, err := s.c.Start(t.Context(), "checkout", client.StartRequest{ID: "r", Input: in, Exclusive: []string{"worktree:a"}})
		require.NoError(t, err)
		s.until("r", "failed")
		s.shop.broken.Store(false)
		_, err = s.c.Start(t.Context(), "checkout", client.StartRequest{ID: "holder", Input: in, Exclusive: []string{"worktree:a"}})
		require.NoError(t, err)
		s.until("holder", "waiting")
		for _, pattern := range resumeDoors {
			a := s.send("POST", door(pattern, "r"), "")
			require.Equal(t, http.StatusConflict, a.status, a.body)
			require.Equal(t, "occupied", a.json(t)["error"].(map[string]any)["code"])
		}
		require.Equal(t, "waiting", s.until("holder", "waiting").Status, "the other run is unaffected")
		_, err = s.c.Approve(t.Context(), "holder", "", "")
		require.NoError(t, err)
		s.until("holder", "completed")
		require.Equal(t, 200, s.send("POST", "/api/workflows/r/resume", "").status)
	})
}

func TestOfTwoResumesOverHTTPOneWins(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("r")
		s.shop.slow = make(chan struct{})
		defer close(s.shop.slow)
		const n = 8
		status := make([]int, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { status[i] = s.send("POST", "/api/workflows/r/resume", "").status })
		}
		all.Wait()
		won := 0
		for _, code := range status {
			if code == http.StatusOK {
				won++
				continue
			}
			require.Equal(t, http.StatusConflict, code)
		}
		require.Equal(t, 1, won, status)
	})
}

func TestAWaitingRunIsAcceptedForResumeAndAnswered(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("r")
		done, err := s.c.ResumeRun(t.Context(), "checkout", "r")
		require.NoError(t, err)
		require.Equal(t, "r", done.RunID)
		a := s.send("POST", "/workflows/checkout/resume/r", "")
		require.Equal(t, http.StatusAccepted, a.status)
		require.Equal(t, "r", a.json(t)["run_id"])
		run, err := s.c.GetRun(t.Context(), "r")
		require.NoError(t, err)
		a = s.send("POST", "/checkpoints/"+run.Approvals[0].ID, `{"approved":true,"reason":"ok"}`)
		require.Equal(t, 200, a.status, a.body)
		s.until("r", "completed")
		a = s.send("POST", "/checkpoints/"+run.Approvals[0].ID, `{"approved":true}`)
		require.Equal(t, http.StatusConflict, a.status)

		s.asks("q")
		a = s.send("POST", "/checkpoints/q", `{"value":true}`) // by the run: it asks one thing only
		require.Equal(t, 200, a.status, a.body)
		s.until("q", "completed")

		naps := []string{"/api/workflows/z/approve", "/api/workflows/z/reject", "/api/workflows/z/cancel"}
		for _, path := range naps {
			require.Equal(t, 404, s.send("POST", path, "").status)
		}
		s.asks("z")
		require.Equal(t, 200, s.send("POST", naps[1], "").status)
		s.until("z", "completed")
	})
}

type fakeArchive []client.ArchivedRun

func (fakeArchive) Source() string { return "git" }

func (a fakeArchive) Runs(context.Context) ([]client.ArchivedRun, error) {
	if a == nil {
		return nil, errors.New("no repository")
	}
	return a, nil
}

func TestHistoryServesTheArchiveAndIsNoRun(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	for _, path := range []string{"/runs/history", "/api/history", "/runs?source=git"} {
		a := s.send("GET", path, "")
		require.Equal(t, 200, a.status)
		require.JSONEq(t, `{"runs":[],"source":"git"}`, a.body, path)
	}
	s.asks("history") // a run of this name does not hide the archive
	require.JSONEq(t, `{"runs":[],"source":"git"}`, s.send("GET", "/runs/history", "").body)
	var live client.Runs
	require.NoError(t, json.Unmarshal([]byte(s.send("GET", "/runs", "").body), &live))
	require.Len(t, live.Runs, 1)
	require.Equal(t, 400, s.send("GET", "/runs?source=moon", "").status)

	kept := fakeArchive{{RunID: "old", Workflow: "checkout", Status: "completed", DurationMS: 12, Input: json.RawMessage(`"secret"`)}}
	s = open(t, memoryStore(t), dashboard.Options{Archive: kept})
	h, err := s.c.ArchivedRuns(t.Context())
	require.NoError(t, err)
	require.Equal(t, "git", h.Source)
	require.Equal(t, "old", h.Runs[0].RunID)
	require.Nil(t, h.Runs[0].Input, "user data is redacted here too")
	s = open(t, memoryStore(t), dashboard.Options{Archive: fakeArchive(nil)})
	require.Equal(t, http.StatusServiceUnavailable, s.send("GET", "/runs/history", "").status)
}

func TestAStoreThatIsGoneIsSaidSo(t *testing.T) {
	st := memoryStore(t)
	s := open(t, st, dashboard.Options{})
	s.asks("r")
	require.NoError(t, st.Close())
	for _, path := range []string{"/api/runs", "/api/runs/r", "/api/runs/r/events", "/api/health", "/api/counts", "/api/stuck", "/api/approvals", "/api/stream", "/api/runs/r/stream"} {
		a := s.send("GET", path, "")
		require.Equal(t, http.StatusServiceUnavailable, a.status, path+a.body)
		require.Equal(t, "closing", a.json(t)["error"].(map[string]any)["code"], path)
	}
	require.Equal(t, http.StatusServiceUnavailable, s.send("GET", "/api/ready", "").status)
}

func TestAnArchiveIsMadeOfAnyListing(t *testing.T) {
	type kept struct {
		ID    string    `json:"run_id"`
		Flow  string    `json:"workflow_id"`
		Ended time.Time `json:"ended_at,omitzero"`
		MS    int64     `json:"duration_ms"`
	}
	var broken error
	var runs []kept
	list := func(context.Context) iter.Seq2[kept, error] {
		return func(yield func(kept, error) bool) {
			for _, k := range runs {
				if !yield(k, nil) {
					return
				}
			}
			if broken != nil {
				yield(kept{}, broken)
			}
		}
	}
	s := open(t, memoryStore(t), dashboard.Options{Archive: dashboard.ArchiveFrom("git", list)})
	h, err := s.c.ArchivedRuns(t.Context())
	require.NoError(t, err)
	require.Empty(t, h.Runs)
	now := time.Now()
	runs = []kept{{"a", "w", now.Add(-time.Hour), 5}, {"b", "w", now, 7}}
	broken = errors.New("one is damaged")
	h, err = s.c.ArchivedRuns(t.Context())
	require.NoError(t, err)
	require.Len(t, h.Runs, 2)
	require.Equal(t, "b", h.Runs[0].RunID, "the latest first")
	require.EqualValues(t, 7, h.Runs[0].DurationMS)
	require.Equal(t, "w", h.Runs[0].Workflow)
	runs = nil
	_, err = s.c.ArchivedRuns(t.Context())
	require.ErrorIs(t, err, client.ErrServer)
}
