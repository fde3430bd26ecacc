package act

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Resume serves POST /api/runs/{id}/resume.
func (ac *Acts) Resume(w http.ResponseWriter, r *http.Request) error {
	req, err := readResume(r)
	if err != nil {
		return err
	}
	return ac.resume(w, r, r.PathValue("id"), req)
}

// readResume reads the request of every route that resumes.
func readResume(r *http.Request) (client.ResumeOptions, error) {
	var req client.ResumeOptions
	if err := web.ReadJSON(r, &req); err != nil {
		return req, err
	}
	if !r.URL.Query().Has("dry_run") {
		return req, nil
	}
	dry, err := web.QueryBool(r, "dry_run")
	req.DryRun = dry
	return req, err
}

// Plan serves GET /api/runs/{id}/plan: what a resume would do. It changes nothing, so
// permission to read is enough.
func (ac *Acts) Plan(w http.ResponseWriter, r *http.Request) error {
	req := client.ResumeOptions{DryRun: true, FromKey: r.URL.Query().Get("from_key")}
	var err error
	if req.FromCheckpoint, err = web.QueryInt(r, "from_checkpoint"); err != nil {
		return err
	}
	if req.ResetFailures, err = web.QueryBool(r, "reset_failures"); err != nil {
		return err
	}
	if req.Force, err = web.QueryBool(r, "force"); err != nil {
		return err
	}
	return ac.resume(w, r, r.PathValue("id"), req)
}

// resume carries a resume out, or says what it would do.
func (ac *Acts) resume(w http.ResponseWriter, r *http.Request, id string, req client.ResumeOptions) error {
	plan, err := ac.doResume(r, id, req)
	if err != nil {
		return err
	}
	return ac.planned(w, r, id, &plan, req.DryRun)
}

// doResume resumes a run, for every entry point: the engine makes all checks, in the order
// of the requirements, before it writes anything.
func (ac *Acts) doResume(r *http.Request, id string, req client.ResumeOptions) (operate.Plan, error) {
	o := operate.ResumeOptions{FromCheckpoint: req.FromCheckpoint, ResetFailures: req.ResetFailures, Force: req.Force, DryRun: req.DryRun}
	if req.FromKey != "" {
		// If the run cannot be resumed at all, the answer says that and does not mention
		// its keys.
		if _, err := operate.On(ac.Engine).Resume(r.Context(), id, operate.ResumeOptions{Force: req.Force, DryRun: true}); err != nil {
			return operate.Plan{}, err
		}
	}
	var err error
	if o.FromCheckpoint, err = ac.seqOf(r, id, req.FromCheckpoint, req.FromKey); err != nil {
		return operate.Plan{}, err
	}
	return operate.On(ac.Engine).Resume(r.Context(), id, o)
}

// The routes of two designs that people come from. They do what our routes do, and answer
// the way those designs do.

// ResumeState serves POST /api/workflows/{id}/resume, where the id of a workflow is that
// of a run. It answers with the state of the run.
func (ac *Acts) ResumeState(w http.ResponseWriter, r *http.Request) error {
	req, err := readResume(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if _, err := ac.doResume(r, id, req); err != nil {
		return err
	}
	run, _, err := ac.after(r, id)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, run)
	return nil
}

// ResumeWaiting serves POST /workflows/{workflow}/resume/{run_id}: accepted, with the id
// of the run. It also accepts a run that waits at a checkpoint and that no process
// executes: such a run is registered, and goes on when its answer comes.
func (ac *Acts) ResumeWaiting(w http.ResponseWriter, r *http.Request) error {
	req, err := readResume(r)
	if err != nil {
		return err
	}
	id := r.PathValue("run_id")
	log, err := ac.Engine.Store().Load(r.Context(), id, read.RowOnly)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	if log.Run.Workflow != r.PathValue("workflow") {
		return web.NewError(http.StatusNotFound, "not_found", fmt.Sprintf("workflow %s has no run %s", r.PathValue("workflow"), id), "")
	}
	message := fmt.Sprintf("Workflow %s resumed", id)
	if req.DryRun {
		message = fmt.Sprintf("Workflow %s can be resumed; nothing was done", id)
	}
	if log.Run.Status == store.Waiting && !log.Run.Paused {
		revive := ac.reviveWaiting
		if req.DryRun {
			revive = ac.waitsFor
		}
		if message, err = revive(r, id); err != nil {
			return err
		}
	} else if _, err := ac.doResume(r, id, req); err != nil {
		return err
	}
	_, shown, err := ac.after(r, id)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusAccepted, client.Done{RunID: id, Message: message, Run: shown})
	return nil
}

// reviveWaiting makes sure that a waiting run can be answered. There is nothing to execute
// until the answer comes: the question is in the history, and a process that serves the
// run then claims it. Inconsistencies are repaired now, and a run that was waiting for
// nothing goes on.
func (ac *Acts) reviveWaiting(r *http.Request, id string) (string, error) {
	rec, err := ac.Engine.RecoverRun(r.Context(), id)
	if err != nil {
		return "", err
	}
	if rec.Needed && rec.Code != durable.CodeE2 {
		return fmt.Sprintf("Workflow %s resumed", id), ac.unpark(r, id)
	}
	return ac.waitsFor(r, id)
}

// waitsFor says what a waiting run asks.
func (ac *Acts) waitsFor(r *http.Request, id string) (string, error) {
	open, err := operate.On(ac.Engine).ApprovalsOf(r.Context(), id)
	if err != nil {
		return "", err
	}
	if len(open) == 0 {
		return "", web.NewError(http.StatusConflict, "no_checkpoint", fmt.Sprintf("run %s waits at no checkpoint that somebody could answer", id), "it goes on by itself when its time comes")
	}
	return fmt.Sprintf("Workflow %s waits for an answer: %s", id, ac.Redact.Text(open[0].Prompt)), nil
}

// unpark resumes a run that a repair left for a person to resume. A run that it left to
// the processes that serve it may already be executing.
func (ac *Acts) unpark(r *http.Request, id string) error {
	log, err := ac.Engine.Store().Load(r.Context(), id, read.RowOnly)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	if log.Run.Status != store.Interrupted || log.Run.Code == "" {
		return nil
	}
	_, err = operate.On(ac.Engine).Resume(r.Context(), id, operate.ResumeOptions{})
	return err
}
