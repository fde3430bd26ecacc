package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// patient gives an act time to wait for a run to stop, however long whoever asked
// would wait, and no more.
func (h *handler) patient(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), h.options.Patience)
}

// postStart serves POST /api/workflows/{name}/runs.
func (h *handler) postStart(w http.ResponseWriter, r *http.Request) error {
	var req client.StartRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	var o []durable.StartOption
	if len(req.Attributes) > 0 {
		o = append(o, durable.Attributes(req.Attributes))
	}
	for k, v := range req.Headers {
		o = append(o, durable.Header(k, v))
	}
	if len(req.Exclusive) > 0 {
		o = append(o, durable.Exclusive(req.Exclusive...))
	}
	if req.ID != "" {
		if err := h.may(r, ActionStart, req.ID); err != nil {
			return err
		}
	}
	if err := h.notOfAChild(r, req.ID); err != nil {
		return err
	}
	id, err := h.eng.StartJSON(r.Context(), r.PathValue("name"), newRunID(req.ID), req.Input, o...)
	if errors.Is(err, durable.ErrConflict) && h.may(r, ActionRead, req.ID) != nil {
		return &requestError{http.StatusConflict, "conflict", fmt.Sprintf("run id %q is in use", req.ID), "use another run id"}
	}
	if err != nil {
		return err
	}
	_, shown, err := h.after(r, id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, client.Done{RunID: id, Message: fmt.Sprintf("Workflow %s started", id), Run: shown})
	return nil
}

// notOfAChild refuses an id that a child of a run under way may be given, "order-42/ship":
// who takes it beforehand makes that child go by another id. It is asked of what comes
// from outside alone, and of no id without a slash.
func (h *handler) notOfAChild(r *http.Request, id string) error {
	var parents []string
	for i, c := range id {
		if c == '/' && i > 0 {
			parents = append(parents, id[:i])
		}
	}
	if len(parents) == 0 || store.CheckRunID(id) != nil { // no run can have it: the start says so
		return nil
	}
	// One read, however many slashes there are.
	page, err := h.eng.Store().List(r.Context(), store.Filter{IDs: parents, Statuses: notCompleted, Limit: 1})
	if err != nil {
		return fmt.Errorf("run %s: %w", id, unavailable(err))
	}
	if len(page.Runs) == 0 {
		return nil
	}
	if there, err := h.exists(r, id); there || err != nil {
		return err // it is no new one
	}
	return &requestError{http.StatusConflict, "conflict", fmt.Sprintf("the id %q is one that a child of another run may get", id), "use another run id"}
}

// notCompleted are the statuses of runs that may yet start a child: what has failed or
// was cancelled can be resumed.
var notCompleted = []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted, store.Failed, store.Cancelled}

// after reads a run that was acted on. shown is what whoever acted may see of it: nil
// if that person may not read it, and then run has no more than its status.
func (h *handler) after(r *http.Request, id string) (run client.Run, shown *client.Run, err error) {
	run, err = h.run(r.Context(), id)
	if err != nil {
		return run, nil, err
	}
	if h.may(r, ActionRead, id) != nil {
		return client.Run{ID: run.ID, Workflow: run.Workflow, Version: run.Version, Status: run.Status, Paused: run.Paused, Nobody: run.Nobody}, nil, nil
	}
	return run, &run, nil
}

// postResume serves POST /api/runs/{id}/resume.
func (h *handler) postResume(w http.ResponseWriter, r *http.Request) error {
	req, err := readResume(r)
	if err != nil {
		return err
	}
	return h.resume(w, r, r.PathValue("id"), req)
}

// readResume reads what every route that resumes is sent.
func readResume(r *http.Request) (client.ResumeOptions, error) {
	var req client.ResumeOptions
	if err := readJSON(r, &req); err != nil {
		return req, err
	}
	if !r.URL.Query().Has("dry_run") {
		return req, nil
	}
	dry, err := queryBool(r, "dry_run")
	req.DryRun = dry
	return req, err
}

// getPlan serves GET /api/runs/{id}/plan: what a resume would do. It changes
// nothing, so that reading is enough for it.
func (h *handler) getPlan(w http.ResponseWriter, r *http.Request) error {
	req := client.ResumeOptions{DryRun: true, FromKey: r.URL.Query().Get("from_key")}
	var err error
	if req.FromCheckpoint, err = queryInt(r, "from_checkpoint"); err != nil {
		return err
	}
	if req.ResetFailures, err = queryBool(r, "reset_failures"); err != nil {
		return err
	}
	if req.Force, err = queryBool(r, "force"); err != nil {
		return err
	}
	return h.resume(w, r, r.PathValue("id"), req)
}

// resume carries a resume out, or says what it would do.
func (h *handler) resume(w http.ResponseWriter, r *http.Request, id string, req client.ResumeOptions) error {
	plan, err := h.doResume(r, id, req)
	if err != nil {
		return err
	}
	return h.planned(w, r, id, &plan, req.DryRun)
}

// doResume resumes a run the way every door does: the engine makes all checks, in
// the order of the requirements, before it writes anything.
func (h *handler) doResume(r *http.Request, id string, req client.ResumeOptions) (durable.Plan, error) {
	o := durable.ResumeOptions{FromCheckpoint: req.FromCheckpoint, ResetFailures: req.ResetFailures, Force: req.Force, DryRun: req.DryRun}
	if req.FromKey != "" {
		// A run that cannot be resumed at all is told that, and not of its keys.
		if _, err := h.eng.Resume(r.Context(), id, durable.ResumeOptions{Force: req.Force, DryRun: true}); err != nil {
			return durable.Plan{}, err
		}
	}
	var err error
	if o.FromCheckpoint, err = h.seqOf(r, id, req.FromCheckpoint, req.FromKey); err != nil {
		return durable.Plan{}, err
	}
	return h.eng.Resume(r.Context(), id, o)
}

// planned answers an act that has a plan.
func (h *handler) planned(w http.ResponseWriter, r *http.Request, id string, plan *durable.Plan, dry bool) error {
	run, _, err := h.after(r, id)
	if err != nil {
		return err
	}
	wire := client.Resumed{Run: run, Plan: h.wirePlan(plan), DryRun: dry}
	executors, err := h.executors(r.Context())
	if err != nil {
		return err
	}
	wire.Plan.Served = servedBy(executors, run.Workflow, run.Version)
	if !wire.Plan.Served {
		wire.Plan.Nobody = fmt.Sprintf("nobody alive serves workflow %s: it goes on once a program that does is started", run.Workflow)
	}
	writeJSON(w, http.StatusOK, wire)
	return nil
}

// done answers an act that has no plan.
func (h *handler) done(w http.ResponseWriter, r *http.Request, id, message string) error {
	_, shown, err := h.after(r, id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, client.Done{RunID: id, Message: message, Run: shown})
	return nil
}

// postCancel serves POST /api/runs/{id}/cancel.
func (h *handler) postCancel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	reason, err := h.reason(r)
	if err != nil {
		return err
	}
	if err := h.eng.Cancel(r.Context(), id, reason); err != nil {
		return err
	}
	run, shown, err := h.after(r, id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, client.Done{RunID: id, Message: cancelMessage(&run), Run: shown})
	return nil
}

// cancelMessage says what has become of a run whose cancel is recorded: whoever
// executes it ends it, and nobody else does.
func cancelMessage(run *client.Run) string {
	switch {
	case run.Status == "cancelled":
		return fmt.Sprintf("Workflow %s cancelled", run.ID)
	case run.Terminal():
		return fmt.Sprintf("Workflow %s has %s before it could be cancelled", run.ID, run.Status)
	case run.Nobody != "":
		return fmt.Sprintf("Workflow %s is cancelled when somebody takes it up; %s", run.ID, run.Nobody)
	}
	return fmt.Sprintf("Workflow %s is being cancelled", run.ID)
}

// postPause serves POST /api/runs/{id}/pause.
func (h *handler) postPause(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	reason, err := h.reason(r)
	if err != nil {
		return err
	}
	if err := h.eng.Pause(r.Context(), id, reason); err != nil {
		return err
	}
	run, shown, err := h.after(r, id)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Workflow %s paused", id)
	if !run.Paused {
		message = fmt.Sprintf("Workflow %s pauses as soon as what is under way has ended", id)
	}
	writeJSON(w, http.StatusOK, client.Done{RunID: id, Message: message, Run: shown})
	return nil
}

// postUnpause serves POST /api/runs/{id}/unpause.
func (h *handler) postUnpause(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := h.reason(r); err != nil {
		return err
	}
	ctx, stop := h.patient(r)
	defer stop()
	if err := h.eng.Unpause(ctx, id); err != nil {
		return err
	}
	return h.done(w, r, id, fmt.Sprintf("Workflow %s goes on", id))
}

// reason reads why something is done, with the name of who does it.
func (h *handler) reason(r *http.Request) (string, error) {
	var req client.ReasonRequest
	if err := readJSON(r, &req); err != nil {
		return "", err
	}
	return signed(req.Reason, h.user(r)), nil
}

// postSignal serves POST /api/runs/{id}/signal/{name}.
func (h *handler) postSignal(w http.ResponseWriter, r *http.Request) error {
	id, name := r.PathValue("id"), r.PathValue("name")
	var req client.SignalRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	var o []durable.SignalOption
	if req.ID != "" {
		o = append(o, durable.SignalID(req.ID))
	}
	if err := h.eng.Signal(r.Context(), id, name, valueOf(req.Value), o...); err != nil {
		return err
	}
	return h.done(w, r, id, fmt.Sprintf("Signal %s sent to %s", name, id))
}

// valueOf is a value as the engine takes it: none where none was given.
func valueOf(v json.RawMessage) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// postFork serves POST /api/runs/{id}/fork.
func (h *handler) postFork(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var req client.ForkRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	at, err := h.seqOf(r, id, req.At, req.Key)
	if err != nil {
		return err
	}
	o := durable.ForkOptions{ID: newRunID(req.ID), At: at, Attributes: req.Attributes, Force: req.Force}
	if len(req.Edits) > 0 {
		// Who may copy a run need not be one who may say what it has come to.
		if err := h.may(r, ActionEdit, id); err != nil {
			return err
		}
		o.Edits, o.Reason, o.By = map[string]any{}, req.Reason, h.user(r)
		for key, value := range req.Edits {
			o.Edits[key] = valueOf(value)
		}
	}
	if req.DryRun {
		plan, err := h.eng.PlanFork(r.Context(), id, o)
		if err != nil {
			return err
		}
		return h.planned(w, r, id, &plan, true)
	}
	if err := h.notOfAChild(r, req.ID); err != nil {
		return err
	}
	made, err := h.eng.Fork(r.Context(), id, o)
	if err != nil {
		return err
	}
	_, shown, err := h.after(r, made)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, client.Done{RunID: made, Message: fmt.Sprintf("Workflow %s forked from %s", made, id), Run: shown})
	return nil
}

// postJump serves POST /api/runs/{id}/jump.
func (h *handler) postJump(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var req client.JumpRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	to, err := h.seqOf(r, id, req.To, req.Key)
	if err != nil {
		return err
	}
	ctx, stop := h.patient(r)
	defer stop()
	plan, err := h.eng.Jump(ctx, id, to, durable.JumpOptions{Reason: req.Reason, By: h.user(r), Force: req.Force, DryRun: req.DryRun})
	if err != nil {
		return err
	}
	return h.planned(w, r, id, &plan, req.DryRun)
}

// postEdit serves POST /api/runs/{id}/edit.
func (h *handler) postEdit(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var req client.EditRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if req.Key == "" {
		return badRequest("key is missing: the call whose result is replaced")
	}
	plan, err := h.eng.Edit(r.Context(), id, req.Key, valueOf(req.Value), durable.EditOptions{Reason: req.Reason, By: h.user(r), Force: req.Force, DryRun: req.DryRun})
	if err != nil {
		return err
	}
	return h.planned(w, r, id, &plan, req.DryRun)
}
