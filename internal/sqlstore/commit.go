package sqlstore

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// Screen checks what can be checked without the database: each Change on its
// own, and that no run appears twice (S2). The result has one entry per Change;
// ok says that all are nil.
func Screen(batch []store.Change, l store.Limits) (errs []error, ok bool) {
	errs = make([]error, len(batch))
	ok = true
	var seen map[string]struct{}
	if len(batch) > 1 {
		seen = make(map[string]struct{}, len(batch))
	}
	for i := range batch {
		c := &batch[i]
		if errs[i] = c.Validate(l); errs[i] != nil {
			ok = false
		}
		if seen == nil || c.RunID == "" {
			continue
		}
		if _, twice := seen[c.RunID]; twice && errs[i] == nil {
			errs[i] = fmt.Errorf("store: run %q appears twice in one batch: %w", c.RunID, store.ErrInvalid)
			ok = false
		}
		seen[c.RunID] = struct{}{}
	}
	return errs, ok
}

// RowSets returns everything a Change assigns to its run's row: the patch, what
// Yield and TakeEpoch imply, and the time of the update. Empty when c leaves
// the row alone.
func RowSets(c *store.Change, now store.Time) []Assignment {
	sets := Patch(c.Row)
	if c.Yield || c.Expect.TakeEpoch {
		sets = append(sets, Assignment{"owner", ""}, Assignment{"epoch", c.RowEpoch()})
	}
	if len(sets) == 0 {
		return nil
	}
	return append(sets, Assignment{"updated_at", int64(now)})
}

// FencedAt returns the ErrFenced of c, for when the event before its first one
// does not exist, belongs to another owner, or already has a successor.
func FencedAt(c *store.Change) error {
	return fmt.Errorf("store: run %q: event %d cannot be appended with epoch %d: %w", c.RunID, c.Events[0].Seq, c.Expect.Epoch, store.ErrFenced)
}

// NotFound returns ErrNotFound for a run.
func NotFound(run string) error { return &store.NotFoundError{RunID: run} }

// Bisect carries out a batch with run, which either returns one error per
// Change, or an error for the whole batch, after which nothing of it is
// written. In the second case, as long as splits says that one member may have
// caused the error, Bisect tries the halves separately, down to single Changes,
// so that a failed Change does not affect the others (S2).
func Bisect(batch []*store.Change, run func([]*store.Change) ([]error, error), splits func(error) bool) []error {
	errs, err := run(batch)
	if err == nil {
		return errs
	}
	if len(batch) <= 1 || !splits(err) {
		errs = make([]error, len(batch))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	half := len(batch) / 2
	return append(Bisect(batch[:half], run, splits), Bisect(batch[half:], run, splits)...)
}

// Blameless reports whether err is not one of the contract's answers, so that
// the same Change may succeed when it is sent again.
func Blameless(err error) bool {
	for _, e := range []error{
		store.ErrClosed, store.ErrInvalid, store.ErrNotFound, store.ErrExists, store.ErrFenced, store.ErrStatus, store.ErrOwned,
		store.ErrOccupied, store.ErrCancelAsked, store.ErrTooLarge, store.ErrRevision,
	} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}
