package durable

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Adopt executes here a run that waits, is pending, or was stopped gracefully,
// and that no live executor has: what Recover would do in time with all of them,
// for one, at once, and without Recover having been called. So a program that a
// person runs for one run's sake (a command line) executes that one and no other.
// It is no Resume: a run that was parked, that has failed, or whose process died
// while it was executed is left to that.
//
// Children that it waits for, and that nobody executes either, are taken up with it, by
// the rules of Recover.
//
// The run is this executor's, durably, when Adopt returns, and goes on in the
// background. Adopting a run that is executed here already does nothing.
//
// Errors: ErrNotFound; ErrNotRegistered when this engine lacks the code of its
// workflow or version; *NotResumableError for a run in any other status, for a
// paused or parked one, and for one that another live executor has. After any of
// them nothing has changed.
func (e *Engine) Adopt(ctx context.Context, id string) error {
	if e.roster.isClosing() {
		return ErrClosed
	}
	if r, dormant := e.roster.find(id); r != nil || dormant {
		return nil
	}
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, storeError(err))
	}
	row := &h.Run
	no := &NotResumableError{RunID: id, Status: row.Status}
	switch {
	case row.Paused:
		no.Paused, no.Reason = true, itIsPaused
		return no
	case !slices.Contains([]store.Status{store.Pending, store.Waiting, store.Interrupted}, row.Status):
		return no
	case row.Status == store.Interrupted && row.Code != "":
		no.Reason = row.Reason
		return no
	case e.program.defs.find(row.Workflow, row.Version) == nil:
		return fmt.Errorf("durable: adopting run %s: %w: %s", id, ErrNotRegistered, e.program.defs.notServed(row))
	}
	runs, err := e.claims.claimIDs(ctx, []string{id}, &history.Claim{Executor: e.id})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, storeError(err))
	}
	if len(runs) > 0 {
		return nil
	}
	h, err = e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, storeError(err))
	}
	if no.Status = h.Run.Status; h.Run.Owner != "" {
		no.Reason = "already in progress on executor " + h.Run.Owner
	}
	return no
}

// takeUpChild executes here a child that a run of this engine waits for, if nobody has
// it. Where Recover was called that happens by itself; without it the parent would wait
// for ever.
func (cl *claims) takeUpChild(row *store.Run) {
	if cl.recovered.Load() || row.Paused || cl.eng.program.defs.find(row.Workflow, row.Version) == nil {
		return
	}
	if r, dormant := cl.eng.roster.find(row.ID); r != nil || dormant {
		return
	}
	cl.eng.roster.background(func() {
		ctx := cl.eng.life.loops
		var err error
		switch row.Status {
		case store.Pending, store.Waiting:
			_, err = cl.claimIDs(ctx, []string{row.ID}, &history.Claim{Executor: cl.eng.id})
		case store.Interrupted:
			if row.Code == "" {
				_, err = cl.claimIDs(ctx, []string{row.ID}, &history.Claim{Executor: cl.eng.id})
			}
		case store.Running, store.Resuming:
			var live bool
			if live, err = cl.hasLiveOwner(ctx, row); err == nil && !live {
				err = cl.eng.recovery.recoverOne(ctx, row)
			}
		}
		if err != nil && ctx.Err() == nil {
			cl.eng.log.AboutRun(slog.LevelWarn, row, "durable: a child that nobody executes could not be taken up", slog.Any("error", err))
		}
	})
}

// recoverOne does with a run whose process is gone what Recover does with all of them.
func (rc *recovery) recoverOne(ctx context.Context, row *store.Run) error {
	var rep Report
	var resume toContinue
	var try []string
	if err := rc.recoverOrphan(ctx, row, &judge{eng: rc.eng}, &rep, &resume, &try); err != nil {
		return err
	}
	rc.eng.claims.continueAll(ctx, &resume, &rep)
	rc.trials.hold(try)
	return nil
}

const itIsPaused = "it is paused"

// hasLiveOwner reports whether a live executor has the run.
func (cl *claims) hasLiveOwner(ctx context.Context, row *store.Run) (bool, error) {
	if row.Owner == "" {
		return false, nil
	}
	executors, err := cl.eng.store.Executors(ctx)
	if err != nil {
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && x.ID == row.Owner }), nil
}
