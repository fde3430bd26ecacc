package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
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
