package act

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// Verdict serves POST /api/runs/{id}/approve and reject.
func (ac *Acts) Verdict(approved bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var req client.Answer
		if err := web.ReadJSON(r, &req); err != nil {
			return err
		}
		if req.Approved != nil && *req.Approved != approved {
			return web.BadRequest("the body says the contrary of the address")
		}
		req.Approved = &approved
		return ac.answer(w, r, r.PathValue("id"), req)
	}
}

// Answer serves POST /api/runs/{id}/answer.
func (ac *Acts) Answer(w http.ResponseWriter, r *http.Request) error {
	var req client.Answer
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	return ac.answer(w, r, r.PathValue("id"), req)
}

// Wait serves POST /api/approvals/{wait} and /checkpoints/{wait}: an answer to the wait
// with this id, or to the only wait of the run with this id. If both exist, neither is
// answered.
func (ac *Acts) Wait(w http.ResponseWriter, r *http.Request) error {
	var req client.Answer
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	id := r.PathValue("wait")
	runID, isWait := view.RunOfWait(id)
	if !isWait {
		return ac.answer(w, r, id, req)
	}
	isRun, err := ac.exists(r, id)
	if err != nil {
		return err
	}
	if !isRun {
		req.Wait = id
		return ac.answer(w, r, runID, req)
	}
	both, err := ac.exists(r, runID)
	switch {
	case err != nil:
		return err
	case both:
		return web.NewError(http.StatusConflict, "ambiguous", fmt.Sprintf("%s is the id of a run, and of a wait that run %s may have: nothing was answered", id, runID),
			"answer at the address of the run that is meant, and say in wait which of its questions")
	}
	if err := ac.May(r, web.ActionAnswer, id); err != nil {
		return err
	}
	return ac.answer(w, r, id, req)
}

// answer answers one approval of a run.
func (ac *Acts) answer(w http.ResponseWriter, r *http.Request, id string, req client.Answer) error {
	a, err := ac.approvalOf(r, id, req.Wait)
	if err != nil {
		return err
	}
	value := req.Value
	switch {
	case len(value) > 0:
	case req.Approved == nil:
		return web.BadRequest("give approved (true or false), or the answer as value")
	default:
		if value, err = a.Verdict(*req.Approved, ac.Who(r), req.Reason); err != nil {
			return err
		}
	}
	if err := operate.On(ac.Engine).Answer(r.Context(), *a, value); err != nil {
		return err
	}
	said := "Answered"
	if req.Approved != nil && len(req.Value) == 0 {
		said = map[bool]string{true: "Approved", false: "Rejected"}[*req.Approved]
	}
	return ac.done(w, r, id, fmt.Sprintf("%s %s: %s", said, id, ac.Redact.Text(a.Prompt)))
}

// approvalOf finds the approval that an answer is for. wait is its id or key;
// empty: the only one.
func (ac *Acts) approvalOf(r *http.Request, id, wait string) (*durable.Approval, error) {
	info, err := ac.Engine.Store().Load(r.Context(), id, read.RowOnly)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	open, err := operate.On(ac.Engine).ApprovalsOf(r.Context(), id)
	if err != nil {
		return nil, err
	}
	var meant *durable.Approval
	for i := range open {
		if view.WaitID(&open[i]) != wait && open[i].Key != wait {
			continue
		}
		if meant != nil { // the key of one wait may be the id of another
			return nil, errAmbiguous(id, 2)
		}
		meant = &open[i]
	}
	switch {
	case meant != nil:
		return meant, nil
	case wait != "":
		return nil, web.NewError(http.StatusConflict, "answered", fmt.Sprintf("run %s (%s) does not wait for an answer to %q any more, or never did", id, info.Run.Status, wait), "look at the run again")
	case len(open) == 0:
		return nil, web.NewError(http.StatusConflict, "not_waiting", fmt.Sprintf("run %s waits for nobody (status: %s)", id, info.Run.Status), "")
	case len(open) > 1:
		return nil, errAmbiguous(id, len(open))
	}
	return &open[0], nil
}

func errAmbiguous(id string, waits int) error {
	return web.NewError(http.StatusConflict, "ambiguous", fmt.Sprintf("run %s waits for %d answers", id, waits), "say with wait which one is meant: its id or key")
}
