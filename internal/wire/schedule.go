package wire

import (
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/operate"
)

// Schedule returns a schedule.
func Schedule(s *operate.ScheduleState) client.Schedule {
	w := client.Schedule{
		Name: s.Name, Workflow: s.Workflow, Timetable: s.Timetable, Overlap: s.Overlap, Missed: s.Missed,
		Paused: s.Paused, PausedAt: s.PausedAt, Reason: s.PausedReason, Next: s.Next, Held: s.Held,
		Started: s.Started, Skipped: s.Skipped, Misses: s.MissedFires, Refused: s.Refused, Problem: s.Problem, UpdatedAt: s.UpdatedAt,
	}
	for _, f := range s.Last {
		w.Last = append(w.Last, client.ScheduleFire{At: f.At, Outcome: f.Outcome, RunID: f.RunID, Status: string(f.Status), Reason: f.Reason, Count: f.Count})
	}
	return w
}

// Planned returns what a backfill would do.
func Planned(plan []operate.PlannedFire) client.Backfill {
	w := client.Backfill{Fires: len(plan), DryRun: true}
	for _, f := range plan {
		if f.Exists {
			w.Existing++
			continue
		}
		if w.Started++; w.First == "" {
			w.First = f.RunID
		}
		w.Last = f.RunID
		w.RunIDs = append(w.RunIDs, f.RunID)
	}
	return w
}

// Backfilled returns what a backfill did, of which plan is what it was to do.
func Backfilled(plan []operate.PlannedFire, did *operate.Backfill) client.Backfill {
	w := client.Backfill{Fires: len(plan), Started: did.Started, Existing: did.Existing, RunIDs: did.RunIDs}
	if n := len(did.RunIDs); n > 0 {
		w.First, w.Last = did.RunIDs[0], did.RunIDs[n-1]
	}
	for id, err := range did.Refused {
		if w.Refused == nil {
			w.Refused = map[string]string{}
		}
		w.Refused[id] = err.Error()
	}
	return w
}
