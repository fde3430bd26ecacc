package dashboard

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// postVerdict serves POST /api/runs/{id}/approve and reject.
func (h *handler) postVerdict(approved bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var req client.Answer
		if err := readJSON(r, &req); err != nil {
			return err
		}
		if req.Approved != nil && *req.Approved != approved {
			return badRequest("the body says the contrary of the address")
		}
		req.Approved = &approved
		return h.answer(w, r, r.PathValue("id"), req)
	}
}

// postAnswer serves POST /api/runs/{id}/answer.
func (h *handler) postAnswer(w http.ResponseWriter, r *http.Request) error {
	var req client.Answer
	if err := readJSON(r, &req); err != nil {
		return err
	}
	return h.answer(w, r, r.PathValue("id"), req)
}

// postWait serves POST /api/approvals/{wait} and /checkpoints/{wait}: an answer to
// the wait with this id, or to the only one of the run with it. Where both are there,
// nobody is answered.
func (h *handler) postWait(w http.ResponseWriter, r *http.Request) error {
	var req client.Answer
	if err := readJSON(r, &req); err != nil {
		return err
	}
	id := r.PathValue("wait")
	runID, isWait := runOfWait(id)
	if !isWait {
		return h.answer(w, r, id, req)
	}
	isRun, err := h.exists(r, id)
	if err != nil {
		return err
	}
	if !isRun {
		req.Wait = id
		return h.answer(w, r, runID, req)
	}
	both, err := h.exists(r, runID)
	switch {
	case err != nil:
		return err
	case both:
		return &requestError{http.StatusConflict, "ambiguous", fmt.Sprintf("%s is the id of a run, and of a wait that run %s may have: nothing was answered", id, runID),
			"answer at the address of the run that is meant, and say in wait which of its questions"}
	}
	if err := h.may(r, ActionAnswer, id); err != nil {
		return err
	}
	return h.answer(w, r, id, req)
}

// exists reports whether there is a run with this id.
func (h *handler) exists(r *http.Request, id string) (bool, error) {
	_, err := h.eng.Store().Load(r.Context(), id, rowOnly)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid):
		return false, nil
	}
	return false, fmt.Errorf("run %s: %w", id, unavailable(err))
}

// answer answers one approval of a run.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, id string, req client.Answer) error {
	a, err := h.approvalOf(r, id, req.Wait)
	if err != nil {
		return err
	}
	value := req.Value
	switch {
	case len(value) > 0:
	case req.Approved == nil:
		return badRequest("give approved (true or false), or the answer as value")
	default:
		if value, err = a.Verdict(*req.Approved, h.user(r), req.Reason); err != nil {
			return err
		}
	}
	if err := h.eng.Answer(r.Context(), *a, value); err != nil {
		return err
	}
	said := "Answered"
	if req.Approved != nil && len(req.Value) == 0 {
		said = map[bool]string{true: "Approved", false: "Rejected"}[*req.Approved]
	}
	return h.done(w, r, id, fmt.Sprintf("%s %s: %s", said, id, h.redact(a.Prompt)))
}

// approvalOf finds the approval that an answer is for. wait is its id or key;
// empty: the only one.
func (h *handler) approvalOf(r *http.Request, id, wait string) (*durable.Approval, error) {
	info, err := h.eng.Store().Load(r.Context(), id, rowOnly)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, unavailable(err))
	}
	open, err := h.eng.ApprovalsOf(r.Context(), id)
	if err != nil {
		return nil, err
	}
	var meant *durable.Approval
	for i := range open {
		if waitID(&open[i]) != wait && open[i].Key != wait {
			continue
		}
		if meant != nil { // a key may be what another wait is called
			return nil, errAmbiguous(id, 2)
		}
		meant = &open[i]
	}
	switch {
	case meant != nil:
		return meant, nil
	case wait != "":
		return nil, &requestError{http.StatusConflict, "answered", fmt.Sprintf("run %s (%s) does not wait for an answer to %q any more, or never did", id, info.Run.Status, wait), "look at the run again"}
	case len(open) == 0:
		return nil, &requestError{http.StatusConflict, "not_waiting", fmt.Sprintf("run %s waits for nobody (status: %s)", id, info.Run.Status), ""}
	case len(open) > 1:
		return nil, errAmbiguous(id, len(open))
	}
	return &open[0], nil
}

func errAmbiguous(id string, waits int) error {
	return &requestError{http.StatusConflict, "ambiguous", fmt.Sprintf("run %s waits for %d answers", id, waits), "say with wait which one is meant: its id or key"}
}
