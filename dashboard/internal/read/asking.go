package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// askingRuns remembers what runs ask of people. The questions are in the histories of the
// runs; of hundreds that wait, only those that have moved since are read again. The zero
// value is ready to use.
type askingRuns struct {
	mu    sync.Mutex
	known map[string]asked // by run id
}

// maxKnownAsking is how many runs are remembered when each look sees only some of them.
const maxKnownAsking = 4096

// asked is what a run asks in a given state of its row. What it asks changes with its log
// and with the messages waiting for it, one of which may be the answer.
type asked struct {
	epoch, last, inbox int64
	approvals          []durable.Approval
}

// what returns what is known of a run, unless its row has moved since.
func (r *askingRuns) what(row *store.Run) (asked, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.known[row.ID]
	return a, known && a.same(askedOf(row))
}

// keep remembers the runs that a scan has found. After a scan of all runs it forgets the
// others: they no longer ask anything.
func (r *askingRuns) keep(met map[string]asked, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all || len(r.known)+len(met) > maxKnownAsking {
		r.known = met
		return
	}
	if r.known == nil {
		r.known = map[string]asked{}
	}
	maps.Copy(r.known, met)
}

// askedOf is the state of a row.
func askedOf(row *store.Run) asked {
	a := asked{epoch: row.Epoch, inbox: row.Inbox}
	if row.Last != nil {
		a.last = row.Last.Seq
	}
	return a
}

func (a *asked) same(b asked) bool {
	return a.epoch == b.epoch && a.last == b.last && a.inbox == b.inbox
}

// AskingFilter selects the runs that ask a person, oldest first.
func AskingFilter() store.Filter {
	return store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{durable.CodeApproval}, OldestFirst: true}
}

// Asking counts the runs that ask a person.
func (rd *Reader) Asking(ctx context.Context) (int64, error) {
	n, err := rd.Engine.Store().Count(ctx, AskingFilter(), "")
	if err != nil {
		return 0, fmt.Errorf("dashboard: counting approvals: %w", err)
	}
	return n[""], nil
}

// Asked lists the questions of the oldest asking runs, oldest question first, and counts
// all asking runs. At most limit runs are read.
func (rd *Reader) Asked(ctx context.Context, limit int) (asking int64, all []durable.Approval, err error) {
	if asking, err = rd.Asking(ctx); err != nil || asking == 0 {
		return 0, nil, err
	}
	if all, err = rd.openApprovals(ctx, limit); err != nil {
		return 0, nil, err
	}
	slices.SortStableFunc(all, func(a, b durable.Approval) int { return cmp.Compare(a.AskedAt, b.AskedAt) })
	return asking, all, nil
}

// Approvals lists what is asked of people now, the oldest question first.
func (rd *Reader) Approvals(ctx context.Context) ([]client.Approval, error) {
	open, err := rd.openApprovals(ctx, 0)
	if err != nil {
		return nil, err
	}
	wire := make([]client.Approval, len(open))
	for i := range open {
		wire[i] = rd.Wire.Approval(&open[i])
	}
	slices.SortStableFunc(wire, func(a, b client.Approval) int { return a.AskedAt.Compare(b.AskedAt) })
	return wire, nil
}

// openApprovals returns the open questions of the oldest asking runs; limit is how many
// runs are read, 0: all. Questions of the run that was created first come first. A run
// whose history cannot be read does not hide the questions of the others.
func (rd *Reader) openApprovals(ctx context.Context, limit int) ([]durable.Approval, error) {
	f := AskingFilter()
	f.Limit, f.WithLast = scanPage, true
	if limit > 0 {
		f.Limit = limit
	}
	met := map[string]asked{}
	var open []durable.Approval
	for {
		p, err := rd.Engine.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range p.Runs {
			row := &p.Runs[i]
			a, known := rd.askers.what(row)
			if !known {
				a = askedOf(row)
				if a.approvals, err = rd.ApprovalsOf(ctx, row.ID); ctx.Err() != nil {
					return nil, context.Cause(ctx)
				} else if err != nil {
					rd.Log.Warn("dashboard: the approvals of a run cannot be read", "run", row.ID, "error", err)
					continue // it is read again the next time
				}
			}
			met[row.ID] = a
			open = append(open, a.approvals...)
		}
		if f.After = p.Next; p.Next == "" || limit > 0 {
			rd.askers.keep(met, p.Next == "")
			return open, nil
		}
	}
}

// ApprovalsOf reads what a run asks. A run that was deleted in the meantime asks
// nothing.
func (rd *Reader) ApprovalsOf(ctx context.Context, id string) ([]durable.Approval, error) {
	open, err := operate.On(rd.Engine).ApprovalsOf(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return open, err
}
