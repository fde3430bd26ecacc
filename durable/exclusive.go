package durable

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// maxExclusive bounds the exclusive keys of one run.
const maxExclusive = 64

// Exclusive makes the run the only one that holds these keys, names of things
// that two runs must not work on at once: "worktree:/src/app". All of them are
// taken in the act that records the start, or none: when another run holds one,
// Start returns an error that matches ErrOccupied, with a *store.OccupiedError
// that names the key and that run, and there is no new run. Nobody waits for a
// key.
//
// The keys are held while the run is interrupted or waits, and freed in the act
// that ends it: completed, failed or cancelled. Resume of a failed run takes them
// again. Starting a run that exists finds it, whoever holds the keys by now.
//
// A key has 1 to 1,024 bytes of UTF-8 without control characters; a run has at
// most 64. Several Exclusive options add up.
func Exclusive(keys ...string) StartOption {
	return func(o *startOptions) {
		for _, key := range keys {
			if err := store.CheckHold(key); err != nil {
				o.refuse(err)
				return
			}
		}
		o.exclusive = append(o.exclusive, keys...)
	}
}

// checkExclusive checks the keys together. Their order is the same for every
// run, so that two that want the same keys meet at the first.
func (o *startOptions) checkExclusive() error {
	slices.Sort(o.exclusive)
	o.exclusive = slices.Compact(o.exclusive)
	if n := len(o.exclusive); n > maxExclusive {
		return fmt.Errorf("%d exclusive keys; a run has at most %d: %w", n, maxExclusive, ErrInvalid)
	}
	return nil
}

// KeysToTake returns the exclusive keys that a run must take again when it is
// resumed: those it was started with, if it has failed and so freed them.
func (d operators) KeysToTake(ctx context.Context, row *store.Run) ([]string, error) {
	if row.Status != store.Failed && row.Status != store.Cancelled {
		return nil, nil
	}
	h, err := d.eng.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return nil, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	born, err := birthOf(h)
	return born.Exclusive, err
}
