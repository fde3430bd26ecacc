package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
)

func TestARunIsForkedWithAnotherResultOverHTTP(t *testing.T) {
	refuse := dashboard.Action("")
	s := open(t, memoryStore(t), dashboard.Options{
		User: func(context.Context) string { return "mara" },
		Authorize: func(_ context.Context, a dashboard.Action, id string) error {
			if a == refuse {
				return errors.New("not yours to say")
			}
			return nil
		},
	})
	ctx := t.Context()
	s.failed("r")
	before, err := s.c.GetRun(ctx, "r")
	require.NoError(t, err)
	req := client.ForkRequest{ID: "f", Edits: map[string]json.RawMessage{"charge": json.RawMessage(`7`)}, Reason: "paid by hand"}
	plan, err := s.c.PlanFork(ctx, "r", req)
	require.NoError(t, err)
	require.Equal(t, []string{"charge"}, plan.Edited)
	require.Equal(t, []string{"reserve", "charge"}, plan.Skipped)
	require.Contains(t, plan.Details, "take another result of charge")
	_, err = s.c.GetRun(ctx, "f")
	require.ErrorIs(t, err, client.ErrNotFound)

	// Who may copy a run need not be one who may say what it has come to.
	refuse = dashboard.ActionEdit
	_, err = s.c.Fork(ctx, "r", req)
	require.ErrorContains(t, err, "not yours to say")
	_, err = s.c.PlanFork(ctx, "r", req)
	require.ErrorContains(t, err, "not yours to say")
	refuse = ""
	for _, wrong := range []client.ForkRequest{
		{ID: "f", Edits: map[string]json.RawMessage{"reserve": json.RawMessage(`7`)}},
		{ID: "f", Edits: map[string]json.RawMessage{"ship": json.RawMessage(`7`)}},
	} {
		_, err = s.c.Fork(ctx, "r", wrong)
		require.Error(t, err)
		_, err = s.c.GetRun(ctx, "f")
		require.ErrorIs(t, err, client.ErrNotFound)
	}

	charged := s.shop.charged.Load()
	done, err := s.c.Fork(ctx, "r", req)
	require.NoError(t, err)
	require.Equal(t, "f", done.RunID)
	s.until("f", "waiting")
	require.Equal(t, charged, s.shop.charged.Load(), "it was not charged again")
	for ev, err := range s.c.History(ctx, "f", client.EventsOptions{}) {
		require.NoError(t, err)
		if ev.Type == "workflow_created" {
			fork := ev.Data["fork"].(map[string]any)
			require.Equal(t, "mara", fork["by"])
			require.Equal(t, "paid by hand", fork["reason"])
			require.Equal(t, map[string]any{"charge": true}, fork["edits"])
			require.NotContains(t, fork, "seeds")
		}
	}
	after, err := s.c.GetRun(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = s.c.Fork(ctx, "r", req)
	require.NoError(t, err, "done again, it is done already")
	req.Edits["charge"] = json.RawMessage(`8`)
	_, err = s.c.Fork(ctx, "r", req)
	require.ErrorIs(t, err, client.ErrConflict)
}

func TestTheForkPanelPlansWithEditsAndItsFormActs(t *testing.T) {
	refuse := dashboard.Action("")
	s := open(t, memoryStore(t), dashboard.Options{
		ShowPayloads: true,
		Redact:       func(text string) string { return strings.ReplaceAll(text, "secret-shelf", "***") },
		Authorize: func(_ context.Context, a dashboard.Action, id string) error {
			if a == refuse {
				return errors.New("not yours to say")
			}
			return nil
		},
	})
	s.failed("r")
	page := s.browse("/runs/r?panel=fork&step=charge").body
	require.Contains(t, page, `<option value="charge">charge, failed, event `, "a failure can be a result in a copy")
	require.NotContains(t, page, `name="edits:`)

	page = s.browse("/runs/r?panel=fork&edit=charge&edit=reserve").body
	require.Contains(t, page, `name="edits:charge"`)
	require.Contains(t, page, `name="edits:reserve"`)
	require.Contains(t, page, "with your result")
	require.NotContains(t, page, "secret-shelf")
	require.Contains(t, page, "Parts of what reserve has returned are redacted")
	require.Contains(t, page, "durable fork r --edit charge=@result.json --edit reserve=@result2.json")
	require.Contains(t, s.browse("/runs/r?panel=fork&edit=ship").body, "the result of ship cannot be edited")

	form := func(body string) answer {
		t.Helper()
		return s.send("POST", "/runs/r/do/fork", body, "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
	}
	empty := form("id=f&edits%3Acharge=")
	require.Equal(t, 400, empty.status)
	require.Contains(t, empty.body, "the result of charge is not JSON")
	refuse = dashboard.ActionEdit
	require.NotContains(t, s.browse("/runs/r?panel=fork&edit=charge").body, `name="edits:`, "what is not authorized is absent")
	require.Equal(t, 403, form("id=f&edits%3Acharge=7").status)
	refuse = ""
	_, err := s.c.GetRun(t.Context(), "f")
	require.ErrorIs(t, err, client.ErrNotFound)

	done := form("id=f&edits%3Acharge=7&reason=by+hand")
	require.Equal(t, 303, done.status, done.body)
	require.Equal(t, "/runs/f?done=fork", done.header.Get("Location"))
	s.until("f", "waiting")
}
