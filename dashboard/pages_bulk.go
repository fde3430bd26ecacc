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
	Refusal []bulkReason
	Shown   []bulkRow
	More    int
	Now     int // runs that the button acts on
}

// bulkReason is a refusal and how many runs share it.
type bulkReason struct {
	Message string
	N       int
}

type bulkRow struct {
	ID, URL, Message string
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
	req := bulkRequest(parseTerms(q.Get("q")))
	req.DryRun, req.ResetFailures = true, q.Has("reset_failures")
	return h.showBulk(w, r, act, req, q.Get("q"))
}

// bulkDo serves POST /bulk/resume and /bulk/cancel, the forms of the dry run.
func (h *handler) bulkDo(act bulkAct) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseForm(); err != nil {
			return badForm(err)
		}
		req := bulkRequest(parseTerms(r.PostForm.Get("q")))
		req.Reason, req.ResetFailures = r.PostForm.Get("reason"), r.PostForm.Get("reset_failures") != ""
		var err error
		if req.Matching, err = strconv.ParseInt(r.PostForm.Get("matching"), 10, 64); err != nil {
			return badRequest("matching=%q is no number", r.PostForm.Get("matching"))
		}
		return h.showBulk(w, r, act, req, r.PostForm.Get("q"))
	}
}

func (h *handler) showBulk(w http.ResponseWriter, r *http.Request, act bulkAct, req *client.BulkRequest, query string) error {
	out, err := h.bulk(r, act, req)
	if err != nil {
		return err
	}
	p := h.options.Prefix
	v := &bulkView{Bulk: out, Name: act.name, Query: query, Back: h.listURL(query), Action: p + "/bulk/" + act.name, Plan: p + "/bulk", Reset: req.ResetFailures, Who: h.user(r)}
	if v.Now = out.Done; out.Remaining > 0 {
		v.Now = len(out.Runs)
	}
	reasons := map[string]int{}
	for i := range out.Runs {
		o := &out.Runs[i]
		if !o.Done {
			// The same refusal names another run each time.
			reasons[strings.ReplaceAll(o.Message, o.RunID, "…")]++
		}
		if len(v.Shown) < bulkShown {
			v.Shown = append(v.Shown, bulkRow{ID: o.RunID, URL: h.runURL(o.RunID), Message: outline.OneLine(o.Message, 300), Status: statusViews[store.Status(o.Status)], Done: o.Done})
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
	return h.render(w, r, http.StatusOK, "bulk", layout{Title: title, Nav: "runs", Body: v})
}

// bulkLink leads from the list to the dry run of an act on all that it shows.
type bulkLink struct {
	Label, URL string
}

// bulkLinks are those that may be done on what a filter selects; without one none
// is offered: nobody means to cancel everything.
func (h *handler) bulkLinks(r *http.Request, v *runsView) []bulkLink {
	if len(v.Tokens) == 0 || len(v.Rows) == 0 || v.Problem != "" {
		return nil
	}
	var links []bulkLink
	for _, name := range []string{"resume", "cancel"} {
		act := bulkActs[name]
		fits := slices.ContainsFunc(v.Tabs, func(t tabView) bool {
			return t.Count > 0 && slices.ContainsFunc(act.statuses, func(s store.Status) bool { return statusViews[s].Word == t.Word })
		})
		if fits && h.may(r, act.action, "") == nil {
			links = append(links, bulkLink{"Select all to " + name + "…", h.options.Prefix + "/bulk?act=" + name + "&q=" + url.QueryEscape(v.Query)})
		}
	}
	return links
}
