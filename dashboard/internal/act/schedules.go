package act

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
)

// PauseSchedule serves POST /api/schedules/{schedule}/pause.
func (ac *Acts) PauseSchedule(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("schedule")
	reason, err := ac.reason(r)
	if err != nil {
		return err
	}
	if err := operate.On(ac.Engine).PauseSchedule(r.Context(), name, reason); err != nil {
		return err
	}
	ac.Log.Info("dashboard: paused a schedule", "schedule", name, "user", ac.Who(r), "reason", reason)
	return ac.scheduleDone(w, r, name, "", fmt.Sprintf("Schedule %s paused", name))
}

// ResumeSchedule serves POST /api/schedules/{schedule}/resume.
func (ac *Acts) ResumeSchedule(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("schedule")
	if _, err := ac.reason(r); err != nil {
		return err
	}
	if err := operate.On(ac.Engine).ResumeSchedule(r.Context(), name); err != nil {
		return err
	}
	ac.Log.Info("dashboard: resumed a schedule", "schedule", name, "user", ac.Who(r))
	return ac.scheduleDone(w, r, name, "", fmt.Sprintf("Schedule %s fires again", name))
}

// TriggerSchedule serves POST /api/schedules/{schedule}/trigger.
func (ac *Acts) TriggerSchedule(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("schedule")
	var req client.TriggerRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	id, err := operate.On(ac.Engine).TriggerSchedule(r.Context(), name, req.Key)
	if err != nil {
		return err
	}
	ac.Log.Info("dashboard: triggered a schedule", "schedule", name, "user", ac.Who(r), "run", id)
	return ac.scheduleDone(w, r, name, id, fmt.Sprintf("Started %s", id))
}

// BackfillSchedule serves POST /api/schedules/{schedule}/backfill.
func (ac *Acts) BackfillSchedule(w http.ResponseWriter, r *http.Request) error {
	var req client.BackfillRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	out, err := ac.Backfill(r, &req)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, out)
	return nil
}

// Backfill starts the runs of a span, or says which it would start. A dry run changes
// nothing, so permission to list is enough.
func (ac *Acts) Backfill(r *http.Request, req *client.BackfillRequest) (client.Backfill, error) {
	name, op := r.PathValue("schedule"), operate.On(ac.Engine)
	if req.From.IsZero() || req.To.IsZero() {
		return client.Backfill{}, web.BadRequest("from and to are needed: moments such as 2026-11-23T02:00:00Z")
	}
	plan, err := op.PlanBackfill(r.Context(), name, req.From, req.To)
	if err != nil || req.DryRun {
		return ac.Wire.Planned(plan), err
	}
	ctx, stop := ac.patient(r)
	defer stop()
	did, err := op.BackfillSchedule(ctx, name, req.From, req.To)
	if err != nil {
		return client.Backfill{}, err
	}
	ac.Log.Info("dashboard: filled a schedule", "schedule", name, "user", ac.Who(r), "done", did.Started, "refused", len(did.Refused))
	return ac.Wire.Backfilled(plan, &did), nil
}

// DeleteSchedule serves POST /api/schedules/{schedule}/delete.
func (ac *Acts) DeleteSchedule(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("schedule")
	if _, err := ac.reason(r); err != nil {
		return err
	}
	if err := operate.On(ac.Engine).DeleteSchedule(r.Context(), name); err != nil {
		return err
	}
	ac.Log.Info("dashboard: deleted a schedule", "schedule", name, "user", ac.Who(r))
	web.WriteJSON(w, http.StatusOK, client.ScheduleDone{Message: fmt.Sprintf("Schedule %s deleted: its runs stay", name)})
	return nil
}

// scheduleDone answers an act on a schedule.
func (ac *Acts) scheduleDone(w http.ResponseWriter, r *http.Request, name, runID, message string) error {
	s, err := ac.read.Schedule(r.Context(), name)
	if err != nil {
		return err
	}
	wire := ac.Wire.Schedule(s)
	web.WriteJSON(w, http.StatusOK, client.ScheduleDone{Schedule: &wire, RunID: runID, Message: message})
	return nil
}
