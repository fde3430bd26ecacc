package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
)

// waitingView is the page of what waits for a person, oldest first.
type waitingView struct {
	Waits           []waitCard
	First, Last, Of int
	Earlier, Later  string // addresses of the pages around this one
	More            int64  // runs whose questions are on no page
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

// How many asking runs are read for the card, and for the page: what a run asks is in its
// history.
const (
	askedOnCard = 12
	askedOnPage = 200
)

type waitRow struct {
	API                                 string
	RunID, URL, Prompt, Key, Age, Until string
	Workflow                            string
	Long                                bool // Prompt is only its beginning
}

// How much of a question a list shows. A longer one is answered on the page of its run,
// which shows all of it: a person should not approve what was not shown.
const (
	promptInList = 1500 // bytes
	promptLines  = 12
)

func (li *Lists) waitRow(a *durable.Approval) waitRow {
	at := view.Now()
	w := waitRow{API: li.Site.Prefix + "/api/runs/" + client.EscapeID(a.RunID), RunID: a.RunID, URL: li.Site.Run(a.RunID), Prompt: li.Redact.Text(a.Prompt), Key: a.Key, Age: outline.About(at.Sub(a.AskedAt)), Workflow: a.Workflow}
	if len(w.Prompt) > promptInList || strings.Count(w.Prompt, "\n") > promptLines {
		w.Prompt, w.Long = outline.OneLine(w.Prompt, 300), true
	}
	if a.Until != 0 {
		w.Until = outline.Clock(a.Until, at, view.Zone)
	}
	return w
}

// answered reports whether a run that asks and that no process has, as a parked one, has its answer in
// the store: a second one would be refused. Where a process has it, it takes the answer at once.
func (rp *RunPage) answered(r *http.Request, o *outline.Outline) bool {
	if o.Attended {
		return false
	}
	open, err := rp.read.ApprovalsOf(r.Context(), o.Run.ID)
	return err == nil && !slices.ContainsFunc(open, func(a durable.Approval) bool { return a.Key == o.Current.Key })
}

// fillAsk makes the form to answer what the run asks of a person.
func (rp *RunPage) fillAsk(r *http.Request, v *runView, o *outline.Outline) error {
	if o.Current == nil || o.Current.Kind != outline.Approval || o.Run.Status.Terminal() || o.Run.Paused {
		return nil
	}
	if rp.answered(r, o) {
		v.More = append(v.More, rp.Redact.Sentence(outline.Text{{Text: "It was answered; the answer is kept until the run goes on."}}))
		return nil
	}
	others := 0
	for _, w := range o.Waits {
		if w.Kind == outline.Approval && w != o.Current {
			others++
		}
	}
	if prompt := rp.Redact.Text(o.Current.Prompt); prompt != "" && !strings.Contains(rp.Redact.Text(o.Verdict.Head.String()), prompt) {
		v.Prompt = prompt
	}
	v.Ask = &askView{
		Key: o.Current.Key, User: rp.Who(r), May: rp.May(r, web.ActionAnswer, v.ID) == nil, Action: v.URL + "/do/answer",
		API: v.API, Command: view.NewCommand("approve", v.ID).String(), Others: others,
	}
	return nil
}
