package act

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Start serves POST /api/workflows/{name}/runs.
func (ac *Acts) Start(w http.ResponseWriter, r *http.Request) error {
	var req client.StartRequest
	if err := web.ReadJSON(r, &req); err != nil {
		return err
	}
	o := startOptions(&req)
	if req.ID != "" {
		if err := ac.May(r, web.ActionStart, req.ID); err != nil {
			return err
		}
	}
	if err := ac.notOfAChild(r, req.ID); err != nil {
		return err
	}
	start := operate.On(ac.Engine).StartJSON
	if req.Enqueue {
		start = operate.On(ac.Engine).EnqueueJSON
	}
	id, err := start(r.Context(), r.PathValue("name"), newRunID(req.ID), req.Input, o...)
	var conflict *durable.ConflictError
	switch {
	case errors.As(err, &conflict) && conflict.Dedup != "" && ac.May(r, web.ActionRead, conflict.Holder) != nil:
		return web.NewError(http.StatusConflict, "duplicate", fmt.Sprintf("the deduplication key %q is in use", conflict.Dedup), "start the run once the run that has the key has ended")
	case err != nil:
		return ac.inUse(r, req.ID, err)
	}
	_, shown, err := ac.after(r, id)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusCreated, client.Done{RunID: id, Message: fmt.Sprintf("Workflow %s started", id), Run: shown})
	return nil
}

// inUse returns err, without what it says of the run that has this id if the caller may not read
// that one.
func (ac *Acts) inUse(r *http.Request, id string, err error) error {
	var conflict *durable.ConflictError
	if errors.As(err, &conflict) && conflict.Dedup == "" && ac.May(r, web.ActionRead, id) != nil {
		return web.NewError(http.StatusConflict, "conflict", fmt.Sprintf("run id %q is in use", id), "use another run id")
	}
	return err
}

// startOptions returns what a request says about its start as a caller of Start would.
func startOptions(req *client.StartRequest) []durable.StartOption {
	o := []durable.StartOption{durable.Exclusive(req.Exclusive...), durable.Priority(req.Priority), durable.Delay(millis(req.DelayMS))}
	if len(req.Attributes) > 0 {
		o = append(o, durable.Attributes(req.Attributes))
	}
	for k, v := range req.Headers {
		o = append(o, durable.Header(k, v))
	}
	if req.Queue != "" {
		o = append(o, durable.OnQueue(req.Queue))
	}
	if req.Partition != "" {
		o = append(o, durable.Partition(req.Partition))
	}
	if req.Dedup != "" {
		o = append(o, durable.Dedup(req.Dedup))
	}
	if !req.StartAt.IsZero() {
		o = append(o, durable.StartAt(req.StartAt))
	}
	if d := req.Debounce; d != nil {
		o = append(o, durable.Debounce(d.Key, millis(d.WaitMS), millis(d.MostMS)))
	}
	if req.DeadlineMS != 0 {
		o = append(o, durable.Deadline(millis(req.DeadlineMS)))
	}
	return o
}

// millis is a number of milliseconds as a duration. One that no duration can hold becomes one
// that is refused as too long, or as negative.
func millis(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}

// notOfAChild refuses an id that a child of an unfinished run may get, "order-42/ship": if
// it were taken, that child would need another id. Only ids from outside are checked, and
// only those with a slash.
func (ac *Acts) notOfAChild(r *http.Request, id string) error {
	var parents []string
	for i, c := range id {
		if c == '/' && i > 0 {
			parents = append(parents, id[:i])
		}
	}
	if len(parents) == 0 || store.CheckRunID(id) != nil { // no run can have it, and the start reports that
		return nil
	}
	// One read, however many slashes the id has.
	page, err := ac.Engine.Store().List(r.Context(), store.Filter{IDs: parents, Statuses: notCompleted, Limit: 1})
	if err != nil {
		return fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	if len(page.Runs) == 0 {
		return nil
	}
	if there, err := ac.exists(r, id); there || err != nil {
		return err // it is not a new run
	}
	return web.NewError(http.StatusConflict, "conflict", fmt.Sprintf("the id %q is one that a child of another run may get", id), "use another run id")
}

// notCompleted are the statuses of runs that may still start a child: failed and cancelled
// runs can be resumed.
var notCompleted = []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted, store.Failed, store.Cancelled}

// newRunID is the id that a new run asks for, or a request to generate one.
func newRunID(id string) string {
	if id == "" {
		return durable.AutoID
	}
	return id
}
