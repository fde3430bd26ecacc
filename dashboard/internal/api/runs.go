package api

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
)

// API answers the questions of programs, in JSON.
type API struct {
	*web.Env
	read    *read.Reader
	archive read.Archive // nil: there is none
	streams func() int
	exports atomic.Int32 // in progress
}

// New makes an API. streams says how many streams are open.
func New(env *web.Env, reader *read.Reader, archive read.Archive, streams func() int) *API {
	return &API{Env: env, read: reader, archive: archive, streams: streams}
}

// Runs serves GET /api/runs: a page of runs.
func (api *API) Runs(w http.ResponseWriter, r *http.Request) error {
	l, err := read.ParseListing(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	page, err := api.read.List(r.Context(), l)
	if err != nil {
		return err
	}
	return web.AnswerJSON(w, page)
}

// RunsAlias serves GET /runs: the runs of the store, or, with source=git, those
// of the archive. A browser gets the page.
func (api *API) RunsAlias(w http.ResponseWriter, r *http.Request) error {
	if web.WantsPage(r) {
		http.Redirect(w, r, api.Site.Prefix+"/", http.StatusFound)
		return nil
	}
	q := r.URL.Query()
	switch source := q.Get("source"); source {
	case "git", "archive":
		return api.History(w, r)
	case "", "live":
	default:
		return web.BadRequest("source=%q is neither live nor git", source)
	}
	q.Del("source")
	r.URL.RawQuery = q.Encode()
	return api.Runs(w, r)
}

// Run serves GET /api/runs/{id}.
func (api *API) Run(w http.ResponseWriter, r *http.Request) error {
	run, err := api.read.Run(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.AnswerJSON(w, run)
}

// maxStuck is how many stuck runs of each kind are listed.
const maxStuck = 200

// Stuck serves GET /api/stuck.
func (api *API) Stuck(w http.ResponseWriter, r *http.Request) error {
	stuck, err := operate.On(api.Engine).Stuck(r.Context(), maxStuck)
	if err != nil {
		return err
	}
	wire := make([]client.Stuck, len(stuck))
	for i := range stuck {
		wire[i] = api.Wire.Stuck(&stuck[i])
	}
	return web.AnswerJSON(w, map[string]any{"stuck": wire})
}

// Approvals serves GET /api/approvals: what is asked of people.
func (api *API) Approvals(w http.ResponseWriter, r *http.Request) error {
	wire, err := api.read.Approvals(r.Context())
	if err != nil {
		return err
	}
	room := web.Quota(web.ListBytes)
	n := 0
	for n < len(wire) && room.Take(wire[n]) {
		n++
	}
	return web.AnswerJSON(w, client.Approvals{Approvals: wire[:n], More: len(wire) - n})
}

// History serves GET /api/history and /runs/history: what an archive has.
func (api *API) History(w http.ResponseWriter, r *http.Request) error {
	wire := client.History{Runs: []client.ArchivedRun{}, Source: "git"}
	if a := api.archive; a != nil {
		runs, err := a.Runs(r.Context())
		if err != nil {
			return web.Unavailable(err)
		}
		wire.Source = a.Source()
		from, err := web.QueryInt(r, "after")
		if err != nil {
			return err
		}
		room := web.Quota(web.ListBytes)
		for i := int(min(from, int64(len(runs)))); i < len(runs); i++ {
			run := api.archived(r, runs[i])
			if !room.Take(run) {
				wire.Next = strconv.Itoa(i)
				break
			}
			wire.Runs = append(wire.Runs, run)
		}
	}
	return web.AnswerJSON(w, wire)
}

// archived is an archived run as it is shown: without user data, unless that may be shown.
func (api *API) archived(r *http.Request, run client.ArchivedRun) client.ArchivedRun {
	run.Error, run.Reason, run.Prompt = api.Redact.Text(run.Error), api.Redact.Text(run.Reason), api.Redact.Text(run.Prompt)
	if !api.MayPayload(r, run.RunID) {
		run.Input, run.Output = nil, nil
		return run
	}
	if run.Input != nil {
		run.Input = api.Redact.JSON(run.Input)
	}
	if run.Output != nil {
		run.Output = api.Redact.JSON(run.Output)
	}
	return run
}
