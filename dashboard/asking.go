package dashboard

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// askingRuns remembers what runs ask of people, so that of hundreds that wait
// only those are read that have moved since: their questions stand in their
// histories. The zero value is ready.
type askingRuns struct {
	mu    sync.Mutex
	known map[string]asked // by run id; those that asked the last time
}

// asked is what a run asks, as of a state of its row. What it asks changes with its
// log, and with the messages that wait for it, one of which may be the answer.
type asked struct {
	epoch, last, inbox int64
	approvals          []durable.Approval
}

// openApprovals returns what is asked of people now, by the runs that were created
// first first. A history that is damaged hides the questions of the others from
// nobody.
func (h *handler) openApprovals(ctx context.Context) ([]durable.Approval, error) {
	f := askingFilter()
	f.Limit, f.WithLast = scanPage, true
	h.askers.mu.Lock()
	known := h.askers.known
	h.askers.mu.Unlock()
	now := map[string]asked{}
	var all []durable.Approval
	for {
		p, err := h.eng.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range p.Runs {
			row := &p.Runs[i]
			a := asked{epoch: row.Epoch, inbox: row.Inbox}
			if row.Last != nil {
				a.last = row.Last.Seq
			}
			if was, ok := known[row.ID]; ok && was.epoch == a.epoch && was.last == a.last && was.inbox == a.inbox {
				a.approvals = was.approvals
			} else if a.approvals, err = h.readApprovals(ctx, row.ID); err != nil {
				return nil, err
			}
			now[row.ID] = a
			all = append(all, a.approvals...)
		}
		if f.After = p.Next; p.Next == "" {
			break
		}
	}
	h.askers.mu.Lock()
	h.askers.known = now
	h.askers.mu.Unlock()
	return all, nil
}

// readApprovals reads what a run asks. One that is gone meanwhile asks nothing.
func (h *handler) readApprovals(ctx context.Context, id string) ([]durable.Approval, error) {
	open, err := h.eng.ApprovalsOf(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if _, damaged := errors.AsType[*durable.DamagedError](err); damaged {
		h.options.Logger.Warn("dashboard: the approvals of a run cannot be read", "run", id, "error", err)
		return nil, nil
	}
	return open, err
}
