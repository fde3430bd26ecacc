package act

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
)

// PauseQueue serves POST /api/queues/{queue}/pause.
func (ac *Acts) PauseQueue(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("queue")
	reason, err := ac.reason(r)
	if err != nil {
		return err
	}
	if err := operate.On(ac.Engine).PauseQueue(r.Context(), name, reason); err != nil {
		return err
	}
	ac.Log.Info("dashboard: paused a queue", "queue", name, "user", ac.Who(r), "reason", reason)
	return ac.queueDone(w, r, name, fmt.Sprintf("Queue %s paused: no run gets a place, and those that have one go on", name))
}

// ResumeQueue serves POST /api/queues/{queue}/resume.
func (ac *Acts) ResumeQueue(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("queue")
	if _, err := ac.reason(r); err != nil {
		return err
	}
	if err := operate.On(ac.Engine).ResumeQueue(r.Context(), name); err != nil {
		return err
	}
	ac.Log.Info("dashboard: resumed a queue", "queue", name, "user", ac.Who(r))
	return ac.queueDone(w, r, name, fmt.Sprintf("Queue %s goes on", name))
}

// queueDone answers an act on a queue.
func (ac *Acts) queueDone(w http.ResponseWriter, r *http.Request, name, message string) error {
	queues, err := operate.On(ac.Engine).Queues(r.Context(), name)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, client.QueueDone{Queue: ac.Wire.Queue(&queues[0]), Message: message})
	return nil
}

// Retry serves POST /api/runs/{id}/retry: a dead letter gets in line again.
func (ac *Acts) Retry(w http.ResponseWriter, r *http.Request) error {
	var req client.RetryRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	if r.URL.Query().Has("dry_run") {
		dry, err := web.QueryBool(r, "dry_run")
		if err != nil {
			return err
		}
		req.DryRun = dry
	}
	id := r.PathValue("id")
	ctx, stop := ac.patient(r)
	defer stop()
	plan, err := operate.On(ac.Engine).RetryDeadLetter(ctx, id, operate.RetryOptions{DryRun: req.DryRun})
	if err != nil {
		return err
	}
	return ac.planned(w, r, id, &plan, req.DryRun)
}
