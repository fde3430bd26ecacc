package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// refused sends a resume that is refused, and requires what is said of it.
func (s *site) refused(pattern, id, code, message string) {
	s.t.Helper()
	a := s.send("POST", door(pattern, id), "")
	require.Equal(s.t, http.StatusConflict, a.status, "%s %s: %s", pattern, id, a.body)
	require.Equal(s.t, code, a.json(s.t)["error"].(map[string]any)["code"], "%s %s", pattern, id)
	require.Contains(s.t, a.json(s.t)["message"], message, "%s %s", pattern, id)
}

// notPlanned requires that a dry run refuses what a resume refuses: there the claim,
// which refuses most of it too, cannot have been what did.
func (s *site) notPlanned(id string) {
	s.t.Helper()
	for method, path := range map[string]string{"GET": "/api/runs/" + id + "/plan", "POST": "/api/runs/" + id + "/resume?dry_run=1"} {
		a := s.send(method, path, "")
		require.Equal(s.t, http.StatusConflict, a.status, "%s %s: %s", method, path, a.body)
		require.Equal(s.t, "not_resumable", a.json(s.t)["error"].(map[string]any)["code"], "%s %s", method, path)
	}
}

func TestWhatIsUnderWayOrNotBegunIsNotResumed(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.shop.hang = make(chan struct{})
		s.start("busy")
		require.Eventually(t, func() bool { return s.until("busy", "running").Steps == 1 }, time.Minute, 5*time.Millisecond)
		_, err := durable.Ref[Order, string]("elsewhere").Start(withEngine(s), "new", Order{})
		require.NoError(t, err)
		for _, pattern := range resumeDoors {
			s.refused(pattern, "busy", "not_resumable", "Session busy is not resumable (status: running): already in progress")
		}
		for _, pattern := range append(resumeDoors[:2:2], "/workflows/elsewhere/resume/%s") {
			s.refused(pattern, "new", "not_resumable", "Session new is not resumable (status: pending)")
		}
		for _, id := range []string{"busy", "new"} {
			s.notPlanned(id)
		}
		require.Equal(t, "pending", s.until("new", "pending").Status)
		s.shop.hang <- struct{}{}
		s.until("busy", "waiting")
	})
}

// It exists, it has failed, it has a checkpoint, its scope is free: each run here
// has all the faults from some point on, and is told the first.
func TestAResumeIsRefusedForTheFirstThingThatSpeaksAgainstIt(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		begin := func(id string) {
			t.Helper()
			in, err := json.Marshal(Order{ID: id})
			require.NoError(t, err)
			_, err = s.c.Start(t.Context(), "checkout", client.StartRequest{ID: id, Input: in, Exclusive: []string{"worktree:a"}})
			require.NoError(t, err)
		}
		s.shop.nothing.Store(true)
		begin("empty")
		s.until("empty", "failed")
		s.shop.nothing.Store(false)
		s.shop.broken.Store(true)
		begin("full")
		s.until("full", "failed")
		s.shop.broken.Store(false)
		begin("done")
		s.until("done", "waiting")
		_, err := s.c.Approve(t.Context(), "done", "", "")
		require.NoError(t, err)
		s.until("done", "completed")
		begin("holder")
		s.until("holder", "waiting")

		for _, pattern := range resumeDoors {
			require.Equal(t, http.StatusNotFound, s.send("POST", door(pattern, "nobody"), "").status, pattern)
			s.refused(pattern, "done", "not_resumable", "Session done is not resumable (status: completed)")
			s.refused(pattern, "empty", "no_checkpoint", "empty")
			s.refused(pattern, "full", "occupied", "holder")
		}
		for _, id := range []string{"empty", "full"} {
			require.Equal(t, "failed", s.until(id, "failed").Status)
		}
		_, err = s.c.Cancel(t.Context(), "holder", "")
		require.NoError(t, err)
		s.until("holder", "cancelled")
		s.refused(resumeDoors[1], "empty", "no_checkpoint", "empty")
		require.Equal(t, http.StatusOK, s.send("POST", "/api/workflows/full/resume", "").status)
		s.until("full", "waiting")
	})
}

func TestAFailureSaysInItsEventWhetherItCanBeRecovered(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		final := durable.Define("final", func(ctx context.Context, _ string) (string, error) {
			return durable.Step(ctx, "one", func(context.Context) (string, error) { return "", durable.Permanent(errors.New("never")) })
		})
		s.failed("exhausted")
		s.asks("asks")
		s.leaveRunning("asks", "lost", 3)
		require.NoError(t, s.eng.Close())
		s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow(), final}, OnBoot: durable.FailOnBoot}, dashboard.Options{})
		_, err := s.c.Start(t.Context(), "final", client.StartRequest{ID: "final"})
		require.NoError(t, err)
		for id, recoverable := range map[string]bool{"exhausted": true, "lost": true, "final": false} {
			require.Equal(t, recoverable, s.until(id, "failed").Recoverable, id)
			var last client.Event
			for e, err := range s.c.History(t.Context(), id, client.EventsOptions{}) {
				require.NoError(t, err)
				last = e
			}
			require.Equal(t, []string{"WORKFLOW_FAILED"}, last.Also, id)
			if recoverable {
				require.Equal(t, true, last.Data["recoverable"], id)
			} else {
				require.NotEqual(t, true, last.Data["recoverable"], id)
			}
		}
	})
}

// Who connects after the boot is shown what is asked, by the run's stream, by that
// of all runs and by the list of questions, as it was asked before.
func TestEveryClientOfAServerThatStartsAnewIsShownWhatIsAsked(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		before := s.asks("r").Approvals
		require.Len(t, before, 1)
		require.Equal(t, "Ship r?", before[0].Prompt)
		require.NoError(t, s.eng.Close())
		s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{})
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		for _, path := range []string{"/api/runs/r/stream", "/api/runs/r/stream", "/api/stream", "/api/stream"} {
			next := s.stream(ctx, path, "")
			for {
				m, ok := next()
				require.True(t, ok, path)
				if m.event != "approval" {
					continue
				}
				var asked client.Approval
				require.NoError(t, json.Unmarshal([]byte(m.data), &asked))
				require.Equal(t, before[0], asked, path)
				break
			}
		}
		again, err := s.c.GetRun(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, before, again.Approvals)
	})
}
