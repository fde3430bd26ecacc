package sqlstore

import (
	"github.com/holdfast-dev/holdfast/store"
)

// TakeClaim changes r, whose Last is the last event of its log, into what it is
// after a claim, and returns the event to append (r.Last afterwards) and the
// assignments to the row.
func TakeClaim(r *store.Run, c store.Claim, now store.Time) (*store.Event, []Assignment) {
	*r = c.Take(r, r.Last, now)
	e := r.Last
	sets := []Assignment{
		{"status", string(r.Status)}, {"owner", r.Owner}, {"epoch", r.Epoch}, {"strikes", int64(r.Strikes)}, {"updated_at", int64(r.UpdatedAt)},
	}
	switch e.Type {
	case store.WorkflowStarted:
		sets = append(sets, Assignment{"started_at", int64(r.StartedAt)})
	case store.RunResumed:
		sets = append(sets, Assignment{"resumes", int64(r.Resumes)})
	}
	return e, sets
}
