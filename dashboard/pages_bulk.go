package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// bulkView is the dry run of an act on all runs that match, or what came of it.
type bulkView struct {
	client.Bulk
	Name    string // resume, cancel
	Query   string
	Back    string // the list
	Action  string // address of the form that acts
	Plan    string // and of the one that plans again
	Reset   bool
	Who     string
	Reason  string
	After   string // where the dry run began
	Refusal []bulkReason
	Shown   []bulkRow
	More    int
	Final   int   // of those that can be resumed, failures that are final
	Now     int64 // runs that the button acts on, in slices
	Slice   int64 // of them at a time
	Sum     bulkSum
	GoOn    bool // the next slice is to be done, and how many are left is known
}

// bulkSum is what the slices of an act have come to so far. It is carried from page
// to page, for people alone.
type bulkSum struct {
	Of, Done, Refused, Looked int64
}

// bulkReason is a refusal and how many runs share it.
type bulkReason struct {
	Message string
	N       int
}

type bulkRow struct {
	ID, URL, Message string
	Reason           string // why it had failed
	Status           statusView
	Done             bool
}

// bulkShown is how many runs a page of a bulk act lists.
const bulkShown = 50

// bulkPage serves GET /bulk: the dry run. It changes nothing.
func (h *handler) bulkPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	act, ok := bulkActs[q.Get("act")]
	if !ok {
		return &requestError{http.StatusNotFound, "not_found", errNoBulk.Error(), ""}
	}
	if err := h.may(r, act.action, ""); err != nil {
		return err
	}
	ts, err := parseTerms(q.Get("q"))
	if err != nil {
		return err
	}
	req := bulkRequest(ts)
	req.DryRun, req.ResetFailures, req.After = true, q.Has("reset_failures"), q.Get("after")
	return h.showBulk(w, r, act, req, q.Get("q"), bulkSum{})
}

// bulkDo serves POST /bulk/resume and /bulk/cancel, the forms of the dry run.
func (h *handler) bulkDo(act bulkAct) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseForm(); err != nil {
			return badForm(err)
		}
		ts, err := parseTerms(r.PostForm.Get("q"))
		if err != nil {
			return err
		}
		req := bulkRequest(ts)
		req.Reason, req.ResetFailures, req.After = r.PostForm.Get("reason"), r.PostForm.Get("reset_failures") != "", r.PostForm.Get("after")
		var sum bulkSum
		for name, to := range map[string]*int64{"matching": &req.Matching, "of": &sum.Of, "done": &sum.Done, "refused": &sum.Refused} {
			s := r.PostForm.Get(name)
			if s == "" && name != "matching" {
				continue // the first slice
			}
			if *to, err = strconv.ParseInt(s, 10, 64); err != nil {
				return badRequest("%s=%q is no number", name, s)
			}
		}
		return h.showBulk(w, r, act, req, r.PostForm.Get("q"), sum)
	}
}

func (h *handler) showBulk(w http.ResponseWriter, r *http.Request, act bulkAct, req *client.BulkRequest, query string, sum bulkSum) error {
	out, err := h.bulk(r, act, req)
	if err != nil {
		return err
	}
	p := h.options.Prefix
	v := &bulkView{Bulk: out, Name: act.name, Query: query, Back: h.listURL(query), Action: p + "/bulk/" + act.name, Plan: p + "/bulk", Reset: req.ResetFailures, Who: h.user(r)}
	v.Now, v.Slice = int64(out.Done)+out.Remaining, maxBulk
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
			v.Shown = append(v.Shown, bulkRow{ID: o.RunID, URL: h.runURL(o.RunID), Message: outline.OneLine(o.Message, 300), Reason: o.Reason, Status: statusOf(&store.Run{Status: store.Status(o.Status), Recoverable: o.Recoverable}), Done: o.Done})
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
	title := strings.ToUpper(act.name[:1]) + act.name[1:] + " all that match"
	l := layout{Title: title, Nav: "runs", Body: v}
	if err := h.badges(r.Context(), &l); err != nil {
		return err
	}
	return h.render(w, r, http.StatusOK, "bulk", l)
}

// bulkLink leads from the list to the dry run of an act on all that it shows.
type bulkLink struct {
	Label, URL string
}

// bulkLinks are those that may be done on what a filter selects; without one none
// is offered: nobody means to cancel everything.
func (h *handler) bulkLinks(r *http.Request, v *runsView) []bulkLink {
	ts, err := parseTerms(v.Query)
	query := ts.without("sort") // in what order does not matter to all
	if err != nil || query == "" || len(v.Rows) == 0 || v.Problem != "" {
		return nil
	}
	var links []bulkLink
	for _, name := range []string{"resume", "cancel"} {
		act := bulkActs[name]
		fits := slices.ContainsFunc(v.Tabs, func(t tabView) bool {
			return t.Count > 0 && slices.ContainsFunc(act.statuses, func(s store.Status) bool { return statusViews[s].Word == t.Word })
		})
		if fits && h.may(r, act.action, "") == nil {
			links = append(links, bulkLink{"Select all to " + name + "…", h.options.Prefix + "/bulk?act=" + name + "&q=" + url.QueryEscape(query)})
		}
	}
	return links
}
