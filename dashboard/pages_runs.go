package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// runsView is the list of runs and the cards above it.
type runsView struct {
	Total   int64
	Found   string // how many match; empty: that is not known without looking at all
	Cards   cardsView
	Tabs    []tabView
	Tokens  []tokenView
	Query   string // what the field holds
	Problem string // what is wrong with the filter
	Hint    string // what may be wrong with it
	Rows    []runRow
	Older   string
	Newest  string // address of the first page, if this is another one
	Empty   bool   // there is no run at all
	NoMatch []dropView
	Clear   string
	Sort    toggleView
	Bulk    []bulkLink
	stuck   map[string]bool
	all     map[string]int64 // runs of the store by status
}

type tabView struct {
	Word    string
	Icon    icon
	Count   int64
	URL     string
	Current bool
}

// tokenView is a filter and the address without it.
type tokenView struct{ Text, Without string }

// dropView says what is found without one of the filters.
type dropView struct {
	Text, URL string
	Count     int64
}

// runsPerPage is how many runs a page lists; the events at the end of each are
// read for its shape.
const runsPerPage = 25

func (h *handler) runsPage(w http.ResponseWriter, r *http.Request) error {
	v := &runsView{Clear: h.options.Prefix + "/"}
	l := layout{Title: "Runs", Nav: "runs", Body: v, Stream: h.options.Prefix + "/api/stream"}
	values := r.URL.Query()
	query := strings.TrimSpace(strings.Join(values["q"], " "))
	if add := strings.TrimSpace(values.Get("add")); add != "" {
		query = strings.TrimSpace(query + " " + add)
	}
	terms, err := parseTerms(query)
	if err != nil {
		query = "" // nothing of it is shown again
	}
	v.Query, v.Hint = query, terms.unknown()
	after, at := splitCursor(values.Get("after"), time.Now())
	var ask *listing
	if err == nil {
		ask, err = terms.listing(at)
	}
	if err != nil {
		v.Problem, ask = clip(err.Error()), &listing{filter: store.Filter{WithLast: true}}
	}
	ask.filter.Limit, ask.filter.After = runsPerPage, after
	if err := h.cards(r.Context(), v, &l); err != nil {
		return err
	}
	if err := h.tabs(r.Context(), v, terms, ask); err != nil {
		return err
	}
	v.Tokens = h.tokens(terms)
	v.Sort = h.sorting(terms, ask)
	rows, next, err := h.matching(r.Context(), ask)
	if err != nil {
		return err
	}
	executors, err := h.eng.Store().Executors(r.Context())
	if err != nil {
		return fmt.Errorf("dashboard: listing processes: %w", err)
	}
	for i := range rows {
		row := h.runRow(r.Context(), &rows[i], executors)
		if v.stuck[rows[i].ID] && rows[i].Status != store.Failed && !rows[i].Paused {
			row.Status = statusView{"fail", "stuck", "Stuck"}
		}
		v.Rows = append(v.Rows, row)
	}
	if next != "" {
		v.Older = h.listURL(query) + sep(query) + "after=" + url.QueryEscape(ask.cursorBehind(next))
	}
	if values.Has("after") {
		v.Newest = h.listURL(query)
	}
	if len(v.Rows) == 0 && v.Problem == "" {
		if err := h.nothing(r.Context(), v, terms); err != nil {
			return err
		}
	}
	v.Found = found(v, ask)
	v.Bulk = h.bulkLinks(r, v)
	return h.render(w, r, http.StatusOK, "runs", l)
}

// found says how many runs match: of a status, what its tab says. Of a search it is
// known only when it finds all on one page.
func found(v *runsView, ask *listing) string {
	switch {
	case v.Problem != "":
		return ""
	case ask.scans() && (v.Older != "" || v.Newest != ""):
		return ""
	case ask.scans():
		return number(int64(len(v.Rows)))
	case len(ask.filter.Statuses) == 0:
		return number(v.Total)
	}
	var n int64
	for _, t := range v.Tabs {
		if t.Current {
			n += t.Count
		}
	}
	if n == 0 && len(v.Rows) > 0 {
		return "" // of several statuses
	}
	return number(n)
}

// sorting leads to the other order: by when runs were created, which is what every
// store has an index for.
func (h *handler) sorting(ts terms, ask *listing) toggleView {
	rest := ts.without("sort")
	if ask.filter.OldestFirst {
		return toggleView{Label: "Oldest first", URL: h.listURL(rest), On: true}
	}
	return toggleView{Label: "Newest first", URL: h.listURL(strings.TrimSpace(rest + " sort:oldest"))}
}

func (h *handler) listURL(query string) string {
	if query == "" {
		return h.options.Prefix + "/"
	}
	return h.options.Prefix + "/?q=" + url.QueryEscape(query)
}

func sep(query string) string {
	if query == "" {
		return "?"
	}
	return "&"
}

// tabs count by status what the rest of the filter matches.
func (h *handler) tabs(ctx context.Context, v *runsView, ts terms, ask *listing) error {
	f := ask.filter
	f.Statuses, f.After, f.WithLast = nil, "", false
	counts := v.all
	if rest := ts.without("status"); rest != "" {
		var err error
		if counts, err = h.eng.Store().Count(ctx, f, store.ByStatus); err != nil {
			return fmt.Errorf("dashboard: counting runs: %w", err)
		}
	}
	for _, n := range counts {
		v.Total += n
	}
	rest := ts.without("status")
	v.Tabs = append(v.Tabs, tabView{Word: "All", Count: v.Total, URL: h.listURL(rest), Current: len(ask.filter.Statuses) == 0})
	for _, s := range []store.Status{store.Running, store.Waiting, store.Failed, store.Resuming, store.Interrupted, store.Pending, store.Completed, store.Cancelled} {
		view := statusViews[s]
		if s == store.Failed {
			view.Icon = "recoverable"
		}
		v.Tabs = append(v.Tabs, tabView{
			Word: view.Word, Icon: icon{view.Icon, "c-" + view.Class}, Count: counts[string(s)], URL: h.listURL(strings.TrimSpace("status:" + string(s) + " " + rest)),
			Current: len(ask.filter.Statuses) == 1 && ask.filter.Statuses[0] == s,
		})
		if n := len(v.stuck); s == store.Failed && n > 0 && rest == "" {
			// It is no status, and of a filter it is not known how many are stuck.
			v.Tabs = append(v.Tabs, tabView{Word: "Stuck", Icon: icon{"stuck", "c-fail"}, Count: int64(n), URL: h.options.Prefix + "/stuck"})
		}
	}
	return nil
}

// nothing says why the list is empty: there is no run, or what dropping one of
// the filters would find.
func (h *handler) nothing(ctx context.Context, v *runsView, ts terms) error {
	if len(ts) == 0 {
		v.Empty = v.Newest == ""
		return nil
	}
	for i := range ts {
		rest := slices.Concat(ts[:i:i], ts[i+1:])
		ask, err := rest.listing(time.Now())
		if err != nil {
			continue
		}
		n, err := h.eng.Store().Count(ctx, ask.filter, "")
		if err != nil {
			return fmt.Errorf("dashboard: counting runs: %w", err)
		}
		if n[""] > 0 && !ask.scans() {
			v.NoMatch = append(v.NoMatch, dropView{Text: ts[i], URL: h.listURL(strings.Join(rest, " ")), Count: n[""]})
		}
	}
	return nil
}
