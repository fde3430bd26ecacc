package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// An Operator inspects, repairs and moves the runs of a store. It works through an
// engine and uses its keys, codecs and code. It holds no state of its own, and its
// methods may be called concurrently.
type Operator struct {
	eng    *durable.Engine
	desk   desk.Engine
	store  store.Store
	sealer *payload.Sealer
}

// On returns the operator of an open engine. It needs no closing.
func On(eng *durable.Engine) *Operator {
	d := desk.Of(eng)
	return &Operator{eng: eng, desk: d, store: d.Store(), sealer: d.Sealer()}
}

// A view is the state of a run that an operator acts on.
type view struct {
	*history.View
	op *Operator
}

// view reads a run. If its history cannot be read, unreadable says why, and the row is
// still valid.
func (op *Operator) view(ctx context.Context, id string) (v *view, unreadable, err error) {
	if err := op.desk.OutsideFunction(ctx, "a call of the Operator for run "+id); err != nil {
		return nil, nil, err
	}
	found, unreadable, err := op.desk.View(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return &view{View: found, op: op}, unreadable, nil
}

// imported returns an error for a run whose import has not finished: it takes no act, and a plan
// for what is there of it would be wrong.
func (v *view) imported() error {
	if v.Row.Code != durable.CodeImporting {
		return nil
	}
	return &durable.NotResumableError{RunID: v.Row.ID, Status: v.Row.Status, Reason: v.Row.Reason}
}

// storeError returns a store error in the form callers know: an error that is not an
// answer of the store matches ErrUnavailable.
func storeError(err error) error { return commit.StoreError(err) }

// damaged returns err in the form callers know: a history that cannot be trusted is a
// DamagedError.
func damaged(err error) error {
	if d := (*history.Damage)(nil); errors.As(err, &d) {
		return (*durable.DamagedError)(d)
	}
	return err
}

// heldByOther explains an error that says that another run holds a key which the run
// needs: an exclusive one, or its deduplication key. meaning says what has not happened to
// the run, and what to do. nil: err says something else.
func heldByOther(row *store.Run, meaning string, err error) error {
	var exists *store.ExistsError
	if row.Dedup != "" && errors.As(err, &exists) && exists.RunID != row.ID {
		return fmt.Errorf("durable: run %s %s: its deduplication key %q is held by run %s: %w", row.ID, meaning, row.Dedup, exists.RunID,
			&store.OccupiedError{RunID: row.ID, Key: row.Dedup, Holder: exists.RunID})
	}
	if errors.Is(err, store.ErrOccupied) {
		return commit.Occupied(meaning, err)
	}
	return nil
}
