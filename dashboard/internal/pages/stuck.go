package pages

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

type stuckPageView struct {
	Runs  []stuckView
	Limit bool
}

// stuckView is a run that cannot go on, for the cards and the page.
type stuckView struct {
	durable.Stuck
	URL     string
	Age     string        // how long the run has been like this; empty: not known
	Buttons []view.Toggle // that open the panels of its page
}

// Stuck lists the runs that cannot go on without help, with the reason and what to do.
func (li *Lists) Stuck(w http.ResponseWriter, r *http.Request) error {
	const limit = 200
	v := &stuckPageView{}
	l := layout{Title: "Stuck", Nav: "stuck", Body: v, Stream: li.Site.Prefix + "/api/stream"}
	stuck, err := operate.On(li.Engine).Stuck(r.Context(), limit)
	if err != nil {
		return err
	}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	ids := make([]string, len(stuck))
	for i := range stuck {
		ids[i] = stuck[i].RunID
	}
	rows, err := li.rowsOf(r.Context(), ids)
	if err != nil {
		return err
	}
	for i := range stuck {
		row := li.stuckRow(&stuck[i])
		if run := rows[row.RunID]; run != nil {
			row.Age, row.Buttons = outline.About(view.Now().Sub(run.UpdatedAt)), li.stuckButtons(r, run)
		}
		v.Runs = append(v.Runs, row)
	}
	v.Limit = len(stuck) >= limit
	return li.render(w, r, http.StatusOK, "stuck", l)
}

// stuckButtons link to acts that may help a stuck run. Each first shows what it would do.
func (li *Lists) stuckButtons(r *http.Request, run *store.Run) []view.Toggle {
	var list []view.Toggle
	add := func(offered bool, a string, panel, label string) {
		if offered && li.May(r, a, run.ID) == nil {
			list = append(list, view.Toggle{Label: label, URL: li.Site.Run(run.ID) + "?panel=" + panel})
		}
	}
	live := !run.Status.Terminal()
	add(live && run.Paused, web.ActionUnpause, "unpause", "Unpause")
	add(!run.Paused && (live || run.Recoverable) && run.Code != store.CodeNotRegistered && run.Status != store.Pending, web.ActionResume, "resume", "Resume")
	add(live && !run.CancelAsked, web.ActionCancel, "cancel", "Cancel")
	return list
}

// rowsOf reads the rows of runs by id. Runs that the store no longer has are left out.
func (li *Lists) rowsOf(ctx context.Context, ids []string) (map[string]*store.Run, error) {
	rows := map[string]*store.Run{}
	for part := range slices.Chunk(ids, 100) {
		p, err := li.Engine.List(ctx, store.Filter{IDs: part, Limit: len(part)})
		if err != nil {
			return nil, err
		}
		for i := range p.Runs {
			rows[p.Runs[i].ID] = &p.Runs[i]
		}
	}
	return rows, nil
}

func (li *Lists) stuckRow(s *durable.Stuck) stuckView {
	out := stuckView{Stuck: *s, URL: li.Site.Run(s.RunID)}
	out.Reason, out.Next = li.Redact.Text(s.Reason), view.InCommands(s.Next)
	if s.Code == durable.CodeDamaged {
		out.Next = view.MendAdvice(s.RunID, s.Reason == durable.ErrNoHistory.Error())
	}
	if s.Code == durable.CodeNotRegistered {
		// The reason names what this process has registered, which is of no interest here.
		out.Reason = "needs " + strings.TrimSpace(s.Workflow+" "+s.Version) + "; no live process serves it"
		out.Next = "Start a program that has it."
	}
	return out
}
