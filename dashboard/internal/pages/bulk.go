package pages

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/act"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// bulkView is the dry run of an act on all runs that match, or its outcome.
type bulkView struct {
	client.Bulk
	Name string // resume, retry, cancel
	bulkWords
	Query   string
	Picked  []string // the runs that were ticked; none: the query says which
	Back    string   // the list
	Action  string   // address of the form that acts
	Plan    string   // and of the one that plans again
	Reset   bool
	Who     string
	Reason  string
	After   string // where the dry run began
	Refusal []bulkReason
	Shown   []bulkRow
	More    int
	Final   int   // how many of those that can be resumed failed for good
	Now     int64 // runs that the button acts on, in slices
	Slice   int64 // of them at a time
	Sum     bulkSum
	GoOn    bool // there is a next slice, and it is known how many are left
}

// bulkWords are the words for an act: "Resume", "can be resumed", "resumed".
type bulkWords struct{ Verb, Can, Did string }

var bulkSaid = map[string]bulkWords{
	"resume": {"Resume", "can be resumed", "resumed"},
	"retry":  {"Retry", "can get in line again", "in line again"},
	"cancel": {"Cancel", "will be asked to end", "asked to end"},
}

// bulkSum adds up the slices of an act so far. Each page passes it to the next; it is
// only displayed.
type bulkSum struct {
	Of, Done, Refused, Looked int64
}

// bulkReason is a refusal, and how many runs share it.
type bulkReason struct {
	Message string
	N       int
}

type bulkRow struct {
	ID, URL, Message string
	Reason           string // why it had failed
	Status           view.Status
	Done             bool
}

// bulkShown is how many runs a page of a bulk act lists.
const bulkShown = 50

// Bulk serves GET /bulk: the dry run. It changes nothing.
func (li *Lists) Bulk(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	bulk, ok := act.BulkActs[q.Get("act")]
	if !ok {
		return web.NewError(http.StatusNotFound, "not_found", errNoBulk.Error(), "")
	}
	if err := li.May(r, bulk.Action, ""); err != nil {
		return err
	}
	req, err := bulkRequest(q)
	if err != nil {
		return err
	}
	req.DryRun, req.ResetFailures, req.After = true, q.Has("reset_failures"), q.Get("after")
	return li.showBulk(w, r, bulk, req, q.Get("q"), bulkSum{})
}

// BulkDo serves POST /bulk/resume, /bulk/retry and /bulk/cancel, the forms of the dry run.
func (li *Lists) BulkDo(name string) func(http.ResponseWriter, *http.Request) error {
	bulk := act.BulkActs[name]
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseForm(); err != nil {
			return web.BadForm(err)
		}
		req, err := bulkRequest(r.PostForm)
		if err != nil {
			return err
		}
		req.Reason, req.ResetFailures, req.After = r.PostForm.Get("reason"), r.PostForm.Get("reset_failures") != "", r.PostForm.Get("after")
		var sum bulkSum
		for field, to := range map[string]*int64{"matching": &req.Matching, "of": &sum.Of, "done": &sum.Done, "refused": &sum.Refused} {
			s := r.PostForm.Get(field)
			if s == "" && field != "matching" {
				continue // the first slice
			}
			if *to, err = strconv.ParseInt(s, 10, 64); err != nil {
				return web.BadRequest("%s=%q is no number", field, s)
			}
		}
		return li.showBulk(w, r, bulk, req, r.PostForm.Get("q"), sum)
	}
}

func (li *Lists) showBulk(w http.ResponseWriter, r *http.Request, bulk act.BulkAct, req *client.BulkRequest, query string, sum bulkSum) error {
	out, err := li.acts.OnMany(r, bulk, req)
	if err != nil {
		return err
	}
	p := li.Site.Prefix
	v := &bulkView{Bulk: out, Name: bulk.Name, bulkWords: bulkSaid[bulk.Name], Query: query, Back: li.Site.List(query), Action: p + "/bulk/" + bulk.Name, Plan: p + "/bulk", Reset: req.ResetFailures, Who: li.Who(r)}
	v.Picked = req.Filter["id"]
	v.Now, v.Slice = int64(out.Done)+out.Remaining, act.MaxBulk
	v.Sum = bulkSum{Of: max(sum.Of, out.Matching), Done: sum.Done + int64(out.Done), Refused: sum.Refused + int64(out.Refused)}
	v.Sum.Looked = v.Sum.Done + v.Sum.Refused
	v.GoOn = !out.DryRun && out.Next != "" && out.Remaining > 0
	v.Reason, v.After = req.Reason, req.After
	reasons := map[string]int{}
	for i := range out.Runs {
		o := &out.Runs[i]
		if !o.Done {
			// The same refusal names another run each time.
			reasons[strings.ReplaceAll(o.Message, o.RunID, "…")]++
		}
		if o.Done && o.Status == string(store.Failed) && !o.Recoverable {
			v.Final++
		}
		if len(v.Shown) < bulkShown {
			v.Shown = append(v.Shown, bulkRow{ID: o.RunID, URL: li.Site.Run(o.RunID), Message: outline.OneLine(o.Message, 300), Reason: o.Reason, Status: view.StatusOf(&store.Run{Status: store.Status(o.Status), Recoverable: o.Recoverable}), Done: o.Done})
		}
	}
	for m, n := range reasons {
		v.Refusal = append(v.Refusal, bulkReason{outline.OneLine(m, 300), n})
	}
	slices.SortFunc(v.Refusal, func(a, b bulkReason) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Message, b.Message))
	})
	v.Refusal = v.Refusal[:min(len(v.Refusal), 5)]
	v.More = len(out.Runs) - len(v.Shown)
	l := layout{Title: v.Title(), Nav: "runs", Body: v}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	return li.render(w, r, http.StatusOK, "bulk", l)
}

// Title is the heading of the page.
func (v *bulkView) Title() string {
	if len(v.Picked) > 0 {
		return v.Verb + " the ticked runs"
	}
	return v.Verb + " all that match"
}

// Unfit is how many of the ticked runs the act is not for.
func (v *bulkView) Unfit() int { return max(len(v.Picked)-int(v.Matching), 0) }

// bulkRequest turns a form into a request: for the runs that were ticked, or for all that
// the terms of the list's filter select.
func bulkRequest(form url.Values) (*client.BulkRequest, error) {
	req := &client.BulkRequest{Filter: map[string][]string{}}
	if form.Has("ticked") {
		if req.Filter["id"] = form["run"]; len(form["run"]) == 0 {
			return nil, web.BadRequest("no run is ticked: tick some in the list first")
		}
		return req, nil
	}
	ts, err := parseTerms(form.Get("q"))
	if err != nil {
		return nil, err
	}
	for _, t := range ts {
		name, value := ts.split(t)
		if name != columnsTerm {
			req.Filter[name] = append(req.Filter[name], value)
		}
	}
	return req, nil
}

var errNoBulk = errors.New("there is no such act on many runs: there are resume, retry and cancel")
