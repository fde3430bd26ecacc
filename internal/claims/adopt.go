package claims

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Refusal is the error that says why a run was not adopted.
type Refusal struct {
	RunID  string
	Status store.Status
	Reason string
	Paused bool
}

func (r *Refusal) Error() string { return fmt.Sprintf("run %s (%s): %s", r.RunID, r.Status, r.Reason) }

// Adopt executes here a run that waits, is pending, or was stopped gracefully, and that no
// live executor has. For any other run, and for one that may not begin yet, the error is a
// *Refusal, and if its code is not here, ErrNotRegistered.
func (rc *Recovery) Adopt(ctx context.Context, id string) error {
	if rc.o.Runs.Closing() {
		return commit.ErrClosed
	}
	if rc.o.Runs.Here(id) {
		return nil
	}
	h, err := rc.o.Store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, commit.StoreError(err))
	}
	row := &h.Run
	no := &Refusal{RunID: id, Status: row.Status}
	switch {
	case row.Paused:
		no.Paused, no.Reason = true, "it is paused"
		return no
	case !slices.Contains([]store.Status{store.Pending, store.Waiting, store.Interrupted}, row.Status):
		return no
	case row.Status == store.Interrupted && row.Code != "":
		no.Reason = row.Reason
		return no
	case !rc.o.Program.Has(row.Workflow, row.Version):
		return fmt.Errorf("%w: run %s is not adopted: %s", ErrNotRegistered, id, rc.o.Program.NotServed(row))
	case row.Status == store.Pending && row.WakeAt > rc.claims.surely():
		no.Reason = fmt.Sprintf("it may begin at %s by the store's clock, and not before", row.WakeAt.Time().UTC().Format(time.RFC3339Nano))
		return no
	}
	if claimed, err := rc.claims.Claim(ctx, id, &history.Claim{}, nil); err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, commit.StoreError(err))
	} else if claimed {
		return nil
	}
	h, err = rc.o.Store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, commit.StoreError(err))
	}
	no.Status = h.Run.Status
	switch {
	case h.Run.Owner != "":
		no.Reason = "already in progress on executor " + h.Run.Owner
	case h.Run.NeedsPlace():
		no.Reason = fmt.Sprintf("it is in line for a place in queue %q", h.Run.Queue)
	}
	return no
}

// TakeUpChild executes here a child that a run of this engine waits for, if no executor has
// it. After Recover that happens by itself; without Recover the parent would wait for
// ever. A child that is in line for a place in a queue keeps its turn, and one that is delayed begins when it may.
func (rc *Recovery) TakeUpChild(row *store.Run) {
	if rc.claims.Recovered() || row.Paused || row.NeedsPlace() || !rc.o.Program.Has(row.Workflow, row.Version) || rc.o.Runs.Here(row.ID) {
		return
	}
	rc.o.Runs.Background(func(ctx context.Context) {
		if err := rc.takeUpChild(ctx, row); err != nil && ctx.Err() == nil {
			rc.o.Log.AboutRun(slog.LevelWarn, row, "durable: a child that nobody executes could not be taken up", slog.Any("error", err))
		}
	})
}

func (rc *Recovery) takeUpChild(ctx context.Context, row *store.Run) error {
	switch row.Status {
	case store.Interrupted:
		if row.Code != "" {
			return nil
		}
		fallthrough
	case store.Pending, store.Waiting:
		if row.Status == store.Pending && !rc.awaitBegin(ctx, row) {
			return nil
		}
		_, err := rc.claims.Claim(ctx, row.ID, &history.Claim{}, nil)
		return err
	case store.Running, store.Resuming:
		if live, err := rc.o.hasLiveOwner(ctx, row); err != nil || live {
			return err
		}
		return rc.orphanPass(&Report{}).one(ctx, row)
	}
	return nil
}

// awaitBegin waits until a run that is delayed may begin, by the store's clock: a claim by its id asks for no time. It
// returns false if somebody waits for that already, or when ctx ends.
func (rc *Recovery) awaitBegin(ctx context.Context, row *store.Run) bool {
	if _, awaited := rc.awaited.LoadOrStore(row.ID, true); awaited {
		return false
	}
	defer rc.awaited.Delete(row.ID)
	for ctx.Err() == nil {
		leapt, wait := rc.o.Heart.Clock.Leap(), row.WakeAt.Sub(rc.claims.surely())
		if wait <= 0 {
			return true
		}
		until, end := context.WithTimeout(leapt, max(wait, time.Millisecond)) // its clock may be known less exactly
		select {
		case <-until.Done():
		case <-ctx.Done():
		}
		end()
	}
	return false
}

// HasLiveOwner reports whether a live executor has the run.
func (rc *Recovery) HasLiveOwner(ctx context.Context, row *store.Run) (bool, error) {
	return rc.o.hasLiveOwner(ctx, row)
}
