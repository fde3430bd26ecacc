package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/durable"
)

// apiRoutes are the routes of the JSON API and of the streams, the own forms
// first, then those that people know from elsewhere.
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
		get("/api/ready", "", "", h.getReady),
		get("/api/health", ActionList, "", h.getHealth),
		get("/api/counts", ActionList, "", h.getCounts),
		get("/api/workflows", ActionList, "", h.getWorkflows),
		get("/api/stuck", ActionList, "", h.getStuck),
		get("/api/approvals", ActionList, "", h.getApprovals),
		get("/api/history", ActionList, "", h.getHistory),
		get("/api/stream", ActionList, "", h.getStream),

		get("/api/runs", ActionList, "", h.getRuns),
		get("/api/runs/{id}", ActionRead, "id", h.getRun),
		get("/api/runs/{id}/events", ActionRead, "id", h.getEvents),
		get("/api/runs/{id}/events/{seq}/payload", ActionPayload, "id", h.getPayload),
		get("/api/runs/{id}/branches", ActionRead, "id", h.getBranches),
		get("/api/runs/{id}/plan", ActionRead, "id", h.getPlan),
		get("/api/runs/{id}/stream", ActionRead, "id", h.getRunStream),
		get("/api/runs/{id}/export", ActionPayload, "id", h.getExport),

		post("/api/workflows/{name}/runs", ActionStart, "", h.postStart),
		// Each run is authorized in the handler, too.
		post("/api/bulk/resume", ActionResume, "", h.postBulk(bulkActs["resume"])),
		post("/api/bulk/cancel", ActionCancel, "", h.postBulk(bulkActs["cancel"])),
		resume("/api/runs/{id}/resume", "id", h.postResume),
		post("/api/runs/{id}/cancel", ActionCancel, "id", h.postCancel),
		post("/api/runs/{id}/pause", ActionPause, "id", h.postPause),
		post("/api/runs/{id}/unpause", ActionUnpause, "id", h.postUnpause),
		post("/api/runs/{id}/signal/{name}", ActionSignal, "id", h.postSignal),
		post("/api/runs/{id}/approve", ActionAnswer, "id", h.postVerdict(true)),
		post("/api/runs/{id}/reject", ActionAnswer, "id", h.postVerdict(false)),
		post("/api/runs/{id}/answer", ActionAnswer, "id", h.postAnswer),
		post("/api/runs/{id}/fork", ActionFork, "id", h.postFork),
		post("/api/runs/{id}/jump", ActionJump, "id", h.postJump),
		post("/api/runs/{id}/edit", ActionEdit, "id", h.postEdit),
		// What may be the id of a wait or of a run is authorized in the handler, too.
		post("/api/approvals/{wait}", ActionAnswer, "wait", h.postWait),

		resume("/api/workflows/{id}/resume", "id", h.postResumeState),
		post("/api/workflows/{id}/cancel", ActionCancel, "id", h.postCancel),
		post("/api/workflows/{id}/approve", ActionAnswer, "id", h.postVerdict(true)),
		post("/api/workflows/{id}/reject", ActionAnswer, "id", h.postVerdict(false)),
		get("/runs", ActionList, "", h.getRunsAlias),
		get("/runs/history", ActionList, "", h.getHistory),
		get("/runs/{id}", ActionRead, "id", h.getRunAlias),
		resume("/workflows/{workflow}/resume/{run_id}", "run_id", h.postResumeWaiting),
		post("/checkpoints/{wait}", ActionAnswer, "wait", h.postWait),
	}
}

// runOf returns the run that a request concerns: what Authorize is asked about.
func (rt *route) runOf(r *http.Request) string {
	switch rt.run {
	case "":
		return ""
	case "wait":
		wait := r.PathValue("wait")
		if id, ok := runOfWait(wait); ok {
			return id
		}
		return wait
	}
	return r.PathValue(rt.run)
}

// checkQuery refuses a parameter that an act does not know: "dryrun=1" would have it
// done. The forms of the pages have none.
func (rt *route) checkQuery(r *http.Request) error {
	if rt.page {
		return nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("the query cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(rt.query, name) {
			return badRequest("%q is no parameter of this act: what it takes stands in the body, and nothing was done", clip(name))
		}
	}
	return nil
}

// readJSON reads the body of a request into v; an empty body leaves v as it is.
// What v does not know is refused: it would not do what it was sent for.
func readJSON(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return badRequest("the body cannot be used: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest("something follows the JSON value in the body")
	}
	return nil
}

// queryInt reads a number of the query, 0 if it is not there.
func queryInt(r *http.Request, name string) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("%s=%q is no number", name, s)
	}
	return n, nil
}

// queryBool reads a yes or no of the query; a name without a value is a yes.
func queryBool(r *http.Request, name string) (bool, error) {
	q := r.URL.Query()
	if !q.Has(name) {
		return false, nil
	}
	switch q.Get(name) {
	case "", "1", "true", "yes":
		return true, nil
	case "0", "false", "no":
		return false, nil
	}
	return false, badRequest("%s=%q is neither true nor false", name, q.Get(name))
}

// seqOf returns the number of the event that a request names by number or by key.
func (h *handler) seqOf(r *http.Request, id string, seq int64, key string) (int64, error) {
	switch {
	case key == "":
		return seq, nil
	case seq != 0:
		return 0, badRequest("give a number or a key, not both")
	}
	return h.eng.CheckpointOf(r.Context(), id, key)
}

// newRunID stands for an id that is to be generated.
func newRunID(id string) string {
	if id == "" {
		return durable.AutoID
	}
	return id
}
