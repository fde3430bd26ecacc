package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/act"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// runsView is the list of runs and the cards above it.
type runsView struct {
	Total   int64
	Found   string // how many match; empty: only reading all runs could tell
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
	Sort    view.Toggle
	Bulk    []bulkLink
	Ticks   []tickView
	Chart   *chartView
	Span    spanView
	Columns columnsView
	cols    []column
}

// Shows reports whether the list has a column.
func (v *runsView) Shows(name string) bool { return shows(v.cols, name) }

// Extra are the columns that stand beside the usual ones.
func (v *runsView) Extra() []column {
	return slices.DeleteFunc(slices.Clone(v.cols), func(c column) bool { return c.cell == nil })
}

type tabView struct {
	Word    string
	Icon    view.Icon
	Count   int64
	URL     string
	Current bool
}

// tokenView is a filter and the address without it.
type tokenView struct{ Text, Without string }

// dropView says how many runs are found without one of the filters.
type dropView struct {
	Text, URL string
	Count     int64
}

// runsPerPage is how many runs a page lists. The last events of each are read, for its
// picture.
const runsPerPage = 25

// Runs serves GET /: the cards and the list of runs.
func (li *Lists) Runs(w http.ResponseWriter, r *http.Request) error {
	v := &runsView{Clear: li.Site.Prefix + "/"}
	l := layout{Title: "Runs", Nav: "runs", Body: v, Stream: li.Site.Prefix + "/api/stream"}
	values := r.URL.Query()
	query, terms, err := queryOf(values)
	v.Query, v.Hint = query, terms.unknown()
	after, at := read.SplitCursor(values.Get("after"), time.Now())
	var ask *read.Listing
	if err == nil {
		ask, err = terms.listing(at)
	}
	if err != nil {
		v.Problem, ask = view.Clip(err.Error()), &read.Listing{Filter: store.Filter{WithLast: true}}
	}
	ask.Filter.Limit, ask.Filter.After = runsPerPage, after
	if err := li.cards(r.Context(), &v.Cards, &l); err != nil {
		return err
	}
	if err := li.tabs(r.Context(), v, terms, ask); err != nil {
		return err
	}
	v.Tokens = li.tokens(terms)
	v.Sort = li.sorting(terms, ask)
	v.Span = spanOf(li.Site, terms)
	v.cols, v.Columns = columnsOf(li.Site, terms)
	if v.Chart, err = li.chart(r.Context(), terms, ask); err != nil {
		return err
	}
	rows, next, err := li.read.Matching(r.Context(), ask)
	if err != nil {
		return err
	}
	executors, err := li.Engine.Store().Executors(r.Context())
	if err != nil {
		return fmt.Errorf("dashboard: listing processes: %w", err)
	}
	for i := range rows {
		row := li.runRow(r.Context(), &rows[i], executors, v.cols)
		if v.Cards.stuck[rows[i].ID] && view.ShownStuck(&rows[i], view.Now()) {
			row.Status = view.Status{Class: "fail", Icon: "stuck", Word: "Stuck"}
		}
		v.Rows = append(v.Rows, row)
	}
	if next != "" {
		v.Older = li.Site.List(query) + sep(query) + "after=" + url.QueryEscape(ask.CursorBehind(next))
	}
	if values.Has("after") {
		v.Newest = li.Site.List(query)
	}
	if len(v.Rows) == 0 && v.Problem == "" {
		if err := li.nothing(r.Context(), v, terms); err != nil {
			return err
		}
	}
	v.Found = found(v, ask)
	v.Bulk, v.Ticks = li.bulkLinks(r, v), li.ticks(r, v)
	return li.render(w, r, http.StatusOK, "runs", l)
}

// queryOf reads the filter and what the forms of the page add to it.
func queryOf(values url.Values) (query string, ts terms, err error) {
	query = strings.TrimSpace(strings.Join(values["q"], " "))
	if add := strings.TrimSpace(values.Get("add")); add != "" {
		query = strings.TrimSpace(query + " " + add)
	}
	if values.Has("pick") {
		query = withColumns(query, values["col"])
	}
	query, spanErr := withSpan(query, values)
	if ts, err = parseTerms(query); err != nil {
		return "", nil, err // none of it is shown again
	}
	return query, ts, spanErr
}

// found says how many runs match: of one status, what its tab says; of a search, only if
// everything it finds is on one page.
func found(v *runsView, ask *read.Listing) string {
	switch {
	case v.Problem != "":
		return ""
	case ask.Scans() && (v.Older != "" || v.Newest != ""):
		return ""
	case ask.Scans():
		return count.Number(int64(len(v.Rows)))
	case len(ask.Filter.Statuses) == 0:
		return count.Number(v.Total)
	}
	var n int64
	for _, t := range v.Tabs {
		if t.Current {
			n += t.Count
		}
	}
	if n == 0 && len(v.Rows) > 0 {
		return "" // more than one status is requested
	}
	return count.Number(n)
}

// sorting links to the opposite order by time of creation, the one order that every store
// has an index for.
func (li *Lists) sorting(ts terms, ask *read.Listing) view.Toggle {
	rest := ts.without("sort")
	if ask.Filter.OldestFirst {
		return view.Toggle{Label: "Oldest first", URL: li.Site.List(rest), On: true}
	}
	return view.Toggle{Label: "Newest first", URL: li.Site.List(strings.TrimSpace(rest + " sort:oldest"))}
}

func sep(query string) string {
	if query == "" {
		return "?"
	}
	return "&"
}

// tabs count by status what the rest of the filter matches.
func (li *Lists) tabs(ctx context.Context, v *runsView, ts terms, ask *read.Listing) error {
	f := ask.Filter
	f.Statuses, f.After, f.WithLast = nil, "", false
	counts := v.Cards.byStatus
	if rest := ts.without("status"); rest != "" {
		var err error
		if counts, err = li.Engine.Store().Count(ctx, f, store.ByStatus); err != nil {
			return fmt.Errorf("dashboard: counting runs: %w", err)
		}
	}
	for _, n := range counts {
		v.Total += n
	}
	rest := ts.without("status")
	v.Tabs = append(v.Tabs, tabView{Word: "All", Count: v.Total, URL: li.Site.List(rest), Current: len(ask.Filter.Statuses) == 0})
	for _, s := range []store.Status{store.Running, store.Waiting, store.Failed, store.Resuming, store.Interrupted, store.Pending, store.Completed, store.Cancelled} {
		shown := view.Statuses[s]
		if s == store.Failed {
			shown.Icon = "recoverable"
		}
		v.Tabs = append(v.Tabs, tabView{
			Word: shown.Word, Icon: view.Icon{Name: shown.Icon, Class: "c-" + shown.Class}, Count: counts[string(s)], URL: li.Site.List(strings.TrimSpace("status:" + string(s) + " " + rest)),
			Current: len(ask.Filter.Statuses) == 1 && ask.Filter.Statuses[0] == s,
		})
		if n := len(v.Cards.stuck); s == store.Failed && n > 0 && rest == "" {
			// Stuck is not a status, and it is not known how many of the filtered runs
			// are stuck.
			v.Tabs = append(v.Tabs, tabView{Word: "Stuck", Icon: view.Icon{Name: "stuck", Class: "c-fail"}, Count: int64(n), URL: li.Site.Prefix + "/stuck"})
		}
	}
	return nil
}

// nothing explains an empty list: there is no run, or dropping one of the filters would
// find some.
func (li *Lists) nothing(ctx context.Context, v *runsView, ts terms) error {
	if len(ts) == 0 {
		v.Empty = v.Newest == ""
		return nil
	}
	for i, t := range ts {
		if name, _ := ts.split(t); name == columnsTerm || name == "sort" {
			continue
		}
		rest := slices.Concat(ts[:i:i], ts[i+1:])
		ask, err := rest.listing(time.Now())
		if err != nil {
			continue
		}
		n, err := li.Engine.Store().Count(ctx, ask.Filter, "")
		if err != nil {
			return fmt.Errorf("dashboard: counting runs: %w", err)
		}
		if n[""] > 0 && !ask.Scans() {
			v.NoMatch = append(v.NoMatch, dropView{Text: ts[i], URL: li.Site.List(strings.Join(rest, " ")), Count: n[""]})
		}
	}
	return nil
}

func (li *Lists) tokens(ts terms) []tokenView {
	var out []tokenView
	for i, t := range ts {
		if name, _ := ts.split(t); name == columnsTerm {
			continue // chosen and dropped in their own menu
		}
		rest := slices.Concat(ts[:i:i], ts[i+1:])
		out = append(out, tokenView{Text: t, Without: li.Site.List(strings.Join(rest, " "))})
	}
	return out
}

// bulkLink leads from the list to the dry run of an act on all runs that the filter
// selects.
type bulkLink struct {
	Label, URL string
}

// bulkLinks returns the acts that the viewer may do on all runs that the filter selects.
// Without a filter it offers none, so that nobody cancels everything by accident.
func (li *Lists) bulkLinks(r *http.Request, v *runsView) []bulkLink {
	ts, err := parseTerms(v.Query)
	query := acting(ts)
	if err != nil || query == "" || len(v.Rows) == 0 || v.Problem != "" {
		return nil
	}
	var links []bulkLink
	for _, name := range []string{"resume", "cancel"} {
		bulk := act.BulkActs[name]
		fits := slices.ContainsFunc(v.Tabs, func(t tabView) bool {
			return t.Count > 0 && slices.ContainsFunc(bulk.Statuses, func(s store.Status) bool { return view.Statuses[s].Word == t.Word })
		})
		if fits && li.May(r, bulk.Action, "") == nil {
			links = append(links, bulkLink{"Select all to " + name + "…", li.Site.Prefix + "/bulk?act=" + name + "&q=" + url.QueryEscape(query)})
		}
	}
	return links
}

// acting is the query as an act on all that match takes it: order and columns do not matter
// to it.
func acting(ts terms) string {
	return ts.without("sort", columnsTerm)
}

// tickView is an act on the runs whose rows are ticked.
type tickView struct{ Name, Label string }

// ticks returns the acts that the viewer may do on runs of this page.
func (li *Lists) ticks(r *http.Request, v *runsView) []tickView {
	if len(v.Rows) == 0 {
		return nil
	}
	var list []tickView
	for _, name := range []string{"resume", "cancel"} {
		if li.May(r, act.BulkActs[name].Action, "") == nil {
			list = append(list, tickView{name, bulkSaid[name].Verb + " ticked…"})
		}
	}
	return list
}
