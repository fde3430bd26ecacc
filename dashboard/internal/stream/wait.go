package stream

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
	"github.com/holdfast-dev/holdfast/store"
)

// anyRun waits for a run of whatever workflow: the handle of a run knows only its id.
var anyRun = durable.Ref[any, json.RawMessage]("any")

// Wait serves GET /api/runs/{id}/wait. It answers as soon as the run has ended, or has
// stopped and nobody is about to continue it, and otherwise after a heartbeat, with the
// state as it is: the caller then asks again. A caller that leaves never touches the run.
//
// If there are too many streams, the caller is told to come back, unless there is nothing
// to wait for: those whose runs go on come back at once after each answer, and would leave
// no place to the others.
func (st *Streams) Wait(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if r.Method == http.MethodHead {
		out, err := st.outcome(r, id)
		if err != nil {
			return err
		}
		return web.AnswerJSON(w, out)
	}
	stopped := false
	leave, full := st.enter(r)
	switch {
	case full == nil:
		defer leave()
		// The server's own limit is for answers that come at once.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(st.limits.Heartbeat + maxWrite))
		var err error
		if stopped, err = st.await(r.Context(), id); err != nil {
			return err
		}
	case errors.Is(full, web.ErrCrossOrigin):
		return full
	}
	out, err := st.outcome(r, id)
	if err != nil {
		return err
	}
	if row := &out.Run; row.Status == string(store.Interrupted) {
		out.Done = stopped || full != nil && !row.Paused && row.Nobody != ""
	}
	if full != nil && !out.Done {
		return full
	}
	return web.AnswerJSON(w, out)
}

// await returns once a run has ended or stopped, or after a heartbeat. How it has ended is
// read from its row: it may have been resumed by then.
func (st *Streams) await(ctx context.Context, id string) (stopped bool, err error) {
	run, err := anyRun.Handle(durable.NewContext(ctx, st.Engine), id)
	if err != nil {
		return false, err
	}
	beat, stop := context.WithTimeout(ctx, st.limits.Heartbeat)
	defer stop()
	_, err = run.Wait(beat)
	var (
		ended       *durable.RunError
		interrupted *durable.InterruptedError
		unreadable  *durable.UndecodableError
	)
	switch {
	case errors.As(err, &interrupted):
		return true, nil
	case errors.As(err, &ended), errors.As(err, &unreadable), beat.Err() != nil:
		return false, nil
	}
	return false, err
}

// outcome returns how far a run is.
func (st *Streams) outcome(r *http.Request, id string) (*client.Outcome, error) {
	log, err := st.Engine.Store().Load(r.Context(), id, read.RowOnly)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	row, list := &log.Run, st.read.Executors
	if row.Status == store.Interrupted {
		list = st.read.ExecutorsNow // its process may have left a moment ago
	}
	executors, err := list(r.Context())
	if err != nil {
		return nil, err
	}
	out := &client.Outcome{Done: row.Status.Terminal(), Run: st.Wire.Run(row)}
	out.Run.Nobody = view.Nobody(row, executors)
	if row.Status == store.Completed && row.Last != nil {
		out.Output = st.Wire.Payload(id, row.Last, st.MayPayload(r, id))
	}
	return out, nil
}
