package view

import (
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/wire"
	"github.com/holdfast-dev/holdfast/operate"
)

// Schedule is what the API shows of a schedule.
func (wi *Wire) Schedule(s *operate.ScheduleState) client.Schedule {
	w := wire.Schedule(s)
	w.Reason, w.Problem = wi.Redact.Text(w.Reason), wi.Redact.Text(w.Problem)
	for i := range w.Last {
		w.Last[i].Reason = wi.Redact.Text(w.Last[i].Reason)
	}
	return w
}

// Planned is what the API shows of what a backfill would do.
func (wi *Wire) Planned(plan []operate.PlannedFire) client.Backfill { return wire.Planned(plan) }

// Backfilled is what the API shows of what a backfill did.
func (wi *Wire) Backfilled(plan []operate.PlannedFire, did *operate.Backfill) client.Backfill {
	w := wire.Backfilled(plan, did)
	for id, text := range w.Refused {
		w.Refused[id] = wi.Redact.Text(text)
	}
	return w
}
