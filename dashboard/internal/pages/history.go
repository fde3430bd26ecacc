package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

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

// archivedFilter reads a filter for archived runs: workflow:, status: and error:, and
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

// page returns the runs that match the address and are on its page.
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
