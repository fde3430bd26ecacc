package dashboard

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The routes of two designs that people come from. They do what ours do, and
// answer as those do.

// rowOnly reads the row of a run and nothing else.
var rowOnly = store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1}

// postResumeState serves POST /api/workflows/{id}/resume, where a workflow's id
// is that of the run: the state of the run as JSON.
func (h *handler) postResumeState(w http.ResponseWriter, r *http.Request) error {
	req, err := readResume(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if _, err := h.doResume(r, id, req); err != nil {
		return err
	}
	run, _, err := h.after(r, id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, run)
	return nil
}

// postResumeWaiting serves POST /workflows/{workflow}/resume/{run_id}: accepted,
// with the id of the run. It is for a run that waits at a checkpoint and that
// nobody executes, too: such a run is registered, and goes on when its answer
// comes.
func (h *handler) postResumeWaiting(w http.ResponseWriter, r *http.Request) error {
	req, err := readResume(r)
	if err != nil {
		return err
	}
	id := r.PathValue("run_id")
	log, err := h.eng.Store().Load(r.Context(), id, rowOnly)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, unavailable(err))
	}
	if log.Run.Workflow != r.PathValue("workflow") {
		return &requestError{http.StatusNotFound, "not_found", fmt.Sprintf("workflow %s has no run %s", r.PathValue("workflow"), id), ""}
	}
	message := fmt.Sprintf("Workflow %s resumed", id)
	if req.DryRun {
		message = fmt.Sprintf("Workflow %s can be resumed; nothing was done", id)
	}
	if log.Run.Status == store.Waiting && !log.Run.Paused {
		revive := h.reviveWaiting
		if req.DryRun {
			revive = h.waitsFor
		}
		if message, err = revive(r, id); err != nil {
			return err
		}
	} else if _, err := h.doResume(r, id, req); err != nil {
		return err
	}
	_, shown, err := h.after(r, id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, client.Done{RunID: id, Message: message, Run: shown})
	return nil
}

// reviveWaiting sees to it that a run which waits can be answered. There is
// nothing to be executed until the answer comes: what is asked stands in the
// history, and whoever serves the run claims it then. What is inconsistent is
// mended now, and a run that has waited for nothing goes on.
func (h *handler) reviveWaiting(r *http.Request, id string) (string, error) {
	rec, err := h.eng.RecoverRun(r.Context(), id)
	if err != nil {
		return "", err
	}
	if rec.Needed && rec.Code != durable.CodeE2 {
		return fmt.Sprintf("Workflow %s resumed", id), h.unpark(r, id)
	}
	return h.waitsFor(r, id)
}

// waitsFor says what a run that waits is to be answered.
func (h *handler) waitsFor(r *http.Request, id string) (string, error) {
	open, err := h.eng.ApprovalsOf(r.Context(), id)
	if err != nil {
		return "", err
	}
	if len(open) == 0 {
		return "", &requestError{http.StatusConflict, "no_checkpoint", fmt.Sprintf("run %s waits at no checkpoint that somebody could answer", id), "it goes on by itself when its time comes"}
	}
	return fmt.Sprintf("Workflow %s waits for an answer: %s", id, h.redact(open[0].Prompt)), nil
}

// unpark resumes a run that a repair has left to a person. One that was left to
// whoever serves it may be under way already.
func (h *handler) unpark(r *http.Request, id string) error {
	log, err := h.eng.Store().Load(r.Context(), id, rowOnly)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, unavailable(err))
	}
	if log.Run.Status != store.Interrupted || log.Run.Code == "" {
		return nil
	}
	_, err = h.eng.Resume(r.Context(), id, durable.ResumeOptions{})
	return err
}

// getRunsAlias serves GET /runs: the runs of the store, or, with source=git, those
// of the archive. A browser gets the page.
func (h *handler) getRunsAlias(w http.ResponseWriter, r *http.Request) error {
	if wantsPage(r) {
		http.Redirect(w, r, h.options.Prefix+"/", http.StatusFound)
		return nil
	}
	q := r.URL.Query()
	switch source := q.Get("source"); source {
	case "git", "archive":
		return h.getHistory(w, r)
	case "", "live":
	default:
		return badRequest("source=%q is neither live nor git", source)
	}
	q.Del("source")
	r.URL.RawQuery = q.Encode()
	return h.getRuns(w, r)
}

// getRunAlias serves GET /runs/{id}: the run as JSON, or its page to a browser.
func (h *handler) getRunAlias(w http.ResponseWriter, r *http.Request) error {
	if wantsPage(r) {
		return h.pageRun(w, r)
	}
	return h.getRun(w, r)
}
