package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// waitingView is the page of what waits for a person, oldest first.
type waitingView struct {
	Waits           []waitCard
	First, Last, Of int
	Earlier, Later  string // addresses of the pages around this one
	More            int64  // runs whose questions are on none
}

// waitsPerPage is how many questions a page has.
const waitsPerPage = 20

type waitCard struct {
	waitRow
	May    bool
	Action string
	User   string
}

// Waiting lists the approvals, each with its answer in place.
func (li *Lists) Waiting(w http.ResponseWriter, r *http.Request) error {
	v := &waitingView{}
	l := layout{Title: "Waiting", Nav: "waiting", Body: v, Stream: li.Site.Prefix + "/api/stream"}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	asking, approvals, err := li.read.Asked(r.Context(), askedOnPage)
	if err != nil {
		return err
	}
	v.More = max(asking-askedOnPage, 0)
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = max(min(from, len(approvals)-1), 0) / waitsPerPage * waitsPerPage
	to := min(from+waitsPerPage, len(approvals))
	if v.First, v.Last, v.Of = from+1, to, len(approvals); from > 0 {
		v.Earlier = fmt.Sprintf("%s/waiting?from=%d", li.Site.Prefix, from-waitsPerPage)
	}
	if to < len(approvals) {
		v.Later = fmt.Sprintf("%s/waiting?from=%d", li.Site.Prefix, to)
	}
	for i := from; i < to; i++ {
		a := &approvals[i]
		v.Waits = append(v.Waits, waitCard{
			waitRow: li.waitRow(a), May: li.May(r, web.ActionAnswer, a.RunID) == nil, Action: li.Site.Run(a.RunID) + "/do/answer", User: li.Who(r),
		})
	}
	return li.render(w, r, http.StatusOK, "waiting", l)
}

// How many runs that ask somebody are read for the card and for the page of them:
// what a run asks stands in its history.
const (
	askedOnCard = 12
	askedOnPage = 200
)

type stuckPageView struct {
	Runs  []stuckView
	Limit bool
}

// stuckView is a run that cannot go on, for the cards and the page.
type stuckView struct {
	durable.Stuck
	URL     string
	Age     string        // how long the run stands as it does; empty: not known
	Buttons []view.Toggle // that open the panels of its page
}

// Stuck lists what cannot go on by itself, with the reason and what to do.
func (li *Lists) Stuck(w http.ResponseWriter, r *http.Request) error {
	const limit = 200
	v := &stuckPageView{}
	l := layout{Title: "Stuck", Nav: "stuck", Body: v, Stream: li.Site.Prefix + "/api/stream"}
	stuck, err := li.Engine.Stuck(r.Context(), limit)
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

// stuckButtons lead to what may help a run that cannot go on by itself: each shows
// first what it would do.
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

// rowsOf reads the rows of runs, by id, without those that the store has no more.
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

type historyView struct {
	Source          string
	Runs            []historyRow
	None            bool // there is no archive
	Query           string
	Problem         string // what is wrong with the filter
	First, Last, Of int    // of the runs that match
	Newer, Older    string // addresses of the pages around this one
}

// archivedPerPage is how many archived runs a page has.
const archivedPerPage = 50

// archivedFilter reads a filter of archived runs: workflow:, status: and error:, and
// parts of ids.
func archivedFilter(query string) (func(*client.ArchivedRun) bool, error) {
	ts, err := parseTerms(query)
	if err != nil {
		return nil, err
	}
	for _, t := range ts {
		if name, _ := ts.split(t); name != "q" && name != "workflow" && name != "status" && name != "error" {
			return nil, web.BadRequest("%s is no filter of archived runs: there are workflow:, status:, error:, and parts of ids", view.Clip(t))
		}
	}
	return func(a *client.ArchivedRun) bool {
		return !slices.ContainsFunc(ts, func(t string) bool {
			switch name, value := ts.split(t); name {
			case "workflow":
				return a.Workflow != value
			case "status":
				return a.Status != value
			case "error":
				return !strings.Contains(strings.ToLower(a.Error), strings.ToLower(value))
			default:
				return !strings.Contains(strings.ToLower(a.RunID), strings.ToLower(value))
			}
		})
	}, nil
}

type historyRow struct {
	ID, URL, Workflow, Ended, Took, Error string
	Status                                view.Status
	Live                                  bool // it is in the store, too
}

// History lists the archive.
func (li *Lists) History(w http.ResponseWriter, r *http.Request) error {
	v := &historyView{None: li.archive == nil}
	l := layout{Title: "History", Nav: "history", Body: v}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	if li.archive != nil {
		v.Source = li.archive.Source()
		runs, err := li.archive.Runs(r.Context())
		if err != nil {
			return err
		}
		if runs, err = v.page(li.Site.Prefix, r.URL.Query(), runs); err != nil {
			v.Problem, v.Query = view.Clip(err.Error()), ""
		}
		ids := make([]string, len(runs))
		for i := range runs {
			ids[i] = runs[i].RunID
		}
		kept, err := li.rowsOf(r.Context(), ids)
		if err != nil {
			return err
		}
		for _, a := range runs {
			row := historyRow{
				ID: a.RunID, URL: li.Site.Run(a.RunID), Workflow: a.Workflow, Took: outline.Duration(time.Duration(a.DurationMS) * time.Millisecond),
				Error: li.Redact.Line(a.Error, 200), Status: view.Statuses[store.Status(a.Status)], Live: kept[a.RunID] != nil,
			}
			if row.Status.Word == "" {
				row.Status = view.Status{Class: "off", Icon: "pending", Word: a.Status}
			}
			if !a.EndedAt.IsZero() {
				row.Ended = outline.Clock(store.TimeOf(a.EndedAt), view.Now(), view.Zone)
			}
			v.Runs = append(v.Runs, row)
		}
	}
	return li.render(w, r, http.StatusOK, "history", l)
}

// page returns the runs that match the address, those of its page.
func (v *historyView) page(prefix string, q url.Values, runs []client.ArchivedRun) ([]client.ArchivedRun, error) {
	v.Query = strings.TrimSpace(q.Get("q"))
	match, err := archivedFilter(v.Query)
	if err != nil {
		return nil, err
	}
	found := make([]client.ArchivedRun, 0, len(runs))
	for i := range runs {
		if match(&runs[i]) {
			found = append(found, runs[i])
		}
	}
	from, _ := strconv.Atoi(q.Get("from"))
	from = max(min(from, len(found)-1), 0) / archivedPerPage * archivedPerPage
	to := min(from+archivedPerPage, len(found))
	v.First, v.Last, v.Of = from+1, to, len(found)
	at := func(from int) string {
		values := url.Values{"from": {strconv.Itoa(from)}}
		if v.Query != "" {
			values.Set("q", v.Query)
		}
		return prefix + "/history?" + values.Encode()
	}
	if from > 0 {
		v.Newer = at(from - archivedPerPage)
	}
	if to < len(found) {
		v.Older = at(to)
	}
	return found[from:to], nil
}
