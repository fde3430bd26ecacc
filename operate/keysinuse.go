package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// KeyUse says how much of a store is encrypted with one key.
type KeyUse struct {
	// KeyID as Keys has it; empty: what is stored in clear.
	KeyID string
	// Runs that hold payloads under this key, and how many of them have not
	// ended and need it to go on.
	Runs, Unfinished int
	// Payloads of events and messages, on all branches and in all generations.
	Payloads int
}

// KeysInUse reads the runs that match and says with which keys their payloads
// are encrypted, sorted by id. No recorded payload is ever encrypted anew, so a
// key that was rotated out stays needed until the last run that has used it is
// deleted (Clean): it may be taken out of Options.Encrypt once it is in no KeyUse
// of a call with an empty filter, and no engine has it as its current key any more.
//
// It needs no key, since it decrypts nothing; it changes nothing; and it reads
// every payload, which takes as long as VerifyAll. Payloads that are damaged
// beyond telling are not counted: Verify tells of them. A run that is deleted
// meanwhile is passed over. The error is about the reading.
func (op *Operator) KeysInUse(ctx context.Context, f store.Filter) ([]KeyUse, error) {
	use := map[string]*KeyUse{}
	for row, err := range op.desk.Runs(ctx, f) {
		if err != nil {
			return nil, fmt.Errorf("durable: looking for keys: listing runs: %w", storeError(err))
		}
		counts, err := op.keysOf(ctx, row.ID)
		if err != nil {
			return nil, fmt.Errorf("durable: looking for keys: run %s: %w", row.ID, storeError(err))
		}
		for id, n := range counts {
			if use[id] == nil {
				use[id] = &KeyUse{KeyID: id}
			}
			use[id].Runs++
			use[id].Payloads += n
			if !row.Status.Terminal() {
				use[id].Unfinished++
			}
		}
	}
	list := make([]KeyUse, 0, len(use))
	for _, u := range use {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b KeyUse) int { return cmp.Compare(a.KeyID, b.KeyID) })
	return list, nil
}

// keysOf counts the payloads of a run by the id of their key.
func (op *Operator) keysOf(ctx context.Context, id string) (map[string]int, error) {
	counts := map[string]int{}
	h, err := op.store.Load(ctx, id, store.Cursor{All: true})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) {
		return counts, nil
	}
	if err != nil {
		return nil, err
	}
	look := func(payload []byte) {
		if len(payload) == 0 {
			return
		}
		if env, err := envelope.Open(payload); err == nil {
			counts[env.KeyID]++
		}
	}
	for i := range h.Inbox {
		look(h.Inbox[i].Payload)
	}
	for ev, err := range h.Events {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			return counts, nil
		case err != nil:
			return nil, err
		}
		look(ev.Payload)
	}
	return counts, nil
}
