package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Bounds of a page of events.
const (
	eventsPage    = 1000
	maxEventsPage = 10_000
)

// Events serves GET /api/runs/{id}/events: a page of the current history, of a branch's,
// or, with all, of the log of all branches.
func (api *API) Events(w http.ResponseWriter, r *http.Request) error {
	id, q := r.PathValue("id"), r.URL.Query()
	after, err := web.QueryInt(r, "after")
	if err != nil {
		return err
	}
	limit, err := web.QueryInt(r, "limit")
	if err != nil {
		return err
	}
	if limit == 0 {
		limit = eventsPage
	}
	c := store.Cursor{After: after, AfterMessage: 1<<63 - 1}
	if c.All, err = web.QueryBool(r, "all"); err != nil {
		return err
	}
	if q.Has("branch") {
		n, err := strconv.ParseInt(q.Get("branch"), 10, 32)
		if err != nil || n < 0 {
			return web.BadRequest("branch=%q is no number of a branch", q.Get("branch"))
		}
		branch := int32(n)
		c.Branch = &branch
	}
	tail, err := web.QueryInt(r, "tail")
	if err != nil {
		return err
	}
	c.Tail = int(min(tail, maxEventsPage))
	skipped, err := web.QueryBool(r, "skipped")
	if err != nil {
		return err
	}
	file, err := web.QueryBool(r, "download")
	if err != nil {
		return err
	}
	room := web.Quota(web.ListBytes)
	if file {
		room = math.MaxInt
	}
	page, err := api.read.Events(r, id, c, int(min(limit, maxEventsPage)), skipped, room)
	if err != nil {
		return err
	}
	if file { // as large as what is recorded
		w.Header().Set("Content-Disposition", `attachment; filename="events.json"`)
		web.WriteJSON(w, http.StatusOK, page)
		return nil
	}
	return web.AnswerJSON(w, page)
}

// Payload serves GET /api/runs/{id}/events/{seq}/payload: user data as a
// download, never as something that a browser shows.
func (api *API) Payload(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !api.ShowPayloads {
		return errRedacted
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return web.BadRequest("%q is no number of an event", r.PathValue("seq"))
	}
	log, err := api.Engine.Store().Load(r.Context(), id, store.Cursor{After: seq - 1, All: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	for ev, err := range log.Events {
		if err != nil {
			return fmt.Errorf("run %s: %w", id, web.Unavailable(err))
		}
		if ev.Seq != seq || len(ev.Payload) == 0 {
			break
		}
		p, err := operate.On(api.Engine).Payload(id, ev)
		if err != nil {
			return err
		}
		data, ext := p.Data, ".bin"
		if json.Valid(data) {
			ext = ".json"
		}
		if api.Redact != nil {
			data = []byte(api.Redact.Text(string(data)))
		}
		download(w, fmt.Sprintf("event-%d%s", seq, ext))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(data)
		return nil
	}
	return web.NewError(http.StatusNotFound, "no_payload", fmt.Sprintf("run %s has no event %d with a payload", id, seq), "list its events")
}

var errRedacted = web.NewError(http.StatusForbidden, "redacted", "this server shows no user data", "set dashboard.Options.ShowPayloads if it should")

// download makes the browser save the answer as a file. The name never comes from user
// data.
func download(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// Branches serves GET /api/runs/{id}/branches.
func (api *API) Branches(w http.ResponseWriter, r *http.Request) error {
	branches, err := operate.On(api.Engine).Branches(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	wire := make([]client.Branch, len(branches))
	for i := range branches {
		wire[i] = api.Wire.Branch(&branches[i])
	}
	return web.AnswerJSON(w, map[string]any{"branches": wire})
}
