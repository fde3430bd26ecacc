package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

func TestAnAnswerReachesTheRunThatTheAddressNames(t *testing.T) {
	for _, route := range []string{"/checkpoints/", "/api/approvals/"} {
		t.Run(route, func(t *testing.T) {
			asked := map[string]bool{}
			s := open(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, id string) error {
				if a == dashboard.ActionAnswer && id == "kept" {
					return errors.New("not yours")
				}
				asked[id] = true
				return nil
			}})
			for _, id := range []string{"deploy", "deploy:staging", "kept:x", "kept"} {
				s.asks(id)
			}
			for _, id := range []string{"deploy:staging", "kept:x"} {
				clear(asked)
				a := s.send("POST", route+id, `{"approved":true}`)
				require.Equal(t, http.StatusOK, a.status, a.body)
				require.Equal(t, id, a.json(t)["run_id"])
				require.True(t, asked[id], "who may answer this run was asked")
				s.until(id, "completed")
			}
			s.until("deploy", "waiting")
			s.until("kept", "waiting")
		})
	}
}

func TestAnAddressThatNamesARunAndAWaitOfAnotherIsRefused(t *testing.T) {
	for _, route := range []string{"/checkpoints/", "/api/approvals/"} {
		s := open(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, id string) error {
			if a == dashboard.ActionAnswer && strings.HasPrefix(id, "kept:") {
				return errors.New("not yours")
			}
			return nil
		}})
		wait := s.asks("deploy").Approvals[0]
		run := fmt.Sprintf("deploy:%d", wait.Seq)
		require.Equal(t, wait.ID, run)
		s.asks(run)
		a := s.send("POST", route+run, `{"approved":true}`)
		require.Equal(t, http.StatusConflict, a.status, a.body)
		require.Contains(t, a.body, `"ambiguous"`)
		s.until("deploy", "waiting")
		s.until(run, "waiting")

		// Each is still answered under its own address.
		require.Equal(t, http.StatusOK, s.send("POST", "/api/runs/deploy/answer", `{"approved":true,"wait":"`+wait.ID+`"}`).status)
		s.until("deploy", "completed")

		// A run whose id looks like a wait, and no run that could have that wait.
		s.asks("alone:7")
		a = s.send("POST", route+"alone:7", `{"approved":true}`)
		require.Equal(t, http.StatusOK, a.status, a.body)
		s.until("alone:7", "completed")
		s.asks("kept:7")
		require.Equal(t, http.StatusForbidden, s.send("POST", route+"kept:7", `{"approved":true}`).status, "the run that is answered is authorized")
		s.until("kept:7", "waiting")
	}
}

func TestABulkActWithAnEmptyValueInItsFilterTakesNoRun(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("one")
	s.asks("two")
	for _, f := range []string{
		`{"workflow":[""]}`, `{"workflow":["checkout",""]}`, `{"workflow":["checkout,"]}`, `{"status":[","]}`, `{"status":[""]}`, `{"version":[""]}`, `{"code":[""]}`, `{"queue":[""]}`,
		`{"prefix":[""]}`, `{"error":[""]}`, `{"key":[""]}`, `{"q":[""]}`, `{"q":["one",""]}`, `{"q":["",  "one"]}`, `{"parent":[""]}`, `{"owner":[""]}`, `{"since":[""]}`, `{"workflow":[" "]}`, `{"q":[" "]}`,
	} {
		a := s.send("POST", "/api/bulk/cancel", `{"filter":`+f+`,"dry_run":true}`)
		require.Equal(t, http.StatusBadRequest, a.status, "%s: %s", f, a.body)
		a = s.send("POST", "/api/bulk/cancel", `{"filter":`+f+`,"matching":2}`)
		require.Equal(t, http.StatusBadRequest, a.status, "%s: %s", f, a.body)
	}
	s.until("one", "waiting")
	s.until("two", "waiting")
}

// What an act is asked to do beyond its body is understood or refused, by every route
// that acts.
func TestAnActRefusesAParameterThatItDoesNotKnow(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("f")
	s.asks("a")
	for _, p := range []string{
		"/api/runs/f/resume", "/api/workflows/f/resume", "/workflows/checkout/resume/f", "/api/runs/a/cancel", "/api/workflows/a/cancel", "/api/runs/a/pause", "/api/runs/a/unpause",
		"/api/runs/a/signal/x", "/api/runs/a/approve", "/api/runs/a/reject", "/api/runs/a/answer", "/api/runs/a/fork", "/api/runs/a/jump", "/api/runs/a/edit", "/api/approvals/a", "/checkpoints/a",
		"/api/workflows/a/approve", "/api/workflows/a/reject", "/api/workflows/checkout/runs", "/api/bulk/resume", "/api/bulk/cancel",
	} {
		ask := "?dryrun=1"
		a := s.send("POST", p+ask, `{}`)
		require.Equal(t, http.StatusBadRequest, a.status, "%s: %s", p, a.body)
		require.Contains(t, a.body, "dryrun", p)
	}
	s.until("f", "failed")
	s.until("a", "waiting")
}

func TestEveryRouteThatResumesTakesADryRun(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("f")
	for _, p := range []string{"/api/runs/f/resume", "/api/workflows/f/resume", "/workflows/checkout/resume/f"} {
		for ask, body := range map[string]string{"?dry_run=1": `{}`, "?dry_run=true": "", "?dry_run": `{}`, "": `{"dry_run":true}`} {
			a := s.send("POST", p+ask, body)
			require.Less(t, a.status, 300, "%s%s: %s", p, ask, a.body)
			s.until("f", "failed")
		}
		require.Equal(t, http.StatusBadRequest, s.send("POST", p+"?dry_run=maybe", `{}`).status)
		require.Equal(t, int64(0), int64(s.until("f", "failed").Resumes))
	}
	s.asks("w")
	for _, ask := range []string{"?dry_run=1", ""} {
		a := s.send("POST", "/workflows/checkout/resume/w"+ask, map[string]string{"": `{"dry_run":true}`}[ask])
		require.Less(t, a.status, 300, a.body)
	}
}

func TestWhoMayStartSeesOfARunThatExistsNoMoreThanWhoMayReadIt(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("other")
	var startOf []string
	s2 := &site{t: t, st: s.st, shop: s.shop}
	s2.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, id string) error {
		if a == dashboard.ActionStart {
			startOf = append(startOf, id)
		}
		if a == dashboard.ActionStart && id != "taken" || a == dashboard.ActionRead && id == "mine" || a == dashboard.ActionFork && id != "taken" {
			return nil
		}
		return errors.New("no")
	}})
	require.Equal(t, http.StatusForbidden, s2.send("GET", "/api/runs/other", "").status)

	a := s2.send("POST", "/api/workflows/checkout/runs", `{"id":"other","input":{"ID":"other","Total":42}}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	require.Equal(t, map[string]any{"run_id": "other", "message": "Workflow other started"}, a.json(t), "no more than that it exists, which the id says")
	require.Contains(t, startOf, "other", "the id is authorized")

	require.Equal(t, http.StatusForbidden, s2.send("POST", "/api/workflows/checkout/runs", `{"id":"taken","input":{"ID":"x","Total":1}}`).status)

	a = s2.send("POST", "/api/workflows/checkout/runs", `{"id":"mine","input":{"ID":"mine","Total":1}}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	require.Contains(t, a.json(t), "run", "who may read it sees it")
	s2.until("mine", "waiting")
	a = s2.send("POST", "/api/runs/mine/fork", `{"id":"copy"}`)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	require.NotContains(t, a.json(t), "run", "a copy is shown to whoever may read the copy")
}

func TestAFormThatSaysNeitherYesNorNoAnswersNothing(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("w")
	for _, form := range []string{"wait=approve", "wait=approve&verdict=", "verdict=rejected"} {
		a := s.send("POST", "/runs/w/do/answer", form, "Content-Type: application/x-www-form-urlencoded")
		require.Equal(t, http.StatusBadRequest, a.status, "%s: %s", form, a.body)
	}
	require.Equal(t, "waiting", s.until("w", "waiting").Status)
	require.Len(t, s.until("w", "waiting").Approvals, 1)
	require.Equal(t, http.StatusSeeOther, s.send("POST", "/runs/w/do/answer", "verdict=reject", "Content-Type: application/x-www-form-urlencoded").status)
}

func TestAForkUsesNoIDThatItsCallerMayNotUse(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("mine")
	s.failed("other")
	s2 := &site{t: t, st: s.st, shop: s.shop}
	s2.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, id string) error {
		if a == dashboard.ActionFork && id != "taken" || id == "mine" {
			return nil
		}
		return errors.New("no")
	}})
	for _, ask := range []string{`{"id":"taken"}`, `{"id":"taken","dry_run":true}`} {
		require.Equal(t, http.StatusForbidden, s2.send("POST", "/api/runs/mine/fork", ask).status, ask)
	}
	for _, ask := range []string{`{"id":"other"}`, `{"id":"other","dry_run":true}`} {
		a := s2.send("POST", "/api/runs/mine/fork", ask)
		require.Equal(t, http.StatusConflict, a.status, a.body)
		require.NotContains(t, a.body, "checkout", "what the other run is")
	}
	require.Equal(t, http.StatusCreated, s2.send("POST", "/api/runs/mine/fork", `{"id":"copy"}`).status)
}

const card = "sk-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"

var cards = regexp.MustCompile(`sk-[0-9a-f]{32}`)

// withoutCards is a Redact that needs the whole secret in order to find it.
func withoutCards(s string) string { return cards.ReplaceAllString(s, "[gone]") }

func TestWhoSearchesDoesNotFindWhatIsTakenOutOfTheAnswers(t *testing.T) {
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	bad := durable.Define("bad", func(ctx context.Context, _ string) (string, error) {
		return durable.Step(ctx, "call", func(context.Context) (string, error) {
			return "", durable.Permanent(errors.New("Card " + card + " refused"))
		})
	})
	s.serve(durable.Options{Workflows: []durable.Definition{bad}}, dashboard.Options{Redact: withoutCards})
	_, err := s.c.Start(t.Context(), "bad", client.StartRequest{ID: "b", Input: json.RawMessage(`"x"`), Attributes: map[string]string{"paid": card, "customer": "ada"}})
	require.NoError(t, err)
	s.until("b", "failed")
	found := func(o client.ListOptions) int {
		page, err := s.c.ListRuns(t.Context(), o)
		require.NoError(t, err)
		return len(page.Runs)
	}
	require.Equal(t, 0, found(client.ListOptions{Error: "sk-4"}))
	require.Equal(t, 0, found(client.ListOptions{Error: card}))
	require.Equal(t, 1, found(client.ListOptions{Error: "card [gone]"}), "what is shown is found")
	require.Equal(t, 1, found(client.ListOptions{Attributes: map[string]string{"customer": "ada"}}))
	require.Equal(t, http.StatusBadRequest, s.send("GET", "/api/runs?attribute=paid%3D"+card, "").status, "nobody sees such a value")
	require.Equal(t, http.StatusBadRequest, s.send("POST", "/api/bulk/resume", `{"filter":{"attribute":["paid=`+card+`"]},"dry_run":true}`).status)
	require.NotContains(t, s.send("GET", "/?q="+url.QueryEscape("error:sk-4"), "", "Accept: text/html").body, "/runs/b\"")
	a := s.send("POST", "/api/bulk/resume", `{"filter":{"error":["sk-4"]},"dry_run":true}`)
	require.NotContains(t, a.body, `"b"`)
}
