package read

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Events reads a page of a run's log.
func (rd *Reader) Events(r *http.Request, id string, c store.Cursor, limit int, skipped bool, room web.Quota) (client.Events, error) {
	page := client.Events{Events: []client.Event{}}
	log, err := rd.Engine.Store().Load(r.Context(), id, c)
	if err != nil {
		return page, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	if c.Branch != nil && *c.Branch != 0 && !hasBranch(log.Branches, *c.Branch) {
		return page, web.NewError(http.StatusNotFound, "not_found", fmt.Sprintf("run %s has no branch %d", id, *c.Branch), "list them with /branches")
	}
	line := store.LineageOf(log.Branches, log.Run.Branch)
	show := rd.MayPayload(r, id)
	for ev, err := range log.Events {
		if err != nil {
			return page, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
		}
		if len(page.Events) == limit {
			page.Next = page.Events[limit-1].Seq
			break
		}
		wire := rd.Wire.Event(id, &ev, show)
		wire.LeftBehind = (c.All || c.Branch != nil) && !line.Has(&ev)
		if skipped {
			wire.Expands = rd.Skipped(r.Context(), id, &ev)
		}
		if !room.Take(wire) {
			page.Next = page.Events[len(page.Events)-1].Seq
			break
		}
		page.Events = append(page.Events, wire)
	}
	return page, nil
}

func hasBranch(branches []store.Branch, n int32) bool {
	for i := range branches {
		if branches[i].N == n {
			return true
		}
	}
	return false
}

// Skipped returns the steps that were replayed when a run was resumed.
func (rd *Reader) Skipped(ctx context.Context, id string, ev *store.Event) []client.Skipped {
	if ev.Type != store.RunResumed && ev.Type != store.RunClaimed {
		return nil
	}
	keys, err := operate.On(rd.Engine).Skipped(ctx, id, *ev)
	if err != nil {
		rd.Log.Warn("dashboard: the steps that were replayed cannot be told", "run", id, "event", ev.Seq, "error", err)
		return nil
	}
	var all []client.Skipped
	for _, k := range keys {
		all = append(all, client.Skipped{Type: "step_skipped", Key: k, Reason: "replayed from snapshot"})
	}
	return all
}
