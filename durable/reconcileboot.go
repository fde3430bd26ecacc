package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// reconcileOnBoot looks, as closely as history.Glance says, whether a run that recovery
// has met is consistent, and repairs it. It returns the row to go on with, nil
// when the run has been dealt with; an error says that the store could not be
// read.
func (rc *recovery) reconcileOnBoot(ctx context.Context, row *store.Run, rep *Report) (*store.Run, error) {
	e := rc.eng
	def := e.program.defs.find(row.Workflow, row.Version)
	if e.options.NoReconcileOnBoot || row.Code == CodeImporting || e.program.defs.byName[row.Workflow] == nil || e.roster.active(row.ID) != nil {
		return row, nil // whoever has its code looks
	}
	if def != nil {
		if rc.looksSound(ctx, row, def.steps) {
			return row, nil
		}
	}
	rec, err := e.RecoverRun(ctx, row.ID)
	var hopeless *UnrecoverableError
	switch {
	case errors.As(err, &hopeless) && hopeless.Code == CodeE2:
		return row, nil // reported as one that nobody here can execute
	case hopeless != nil:
		rep.Stuck = append(rep.Stuck, stuckOf(row, CodeUnrecoverable, fmt.Sprintf("%s: %s", hopeless.Reason, hopeless.Message)))
		return nil, nil
	case unjudged(err):
		return row, nil
	case err != nil:
		// Whoever executes it tries on until it can be read; a replay makes of a
		// torn run what is right, if not with a word about it.
		e.log.AboutRun(slog.LevelWarn, row, "durable: a run could not be compared with its events", slog.Any("error", err))
		return row, nil
	case !rec.Needed:
		return row, nil
	}
	rep.Repaired = append(rep.Repaired, rec)
	h, err := e.store.Load(ctx, row.ID, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	if err != nil {
		return nil, fmt.Errorf("durable: recovery could not read run %s: %w", row.ID, storeError(err))
	}
	if h.Run.Code == CodeRecovered {
		rc.settleRecovered(ctx, &h.Run, rep)
		return nil, nil
	}
	return &h.Run, nil
}

// looksSound reports whether a look at the row, or at the end of the log, shows
// that the run is consistent.
func (rc *recovery) looksSound(ctx context.Context, row *store.Run, declared []string) bool {
	// A wait that is declared counts as no step, by which history.Glance would tell A3.
	if last := row.Last; len(declared) > 0 && last != nil && last.Type == store.SignalReceived && last.Key == history.EscapeName(declared[len(declared)-1]) {
		return false
	}
	look := history.Glance(row, len(declared))
	for n := history.ShortTail; look == history.LookTail && n <= history.LongTail; n = 16 * n {
		h, err := rc.eng.store.Load(ctx, row.ID, store.Cursor{Tail: n, AfterMessage: math.MaxInt64})
		if err != nil {
			return errors.Is(err, store.ErrNotFound)
		}
		var tail []store.Event
		for ev, err := range h.Events {
			if err != nil {
				return true // damaged: its execution finds that, and says so
			}
			tail = append(tail, ev)
		}
		look = history.GlanceTail(row, tail, len(tail) < n)
	}
	return look == history.LookNone
}

// settleRecovered does with a run that was repaired and parked what its policy
// says. A crash in between leaves it parked, and the next Recover comes here.
func (rc *recovery) settleRecovered(ctx context.Context, row *store.Run, rep *Report) {
	e := rc.eng
	switch e.recovery.bootPolicy(e.program.defs.find(row.Workflow, row.Version)) {
	case FailOnBoot:
		if rc.failOrphan(ctx, row, CodeRestarted, e.options.BootReason, rep) {
			rep.Failed = append(rep.Failed, row.ID)
			e.log.AboutRun(slog.LevelInfo, row, "durable: run marked failed", slog.String("reason", e.options.BootReason))
		}
	case LeaveOnBoot:
		if !slices.Contains(rep.Left, row.ID) { // the same Recover may have repaired it
			rep.Left = append(rep.Left, row.ID)
		}
	default:
		rep.Stuck = append(rep.Stuck, stuckOf(row, row.Code, row.Reason))
	}
}

// reconcileWaiting looks at the runs that wait and that nobody alive owns. One
// that is consistent costs its place in a listing, unless the log ends with
// something else than the beginning of a wait.
func (rc *recovery) reconcileWaiting(ctx context.Context, rep *Report) error {
	e := rc.eng
	if e.options.NoReconcileOnBoot {
		return nil
	}
	live, err := e.recovery.liveExecutors(ctx)
	if err != nil {
		return err
	}
	parents := unheardLook{eng: e, found: func(row *store.Run, lost *unheard) { rep.Stuck = append(rep.Stuck, lost.stuck(row)) }}
	f := store.Filter{Statuses: []store.Status{store.Waiting}, OldestFirst: true, WithLast: true}
	for row, err := range e.runsOf(ctx, f) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list waiting runs: %w", storeError(err))
		}
		if live[row.Owner] {
			continue
		}
		if _, err := rc.reconcileOnBoot(ctx, row, rep); err != nil {
			return err
		}
		if err := parents.add(ctx, row); err != nil {
			return fmt.Errorf("durable: recovery could not look for the children of waiting runs: %w", storeError(err))
		}
	}
	if err := parents.flush(ctx); err != nil {
		return fmt.Errorf("durable: recovery could not look for the children of waiting runs: %w", storeError(err))
	}
	return nil
}
