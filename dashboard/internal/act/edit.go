package act

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
)

// Fork serves POST /api/runs/{id}/fork.
func (ac *Acts) Fork(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var req client.ForkRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	at, err := ac.seqOf(r, id, req.At, req.Key)
	if err != nil {
		return err
	}
	if req.ID != "" { // as with a start: whoever may copy a run may not therefore use any id
		if err := ac.May(r, web.ActionFork, req.ID); err != nil {
			return err
		}
	}
	o := operate.ForkOptions{ID: newRunID(req.ID), At: at, Attributes: req.Attributes, Force: req.Force}
	if len(req.Edits) > 0 {
		// Permission to copy a run does not include permission to change its results.
		if err := ac.May(r, web.ActionEdit, id); err != nil {
			return err
		}
		o.Edits, o.Reason, o.By = map[string]any{}, req.Reason, ac.Who(r)
		for key, value := range req.Edits {
			o.Edits[key] = ValueOf(value)
		}
	}
	if req.DryRun {
		plan, err := operate.On(ac.Engine).PlanFork(r.Context(), id, o)
		if err != nil {
			return ac.inUse(r, req.ID, err)
		}
		return ac.planned(w, r, id, &plan, true)
	}
	if err := ac.notOfAChild(r, req.ID); err != nil {
		return err
	}
	made, err := operate.On(ac.Engine).Fork(r.Context(), id, o)
	if err != nil {
		return ac.inUse(r, req.ID, err)
	}
	_, shown, err := ac.after(r, made)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusCreated, client.Done{RunID: made, Message: fmt.Sprintf("Workflow %s forked from %s", made, id), Run: shown})
	return nil
}

// Jump serves POST /api/runs/{id}/jump.
func (ac *Acts) Jump(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var req client.JumpRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	to, err := ac.seqOf(r, id, req.To, req.Key)
	if err != nil {
		return err
	}
	ctx, stop := ac.patient(r)
	defer stop()
	plan, err := operate.On(ac.Engine).Jump(ctx, id, to, operate.JumpOptions{Reason: req.Reason, By: ac.Who(r), Force: req.Force, DryRun: req.DryRun})
	if err != nil {
		return err
	}
	return ac.planned(w, r, id, &plan, req.DryRun)
}

// Edit serves POST /api/runs/{id}/edit.
func (ac *Acts) Edit(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var req client.EditRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	if req.Key == "" {
		return web.BadRequest("key is missing: the call whose result is replaced")
	}
	plan, err := operate.On(ac.Engine).Edit(r.Context(), id, req.Key, ValueOf(req.Value), operate.EditOptions{Reason: req.Reason, By: ac.Who(r), Force: req.Force, DryRun: req.DryRun})
	if err != nil {
		return err
	}
	return ac.planned(w, r, id, &plan, req.DryRun)
}
