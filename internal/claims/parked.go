package claims

import (
	"context"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// A run is parked when the code that had it did not fit its history, or when an outcome could not be
// recorded. That says nothing of other code: after a roll-out was taken back, or was followed by a
// mended one, the run fits again, or records something else. So each Recover replays such runs with
// the code that is here, and continues those that fit. Nothing is written about the others, so a
// program may look as often as it is started.

// mayFit reports whether a parked run may be one that the code of this program fits.
func (rc *Recovery) mayFit(row *store.Run) bool {
	switch row.Code {
	case stuck.CodeDefinitionChanged, stuck.CodeUndecodable, stuck.CodeChildNotRegistered, stuck.CodeUnrecorded:
		return rc.o.Program.Has(row.Workflow, row.Version) && policyFor(row, rc.o.Program.OnBoot(row.Workflow, row.Version)) == Resume
	}
	return false
}

// tryParked continues those of the runs in rep.misfits that the code of this program fits, and
// reports the others as stuck.
func (rc *Recovery) tryParked(ctx context.Context, rep *Report) error {
	rows := rep.misfits
	rep.misfits = nil
	for len(rows) > 0 {
		n := min(len(rows), claimBatch)
		var resume toContinue
		for _, row := range rows[:n] {
			fits, err := false, ctx.Err()
			if err == nil {
				fits, err = rc.o.Reopen(ctx, row)
			}
			if err != nil && ctx.Err() == nil {
				rc.o.Log.AboutRun(slog.LevelWarn, row, "durable: a parked run could not be tried with the code that is here", slog.Any("error", err))
			}
			if !fits {
				rep.parked(row)
				continue
			}
			rc.o.Log.AboutRun(slog.LevelInfo, row, "durable: the code that is here fits a parked run, which goes on", slog.String("code", row.Code))
			rep.Unparked = append(rep.Unparked, row.ID)
			switch {
			case row.Paused:
				rc.claims.Wake() // a run that is to be cancelled is due though it is paused
			case !row.NeedsPlace(): // otherwise it is in line again, and gets its place in turn
				resume.add(row)
			}
		}
		var taken Report // without those that the claim loop has taken meanwhile
		rc.claims.continueAll(ctx, &resume, &taken)
		rep.Stuck = append(rep.Stuck, taken.Stuck...)
		rows = rows[n:]
	}
	return ctx.Err()
}
