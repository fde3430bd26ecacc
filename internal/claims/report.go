package claims

import (
	"log/slog"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// A Report says what a recovery did, by run id. Runs in progress elsewhere, pending
// runs and ended ones are in none of its lists.
type Report struct {
	Resumed    []string
	Deferred   []string
	Failed     []string
	Left       []string
	Suspects   []string
	Repaired   []Repaired
	Stuck      []stuck.Run
	Quarantine []string
	Unparked   []string // not in Resumed

	// Partial: those that wait were still being looked at.
	Partial bool

	misfits   []*store.Run // parked, and yet to be tried with the code that is here
	approvals int
	continued []Execution // of Resumed, whose histories are being read
	batch     int         // how many runs the last claim has asked for at most

	resumed map[string]bool // Resumed, as far as hasResumed was asked
	told    int             // how many of Resumed are in it
}

// hasResumed reports whether the recovery has continued the run before. If it is parked since, the
// code that is here has parked it.
func (rep *Report) hasResumed(id string) bool {
	if rep.resumed == nil {
		rep.resumed = map[string]bool{}
	}
	for _, id := range rep.Resumed[rep.told:] {
		rep.resumed[id] = true
	}
	rep.told = len(rep.Resumed)
	return rep.resumed[id]
}

// clone returns a copy that can be added to.
func (rep *Report) clone() Report {
	c := *rep
	c.Resumed, c.Deferred, c.Failed, c.Left = slices.Clone(rep.Resumed), slices.Clone(rep.Deferred), slices.Clone(rep.Failed), slices.Clone(rep.Left)
	c.Suspects, c.Repaired, c.Stuck, c.Quarantine = slices.Clone(rep.Suspects), slices.Clone(rep.Repaired), slices.Clone(rep.Stuck), slices.Clone(rep.Quarantine)
	c.Unparked, c.resumed, c.told = slices.Clone(rep.Unparked), nil, 0
	return c
}

// add adds what another report says.
func (rep *Report) add(o *Report) {
	rep.Resumed, rep.Deferred, rep.Failed, rep.Left = append(rep.Resumed, o.Resumed...), append(rep.Deferred, o.Deferred...), append(rep.Failed, o.Failed...), append(rep.Left, o.Left...)
	rep.Suspects, rep.Repaired, rep.Stuck, rep.Quarantine = append(rep.Suspects, o.Suspects...), append(rep.Repaired, o.Repaired...), append(rep.Stuck, o.Stuck...), append(rep.Quarantine, o.Quarantine...)
	rep.Unparked = append(rep.Unparked, o.Unparked...)
}

// counts returns what the recovery did, as attributes of a log line: the numbers that are not
// zero, or that nothing was left to do.
func (rep *Report) counts() []any {
	attrs := slices.DeleteFunc([]any{
		slog.Int("resumed", len(rep.Resumed)), slog.Int("deferred", len(rep.Deferred)), slog.Int("suspects", len(rep.Suspects)), slog.Int("left", len(rep.Left)),
		slog.Int("quarantined", len(rep.Quarantine)), slog.Int("repaired", len(rep.Repaired)), slog.Int("stuck", len(rep.Stuck)),
	}, func(a any) bool { return a.(slog.Attr).Value.Int64() == 0 })
	if len(attrs) == 0 && len(rep.Failed) == 0 && rep.approvals == 0 {
		attrs = []any{slog.String("found", "nothing to recover")}
	}
	return attrs
}

// stuck adds a run that is stuck.
func (rep *Report) stuck(s stuck.Run) { rep.Stuck = append(rep.Stuck, s) }

// tryAgain adds a run for which nothing could be done, for this reason.
func (rep *Report) tryAgain(row *store.Run, code, reason, next string) {
	rep.stuck(stuck.Run{RunID: row.ID, Workflow: row.Workflow, Version: row.Version, Code: code, Reason: reason, Next: next, Since: row.UpdatedAt})
}

// parked adds a run whose row says why it is parked, and paused one that is paused.
func (rep *Report) parked(row *store.Run) { rep.stuck(stuck.Of(row, row.Code, row.Reason)) }

func (rep *Report) paused(row *store.Run) { rep.stuck(stuck.Paused(row)) }

// onceEach removes repeated entries for a run: the first thing that was found is the
// reason.
func onceEach(list []stuck.Run) []stuck.Run {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s stuck.Run) bool {
		again := seen[s.RunID]
		seen[s.RunID] = true
		return again
	})
}

// Repaired is what Repair has found and done.
type Repaired struct {
	RunID     string
	Needed    bool
	Code      string
	Reason    string
	NewBranch int32
	Cutoff    int64
}
