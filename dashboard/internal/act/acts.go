package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Acts carries out what changes a run. Its exported methods are the entry points for the
// routes of the API and for the forms of the pages.
type Acts struct {
	*web.Env
	read *read.Reader
	// patience is how long an act may wait for a run to stop.
	patience time.Duration
}

// New makes Acts. patience is how long an act may wait for a run to stop.
func New(env *web.Env, reader *read.Reader, patience time.Duration) *Acts {
	return &Acts{Env: env, read: reader, patience: patience}
}

// patient bounds how long an act waits for a run to stop, however long the caller would
// wait.
func (ac *Acts) patient(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), ac.patience)
}

// after reads a run that was acted on. shown is what the caller may see of it: nil if the
// caller may not read the run, and run then has no more than its status.
func (ac *Acts) after(r *http.Request, id string) (run client.Run, shown *client.Run, err error) {
	run, err = ac.read.Run(r.Context(), id)
	if err != nil {
		return run, nil, err
	}
	if ac.May(r, web.ActionRead, id) != nil {
		return client.Run{ID: run.ID, Workflow: run.Workflow, Version: run.Version, Queue: run.Queue, Status: run.Status, Paused: run.Paused, Nobody: run.Nobody}, nil, nil
	}
	return run, &run, nil
}

// done answers an act that has no plan.
func (ac *Acts) done(w http.ResponseWriter, r *http.Request, id, message string) error {
	_, shown, err := ac.after(r, id)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, client.Done{RunID: id, Message: message, Run: shown})
	return nil
}

// planned answers an act that has a plan.
func (ac *Acts) planned(w http.ResponseWriter, r *http.Request, id string, plan *operate.Plan, dry bool) error {
	run, _, err := ac.after(r, id)
	if err != nil {
		return err
	}
	wire := client.Resumed{Run: run, Plan: ac.Wire.Plan(plan), DryRun: dry}
	executors, err := ac.read.Executors(r.Context())
	if err != nil {
		return err
	}
	row := &store.Run{ID: run.ID, Workflow: run.Workflow, Version: run.Version, Queue: run.Queue}
	wire.Plan.Served = view.ServedBy(executors, row)
	if !wire.Plan.Served {
		wire.Plan.Nobody = fmt.Sprintf("nobody alive serves workflow %s%s: it goes on once a program that does is started", run.Workflow, view.FromQueue(executors, row))
	}
	web.WriteJSON(w, http.StatusOK, wire)
	return nil
}

// reason reads why something is done, and adds the name of the caller.
func (ac *Acts) reason(r *http.Request) (string, error) {
	var req client.ReasonRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return "", err
	}
	return signed(req.Reason, ac.Who(r)), nil
}

// signed is a reason with the name of the person who gives it.
func signed(reason, by string) string {
	switch {
	case by == "":
		return reason
	case reason == "":
		return "by " + by
	}
	return reason + " (" + by + ")"
}

// seqOf returns the number of the event that a request names by number or by key.
func (ac *Acts) seqOf(r *http.Request, id string, seq int64, key string) (int64, error) {
	switch {
	case key == "":
		return seq, nil
	case seq != 0:
		return 0, web.BadRequest("give a number or a key, not both")
	}
	return operate.On(ac.Engine).CheckpointOf(r.Context(), id, key)
}

// exists reports whether there is a run with this id.
func (ac *Acts) exists(r *http.Request, id string) (bool, error) {
	_, err := ac.Engine.Store().Load(r.Context(), id, read.RowOnly)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid):
		return false, nil
	}
	return false, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
}

// ValueOf is a value as the engine takes it: nil if none was given.
func ValueOf(v json.RawMessage) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// Cancel serves POST /api/runs/{id}/cancel.
func (ac *Acts) Cancel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	reason, err := ac.reason(r)
	if err != nil {
		return err
	}
	if err := ac.Engine.Cancel(r.Context(), id, reason); err != nil {
		return err
	}
	run, shown, err := ac.after(r, id)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, client.Done{RunID: id, Message: cancelMessage(&run), Run: shown})
	return nil
}

// cancelMessage describes the state of a run whose cancel is recorded. Only the process
// that executes the run ends it.
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

// Pause serves POST /api/runs/{id}/pause.
func (ac *Acts) Pause(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	reason, err := ac.reason(r)
	if err != nil {
		return err
	}
	if err := ac.Engine.Pause(r.Context(), id, reason); err != nil {
		return err
	}
	run, shown, err := ac.after(r, id)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Workflow %s paused", id)
	if !run.Paused {
		message = fmt.Sprintf("Workflow %s pauses as soon as what is under way has ended", id)
	}
	web.WriteJSON(w, http.StatusOK, client.Done{RunID: id, Message: message, Run: shown})
	return nil
}

// Unpause serves POST /api/runs/{id}/unpause.
func (ac *Acts) Unpause(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := ac.reason(r); err != nil {
		return err
	}
	ctx, stop := ac.patient(r)
	defer stop()
	if err := ac.Engine.Unpause(ctx, id); err != nil {
		return err
	}
	return ac.done(w, r, id, fmt.Sprintf("Workflow %s goes on", id))
}

// Signal serves POST /api/runs/{id}/signal/{name}.
func (ac *Acts) Signal(w http.ResponseWriter, r *http.Request) error {
	id, name := r.PathValue("id"), r.PathValue("name")
	var req client.SignalRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	var o []durable.SignalOption
	if req.ID != "" {
		o = append(o, durable.SignalID(req.ID))
	}
	value := req.Value
	if len(value) == 0 {
		if err := ac.takesNothing(r.Context(), id, name); err != nil {
			return err
		}
		value = json.RawMessage("null")
	}
	if err := ac.Engine.Signal(r.Context(), id, name, value, o...); err != nil {
		return err
	}
	return ac.done(w, r, id, fmt.Sprintf("Signal %s sent to %s", name, id))
}

// takesNothing refuses a signal without a value, unless the run is known to wait for nothing
// more: any other type would read null as its zero value, such as a no.
func (ac *Acts) takesNothing(ctx context.Context, id, name string) error {
	o, err := ac.read.Outline(ctx, id)
	if err != nil {
		return err
	}
	open, _ := o.Listening(name)
	switch {
	case o.Run.Status.Terminal(): // that is what is refused
	case len(open) == 0 || len(open[0].Sample) == 0:
		return web.NewError(http.StatusBadRequest, "invalid", fmt.Sprintf("signal %s has no value, and it is not known whether run %s takes it without one", name, id), `give value: JSON, or null to send none`)
	case !open[0].TakesNothing():
		return web.NewError(http.StatusBadRequest, "invalid", fmt.Sprintf("signal %s has no value, and run %s waits for one like %s", name, id, open[0].Sample), "give value")
	}
	return nil
}
