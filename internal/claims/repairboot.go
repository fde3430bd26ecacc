package claims

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// onBoot checks, as closely as history.Glance says, whether a run that recovery has
// found is consistent, and repairs it if not. It returns the row to go on with, nil
// if the run has been dealt with. An error says that the store could not be read.
func (rp *repairs) onBoot(ctx context.Context, row *store.Run, ends *tails, rep *Report) (*store.Run, error) {
	program := rp.o.Program
	if rp.o.NoReconcileOnBoot || row.Code == history.CodeImporting || !program.HasWorkflow(row.Workflow) || rp.o.Runs.Executing(row.ID) {
		return row, nil // the executor that has its code checks it
	}
	if program.Has(row.Workflow, row.Version) && rp.looksSound(ctx, row, ends, program.Steps(row.Workflow, row.Version)) {
		return row, nil
	}
	rec, err := rp.Repair(ctx, row.ID)
	var hopeless *Unrecoverable
	switch {
	case errors.As(err, &hopeless) && hopeless.Code == history.CodeE2:
		return row, nil // reported as a run that cannot be executed here
	case hopeless != nil:
		rep.stuck(stuck.Of(row, stuck.CodeUnrecoverable, fmt.Sprintf("%s: %s", hopeless.Reason, hopeless.Message)))
		return nil, nil
	case unjudged(err):
		return row, nil
	case err != nil:
		// The executor that executes it keeps trying until it can be read; a replay
		// also puts a torn run right, though without saying so.
		rp.o.Log.AboutRun(slog.LevelWarn, row, "durable: a run could not be compared with its events", slog.Any("error", err))
		return row, nil
	case !rec.Needed:
		return row, nil
	}
	rep.Repaired = append(rep.Repaired, rec)
	h, err := rp.o.Store.Load(ctx, row.ID, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	if err != nil {
		return nil, fmt.Errorf("durable: recovery could not read run %s: %w", row.ID, commit.StoreError(err))
	}
	if h.Run.Code == history.CodeRecovered {
		rp.settle(ctx, &h.Run, rep)
		return nil, nil
	}
	return &h.Run, nil
}

// looksSound reports whether the row, or the end of the log, shows that the run is
// consistent.
func (rp *repairs) looksSound(ctx context.Context, row *store.Run, ends *tails, declared []string) bool {
	// A declared wait does not count as a step, so history.Glance would not see A3.
	if last := row.Last; len(declared) > 0 && last != nil && last.Type == store.SignalReceived && last.Key == history.EscapeName(declared[len(declared)-1]) {
		return false
	}
	look := history.Glance(row, len(declared))
	for n := history.ShortTail; look == history.LookTail && n <= history.LongTail; n = 16 * n {
		tail, err := ends.of(ctx, row, n)
		switch {
		case errors.As(err, new(damagedTail)):
			return true // its execution finds that, and says so
		case err != nil:
			return errors.Is(err, store.ErrNotFound)
		}
		look = history.GlanceTail(row, tail, len(tail) < n)
	}
	return look == history.LookNone
}

// settle treats a run that was repaired and parked as its policy says. After a
// crash in between it is still parked, and the next Recover comes here.
func (rp *repairs) settle(ctx context.Context, row *store.Run, rep *Report) {
	switch policyFor(row, rp.o.Program.OnBoot(row.Workflow, row.Version)) {
	case Fail:
		if rp.o.fail(ctx, row, CodeRestarted, rp.o.BootReason, rep) {
			rep.Failed = append(rep.Failed, row.ID)
			rp.o.Log.AboutRun(slog.LevelInfo, row, "durable: run marked failed", slog.String("reason", rp.o.BootReason))
		}
	case Leave:
		if !slices.Contains(rep.Left, row.ID) { // the same Recover may have repaired it
			rep.Left = append(rep.Left, row.ID)
		}
	default:
		rep.parked(row)
	}
}
