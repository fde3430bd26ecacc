package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
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

// waitingPage lists the approvals, each with its answer in place.
func (h *handler) waitingPage(w http.ResponseWriter, r *http.Request) error {
	v := &waitingView{}
	l := layout{Title: "Waiting", Nav: "waiting", Body: v, Stream: h.options.Prefix + "/api/stream"}
	if err := h.badges(r.Context(), &l); err != nil {
		return err
	}
	asking, approvals, err := h.asked(r.Context(), askedOnPage)
	if err != nil {
		return err
	}
	v.More = max(asking-askedOnPage, 0)
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = max(min(from, len(approvals)-1), 0) / waitsPerPage * waitsPerPage
	to := min(from+waitsPerPage, len(approvals))
	if v.First, v.Last, v.Of = from+1, to, len(approvals); from > 0 {
		v.Earlier = fmt.Sprintf("%s/waiting?from=%d", h.options.Prefix, from-waitsPerPage)
	}
	if to < len(approvals) {
		v.Later = fmt.Sprintf("%s/waiting?from=%d", h.options.Prefix, to)
	}
	for i := from; i < to; i++ {
		a := &approvals[i]
		v.Waits = append(v.Waits, waitCard{
			waitRow: h.waitRow(a), May: h.may(r, ActionAnswer, a.RunID) == nil, Action: h.runURL(a.RunID) + "/do/answer", User: h.user(r),
		})
	}
	return h.render(w, r, http.StatusOK, "waiting", l)
}

// How many runs that ask somebody are read for the card and for the page of them:
// what a run asks stands in its history.
const (
	askedOnCard = 12
	askedOnPage = 200
)

// asking counts the runs that ask somebody.
func (h *handler) asking(ctx context.Context) (int64, error) {
	n, err := h.eng.Store().Count(ctx, askingFilter(), "")
	if err != nil {
		return 0, fmt.Errorf("dashboard: counting approvals: %w", err)
	}
	return n[""], nil
}

func askingFilter() store.Filter {
	return store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{durable.CodeApproval}, OldestFirst: true}
}

// asked lists what is asked of people by the oldest of the runs that ask, limit of
// them at most, what was asked first first; and how many runs ask.
func (h *handler) asked(ctx context.Context, limit int) (asking int64, all []durable.Approval, err error) {
	if asking, err = h.asking(ctx); err != nil || asking == 0 {
		return 0, nil, err
	}
	if all, err = h.openApprovals(ctx, limit); err != nil {
		return 0, nil, err
	}
	slices.SortStableFunc(all, func(a, b durable.Approval) int { return cmp.Compare(a.AskedAt, b.AskedAt) })
	return asking, all, nil
}

type stuckPageView struct {
	Runs  []stuckView
	Limit bool
}

// stuckPage lists what cannot go on by itself, with the reason and what to do.
func (h *handler) stuckPage(w http.ResponseWriter, r *http.Request) error {
	const limit = 200
	v := &stuckPageView{}
	l := layout{Title: "Stuck", Nav: "stuck", Body: v, Stream: h.options.Prefix + "/api/stream"}
	stuck, err := h.eng.Stuck(r.Context(), limit)
	if err != nil {
		return err
	}
	if err := h.badges(r.Context(), &l); err != nil {
		return err
	}
	ids := make([]string, len(stuck))
	for i := range stuck {
		ids[i] = stuck[i].RunID
	}
	rows, err := h.rowsOf(r.Context(), ids)
	if err != nil {
		return err
	}
	for i := range stuck {
		row := h.stuckRow(&stuck[i])
		if run := rows[row.RunID]; run != nil {
			row.Age, row.Buttons = outline.About(now().Sub(run.UpdatedAt)), h.stuckButtons(r, run)
		}
		v.Runs = append(v.Runs, row)
	}
	v.Limit = len(stuck) >= limit
	return h.render(w, r, http.StatusOK, "stuck", l)
}

// stuckButtons lead to what may help a run that cannot go on by itself: each shows
// first what it would do.
func (h *handler) stuckButtons(r *http.Request, run *store.Run) []toggleView {
	var list []toggleView
	add := func(offered bool, a Action, panel, label string) {
		if offered && h.may(r, a, run.ID) == nil {
			list = append(list, toggleView{Label: label, URL: h.runURL(run.ID) + "?panel=" + panel})
		}
	}
	live := !run.Status.Terminal()
	add(live && run.Paused, ActionUnpause, "unpause", "Unpause")
	add(!run.Paused && (live || run.Recoverable) && run.Code != store.CodeNotRegistered && run.Status != store.Pending, ActionResume, "resume", "Resume")
	add(live && !run.CancelAsked, ActionCancel, "cancel", "Cancel")
	return list
}

// rowsOf reads the rows of runs, by id, without those that the store has no more.
func (h *handler) rowsOf(ctx context.Context, ids []string) (map[string]*store.Run, error) {
	rows := map[string]*store.Run{}
	for part := range slices.Chunk(ids, 100) {
		p, err := h.eng.List(ctx, store.Filter{IDs: part, Limit: len(part)})
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
			return nil, badRequest("%s is no filter of archived runs: there are workflow:, status:, error:, and parts of ids", clip(t))
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
	Status                                statusView
	Live                                  bool // it is in the store, too
}

// historyPage lists the archive.
func (h *handler) historyPage(w http.ResponseWriter, r *http.Request) error {
	v := &historyView{None: h.options.Archive == nil}
	l := layout{Title: "History", Nav: "history", Body: v}
	if err := h.badges(r.Context(), &l); err != nil {
		return err
	}
	if h.options.Archive != nil {
		v.Source = h.options.Archive.Source()
		runs, err := h.options.Archive.Runs(r.Context())
		if err != nil {
			return err
		}
		if runs, err = v.page(h.options.Prefix, r.URL.Query(), runs); err != nil {
			v.Problem, v.Query = clip(err.Error()), ""
		}
		ids := make([]string, len(runs))
		for i := range runs {
			ids[i] = runs[i].RunID
		}
		kept, err := h.rowsOf(r.Context(), ids)
		if err != nil {
			return err
		}
		for _, a := range runs {
			row := historyRow{
				ID: a.RunID, URL: h.runURL(a.RunID), Workflow: a.Workflow, Took: outline.Duration(time.Duration(a.DurationMS) * time.Millisecond),
				Error: h.line(a.Error, 200), Status: statusViews[store.Status(a.Status)], Live: kept[a.RunID] != nil,
			}
			if row.Status.Word == "" {
				row.Status = statusView{"off", "pending", a.Status}
			}
			if !a.EndedAt.IsZero() {
				row.Ended = outline.Clock(store.TimeOf(a.EndedAt), now(), zone)
			}
			v.Runs = append(v.Runs, row)
		}
	}
	return h.render(w, r, http.StatusOK, "history", l)
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
