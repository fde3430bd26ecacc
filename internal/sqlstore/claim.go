package sqlstore

import (
	"github.com/holdfast-dev/holdfast/store"
)

// Claimable reports whether a claim at now may take r, given whether its owner
// is live. byID says that the claim names it: then its time does not matter,
// and a run that was being executed is taken too. Whether the executor serves
// it, and the limit of its queue, are not looked at.
func Claimable(r *store.Run, now store.Time, ownerLive, byID bool) bool {
	if r.Status.Terminal() || (r.Owner != "" && ownerLive) {
		return false
	}
	if r.Paused && (byID || !r.CancelAsked) {
		return false
	}
	if r.Status == store.Interrupted && r.Code != "" && r.Code != store.CodeNotRegistered {
		return false
	}
	if byID {
		return true
	}
	switch r.Status {
	case store.Pending:
		return r.WakeAt <= now
	case store.Interrupted:
		return true
	case store.Waiting:
		return (r.WakeAt != 0 && r.WakeAt <= now) || r.Inbox > r.Seen || r.CancelAsked
	}
	return false
}

// Executing reports whether a run in s counts against QueueLimit.Max.
func Executing(s store.Status) bool { return s == store.Running || s == store.Resuming }

// TakeClaim changes r, whose Last is the last event of its log, into what it is
// after a claim, and returns the event to append (r.Last afterwards) and the
// assignments to the row.
func TakeClaim(r *store.Run, c store.Claim, now store.Time) (*store.Event, []Assignment) {
	last := r.Last
	e := &store.Event{
		Seq: last.Seq + 1, Epoch: r.Epoch + 1, Branch: r.Branch, Type: store.RunResumed, At: max(c.At, last.At),
		Active: last.Active, Steps: last.Steps, Data: c.EventData(r),
	}
	var strikes int32
	if Executing(r.Status) {
		// It was being executed and did not give itself up: a strike, unless
		// something was recorded since the claim (S21).
		strikes = 1
		if last.Type.Claims() {
			strikes += r.Strikes
		}
	}
	switch r.Status {
	case store.Pending:
		e.Type, r.Status, r.StartedAt = store.WorkflowStarted, store.Running, e.At
	case store.Waiting:
		e.Type = store.RunClaimed
	default:
		r.Status = store.Resuming
		r.Resumes++
	}
	e.Sum = store.Seal(r.ID, last.Sum, e)
	r.Epoch, r.Owner, r.Strikes, r.UpdatedAt, r.Last = e.Epoch, c.Executor, strikes, now, e
	sets := []Assignment{
		{"status", string(r.Status)}, {"owner", r.Owner}, {"epoch", r.Epoch}, {"strikes", int64(strikes)}, {"updated_at", int64(now)},
	}
	switch e.Type {
	case store.WorkflowStarted:
		sets = append(sets, Assignment{"started_at", int64(r.StartedAt)})
	case store.RunResumed:
		sets = append(sets, Assignment{"resumes", int64(r.Resumes)})
	}
	return e, sets
}
