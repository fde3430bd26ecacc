package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/store"
)

// Bounds of a page of events.
const (
	eventsPage    = 1000
	maxEventsPage = 10_000
)

// getEvents serves GET /api/runs/{id}/events: a page of the current history, of
// that of a branch, or, with all, of the log over all branches.
func (h *handler) getEvents(w http.ResponseWriter, r *http.Request) error {
	id, q := r.PathValue("id"), r.URL.Query()
	after, err := queryInt(r, "after")
	if err != nil {
		return err
	}
	limit, err := queryInt(r, "limit")
	if err != nil {
		return err
	}
	if limit == 0 {
		limit = eventsPage
	}
	c := store.Cursor{After: after, AfterMessage: 1<<63 - 1}
	if c.All, err = queryBool(r, "all"); err != nil {
		return err
	}
	if q.Has("branch") {
		n, err := strconv.ParseInt(q.Get("branch"), 10, 32)
		if err != nil || n < 0 {
			return badRequest("branch=%q is no number of a branch", q.Get("branch"))
		}
		branch := int32(n)
		c.Branch = &branch
	}
	tail, err := queryInt(r, "tail")
	if err != nil {
		return err
	}
	c.Tail = int(min(tail, maxEventsPage))
	skipped, err := queryBool(r, "skipped")
	if err != nil {
		return err
	}
	file, err := queryBool(r, "download")
	if err != nil {
		return err
	}
	room := quota(listBytes)
	if file {
		room = math.MaxInt
	}
	page, err := h.events(r, id, c, int(min(limit, maxEventsPage)), skipped, room)
	if err != nil {
		return err
	}
	if file { // as large as what is recorded
		w.Header().Set("Content-Disposition", `attachment; filename="events.json"`)
		writeJSON(w, http.StatusOK, page)
		return nil
	}
	return answerJSON(w, page)
}

// events reads a page of a run's log.
func (h *handler) events(r *http.Request, id string, c store.Cursor, limit int, skipped bool, room quota) (client.Events, error) {
	page := client.Events{Events: []client.Event{}}
	log, err := h.eng.Store().Load(r.Context(), id, c)
	if err != nil {
		return page, fmt.Errorf("run %s: %w", id, unavailable(err))
	}
	if c.Branch != nil && *c.Branch != 0 && !hasBranch(log.Branches, *c.Branch) {
		return page, &requestError{http.StatusNotFound, "not_found", fmt.Sprintf("run %s has no branch %d", id, *c.Branch), "list them with /branches"}
	}
	line := store.LineageOf(log.Branches, log.Run.Branch)
	show := h.mayPayload(r, id)
	for ev, err := range log.Events {
		if err != nil {
			return page, fmt.Errorf("run %s: %w", id, unavailable(err))
		}
		if len(page.Events) == limit {
			page.Next = page.Events[limit-1].Seq
			break
		}
		wire := h.wireEvent(id, &ev, show)
		wire.LeftBehind = (c.All || c.Branch != nil) && !line.Has(&ev)
		if skipped {
			wire.Expands = h.skipped(r.Context(), id, &ev)
		}
		if !room.take(wire) {
			page.Next = page.Events[len(page.Events)-1].Seq
			break
		}
		page.Events = append(page.Events, wire)
	}
	return page, nil
}

func hasBranch(branches []store.Branch, n int32) bool {
	for i := range branches {
		if branches[i].N == n {
			return true
		}
	}
	return false
}

// skipped are the steps that were replayed where a run was resumed.
func (h *handler) skipped(ctx context.Context, id string, ev *store.Event) []client.Skipped {
	if ev.Type != store.RunResumed && ev.Type != store.RunClaimed {
		return nil
	}
	keys, err := h.eng.Skipped(ctx, id, *ev)
	if err != nil {
		h.options.Logger.Warn("dashboard: the steps that were replayed cannot be told", "run", id, "event", ev.Seq, "error", err)
		return nil
	}
	var all []client.Skipped
	for _, k := range keys {
		all = append(all, client.Skipped{Type: "step_skipped", Key: k, Reason: "replayed from snapshot"})
	}
	return all
}

// getPayload serves GET /api/runs/{id}/events/{seq}/payload: user data as a
// download, never as something that a browser shows.
func (h *handler) getPayload(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !h.options.ShowPayloads {
		return errRedacted
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return badRequest("%q is no number of an event", r.PathValue("seq"))
	}
	log, err := h.eng.Store().Load(r.Context(), id, store.Cursor{After: seq - 1, All: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return fmt.Errorf("run %s: %w", id, unavailable(err))
	}
	for ev, err := range log.Events {
		if err != nil {
			return fmt.Errorf("run %s: %w", id, unavailable(err))
		}
		if ev.Seq != seq || len(ev.Payload) == 0 {
			break
		}
		p, err := h.eng.Payload(id, ev)
		if err != nil {
			return err
		}
		data, ext := p.Data, ".bin"
		if json.Valid(data) {
			ext = ".json"
		}
		if h.options.Redact != nil {
			data = []byte(h.redact(string(data)))
		}
		download(w, fmt.Sprintf("event-%d%s", seq, ext))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(data)
		return nil
	}
	return &requestError{http.StatusNotFound, "no_payload", fmt.Sprintf("run %s has no event %d with a payload", id, seq), "list its events"}
}

var errRedacted = &requestError{http.StatusForbidden, "redacted", "this server shows no user data", "set dashboard.Options.ShowPayloads if it should"}

// download says that a browser keeps what comes as a file. The name is ours.
func download(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// getExport serves GET /api/runs/{id}/export: the run as a file for Import. Its
// payloads are as they are kept: encrypted where they are, and not redacted.
func (h *handler) getExport(w http.ResponseWriter, r *http.Request) error {
	if !h.options.ShowPayloads || h.options.Redact != nil {
		return errRedacted
	}
	if h.exports.Add(1) > maxExports {
		h.exports.Add(-1)
		return &requestError{http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d runs are being exported, which is as many as may be at a time", maxExports), "try again in a moment"}
	}
	defer h.exports.Add(-1)
	file := &exportFile{to: w, control: http.NewResponseController(w)}
	err := h.eng.Export(r.Context(), r.PathValue("id"), file)
	switch {
	case err == nil:
		_ = file.begin() // whoever has gone misses nothing
		_ = file.control.SetWriteDeadline(time.Time{})
		return nil
	case !file.begun:
		return err
	}
	h.options.Logger.Warn("dashboard: an export was broken off", "run", r.PathValue("id"), "error", err)
	panic(http.ErrAbortHandler) // so that half a file is not taken for a whole one
}

// maxExports bounds how many runs are exported at a time, and exportPatience how long
// a client may take for each part of one.
const (
	maxExports     = 8
	exportPatience = 30 * time.Second
)

// An exportFile is an answer that begins once exportHeld bytes are there: an error
// before that, such as damage in a run of usual size, is answered as one.
type exportFile struct {
	to      http.ResponseWriter
	control *http.ResponseController
	held    bytes.Buffer
	begun   bool
}

const exportHeld = 1 << 20

// begin sends what was held.
func (f *exportFile) begin() error {
	if f.begun {
		return nil
	}
	f.begun = true
	download(f.to, "run.jsonl")
	f.to.WriteHeader(http.StatusOK)
	_, err := f.Write(f.held.Bytes())
	f.held = bytes.Buffer{}
	return err
}

func (f *exportFile) Write(b []byte) (int, error) {
	if !f.begun && f.held.Len()+len(b) <= exportHeld {
		return f.held.Write(b)
	}
	if err := f.begin(); err != nil {
		return 0, err
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(exportPatience)) // a writer without deadlines has none
	return f.to.Write(b)
}

// getBranches serves GET /api/runs/{id}/branches.
func (h *handler) getBranches(w http.ResponseWriter, r *http.Request) error {
	branches, err := h.eng.Branches(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	wire := make([]client.Branch, len(branches))
	for i := range branches {
		wire[i] = h.wireBranch(&branches[i])
	}
	return answerJSON(w, map[string]any{"branches": wire})
}
