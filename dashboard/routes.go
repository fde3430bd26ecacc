package dashboard

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// A route is one pattern of the mux, and the checks before its handler. No handler is
// reached in any other way: authorization, checks and documentation are derived from
// here.
type route struct {
	method  string
	pattern string // below Options.Prefix, in the form of http.ServeMux
	action  Action // "": public, such as a style sheet; nothing of a run
	// run is the name of the path value that holds the run's id, or "wait" for the id of
	// one of its waits; empty: the action concerns no run.
	run string
	// query are the parameters that an act takes besides its body; others are refused.
	query []string
	// page: its errors are pages, and its body may be a form.
	page bool
	// serve answers, or returns an error without having written anything.
	serve func(w http.ResponseWriter, r *http.Request) error
}

// routes returns all routes.
func (h *handler) routes() []route {
	return slices.Concat(h.apiRoutes(), h.queueRoutes(), h.scheduleRoutes(), h.pageRoutes())
}

// apiRoutes returns the routes of the JSON API and of the streams: our own first, then
// those that people know from elsewhere.
func (h *handler) apiRoutes() []route {
	get := func(pattern string, a Action, run string, serve func(http.ResponseWriter, *http.Request) error) route {
		return route{method: http.MethodGet, pattern: pattern, action: a, run: run, serve: serve}
	}
	post := func(pattern string, a Action, run string, serve func(http.ResponseWriter, *http.Request) error) route {
		return route{method: http.MethodPost, pattern: pattern, action: a, run: run, serve: serve}
	}
	resume := func(pattern, run string, serve func(http.ResponseWriter, *http.Request) error) route {
		rt := post(pattern, ActionResume, run, serve)
		rt.query = []string{"dry_run"}
		return rt
	}
	return []route{
		get("/api/openapi.json", "", "", h.getOpenAPI),
		get("/api/ready", "", "", h.api.Ready),
		get("/api/health", ActionList, "", h.api.Health),
		get("/api/counts", ActionList, "", h.api.Counts),
		get("/api/workflows", ActionList, "", h.api.Workflows),
		get("/api/stuck", ActionList, "", h.api.Stuck),
		get("/api/approvals", ActionList, "", h.api.Approvals),
		get("/api/history", ActionList, "", h.api.History),
		get("/api/stream", ActionList, "", h.streams.List),

		get("/api/runs", ActionList, "", h.api.Runs),
		get("/api/runs/{id}", ActionRead, "id", h.api.Run),
		get("/api/runs/{id}/events", ActionRead, "id", h.api.Events),
		get("/api/runs/{id}/events/{seq}/payload", ActionPayload, "id", h.api.Payload),
		get("/api/runs/{id}/branches", ActionRead, "id", h.api.Branches),
		get("/api/runs/{id}/plan", ActionRead, "id", h.acts.Plan),
		get("/api/runs/{id}/stream", ActionRead, "id", h.streams.Run),
		get("/api/runs/{id}/wait", ActionRead, "id", h.streams.Wait),
		get("/api/runs/{id}/export", ActionPayload, "id", h.api.Export),

		post("/api/workflows/{name}/runs", ActionStart, "", h.acts.Start),
		// The handler authorizes each run, too.
		post("/api/bulk/resume", ActionResume, "", h.acts.Bulk("resume")),
		post("/api/bulk/retry", ActionResume, "", h.acts.Bulk("retry")),
		post("/api/bulk/cancel", ActionCancel, "", h.acts.Bulk("cancel")),
		resume("/api/runs/{id}/resume", "id", h.acts.Resume),
		resume("/api/runs/{id}/retry", "id", h.acts.Retry),
		post("/api/runs/{id}/cancel", ActionCancel, "id", h.acts.Cancel),
		post("/api/runs/{id}/pause", ActionPause, "id", h.acts.Pause),
		post("/api/runs/{id}/unpause", ActionUnpause, "id", h.acts.Unpause),
		post("/api/runs/{id}/signal/{name}", ActionSignal, "id", h.acts.Signal),
		post("/api/runs/{id}/approve", ActionAnswer, "id", h.acts.Verdict(true)),
		post("/api/runs/{id}/reject", ActionAnswer, "id", h.acts.Verdict(false)),
		post("/api/runs/{id}/answer", ActionAnswer, "id", h.acts.Answer),
		post("/api/runs/{id}/fork", ActionFork, "id", h.acts.Fork),
		post("/api/runs/{id}/jump", ActionJump, "id", h.acts.Jump),
		post("/api/runs/{id}/edit", ActionEdit, "id", h.acts.Edit),
		// The handler authorizes again what may be the id of a wait or of a run.
		post("/api/approvals/{wait}", ActionAnswer, "wait", h.acts.Wait),

		resume("/api/workflows/{id}/resume", "id", h.acts.ResumeState),
		post("/api/workflows/{id}/cancel", ActionCancel, "id", h.acts.Cancel),
		post("/api/workflows/{id}/approve", ActionAnswer, "id", h.acts.Verdict(true)),
		post("/api/workflows/{id}/reject", ActionAnswer, "id", h.acts.Verdict(false)),
		get("/runs", ActionList, "", h.api.RunsAlias),
		get("/runs/history", ActionList, "", h.api.History),
		get("/runs/{id}", ActionRead, "id", h.getRunAlias),
		resume("/workflows/{workflow}/resume/{run_id}", "run_id", h.acts.ResumeWaiting),
		post("/checkpoints/{wait}", ActionAnswer, "wait", h.acts.Wait),
	}
}

// queueRoutes returns the routes of queues, in the API and as pages.
func (h *handler) queueRoutes() []route {
	return []route{
		{method: "GET", pattern: "/api/queues", action: ActionList, serve: h.api.Queues},
		{method: "GET", pattern: "/api/queues/{queue}", action: ActionList, serve: h.api.Queue},
		{method: "POST", pattern: "/api/queues/{queue}/pause", action: ActionQueue, serve: h.acts.PauseQueue},
		{method: "POST", pattern: "/api/queues/{queue}/resume", action: ActionQueue, serve: h.acts.ResumeQueue},

		{method: "GET", pattern: "/queues", action: ActionList, page: true, serve: h.lists.Queues},
		{method: "GET", pattern: "/queues/{queue}", action: ActionList, page: true, serve: h.lists.Queue},
		{method: "POST", pattern: "/queues/{queue}/do/pause", action: ActionQueue, page: true, serve: h.lists.DoQueue(h.acts.PauseQueue, "pausequeue")},
		{method: "POST", pattern: "/queues/{queue}/do/resume", action: ActionQueue, page: true, serve: h.lists.DoQueue(h.acts.ResumeQueue, "resumequeue")},
	}
}

// scheduleRoutes returns the routes of schedules, in the API and as pages.
func (h *handler) scheduleRoutes() []route {
	routes := []route{
		{method: "GET", pattern: "/api/schedules", action: ActionList, serve: h.api.Schedules},
		{method: "GET", pattern: "/api/schedules/{schedule}", action: ActionList, serve: h.api.Schedule},
		{method: "GET", pattern: "/schedules", action: ActionList, page: true, serve: h.lists.Schedules},
		{method: "GET", pattern: "/schedules/{schedule}", action: ActionList, page: true, serve: h.lists.Schedule},
	}
	for _, a := range h.lists.ScheduleActs() {
		routes = append(routes,
			route{method: "POST", pattern: "/api/schedules/{schedule}/" + a.Name, action: ActionSchedule, serve: a.Serve},
			route{method: "POST", pattern: "/schedules/{schedule}/do/" + a.Name, action: ActionSchedule, page: true, serve: h.lists.DoSchedule(a)})
	}
	return routes
}

// pageRoutes returns the routes of the pages.
func (h *handler) pageRoutes() []route {
	page := func(method, pattern string, a Action, run string, serve func(http.ResponseWriter, *http.Request) error) route {
		return route{method: method, pattern: pattern, action: a, run: run, page: true, serve: serve}
	}
	routes := []route{
		page("GET", "/{$}", ActionList, "", h.lists.Runs),
		page("GET", "/waiting", ActionList, "", h.lists.Waiting),
		page("GET", "/stuck", ActionList, "", h.lists.Stuck),
		page("GET", "/history", ActionList, "", h.lists.History),
		page("GET", "/bulk", ActionList, "", h.lists.Bulk),
		page("POST", "/bulk/resume", ActionResume, "", h.lists.BulkDo("resume")),
		page("POST", "/bulk/retry", ActionResume, "", h.lists.BulkDo("retry")),
		page("POST", "/bulk/cancel", ActionCancel, "", h.lists.BulkDo("cancel")),
		page("GET", "/go", ActionList, "", h.shell.GoTo),
		// The page of a run is at /runs/{id}, an address of the API, too.
		page("GET", "/runs/{id}/rows", ActionRead, "id", h.runPage.Rows),
		page("GET", "/assets/{name}", "", "", h.shell.Asset),
	}
	for _, f := range h.runPage.Forms() {
		routes = append(routes, page("POST", "/runs/{id}/do/"+f.Name, Action(f.Action), "id", h.runPage.Do(f)))
	}
	return routes
}

// getRunAlias serves GET /runs/{id}: the run as JSON, or its page to a browser. The
// address is one of the API, too, so the page of an error is made here.
func (h *handler) getRunAlias(w http.ResponseWriter, r *http.Request) error {
	if !web.WantsPage(r) {
		return h.api.Run(w, r)
	}
	if err := h.runPage.Show(w, r); err != nil {
		h.refuseAs(w, r, err, true)
	}
	return nil
}

// runOf returns the run that a request concerns, for Authorize.
func (rt *route) runOf(r *http.Request) string {
	switch rt.run {
	case "":
		return ""
	case "wait":
		wait := r.PathValue("wait")
		if id, ok := view.RunOfWait(wait); ok {
			return id
		}
		return wait
	}
	return r.PathValue(rt.run)
}

// checkQuery refuses a parameter that an act does not know: otherwise an act with
// "dryrun=1" would be carried out. The forms of the pages have none.
func (rt *route) checkQuery(r *http.Request) error {
	if rt.page {
		return nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return web.BadRequest("the query cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(rt.query, name) {
			return web.BadRequest("%q is no parameter of this act: what it takes stands in the body, and nothing was done", view.Clip(name))
		}
	}
	return nil
}
