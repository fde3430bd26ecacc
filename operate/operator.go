package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// An Operator looks at the runs of a store, mends them and carries them elsewhere. It
// does so through an engine, whose keys, codecs and code it has. It holds nothing of its
// own, and its methods may be called at the same time.
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

// A view is a run as an operator finds it.
type view struct {
	*history.View
	op *Operator
}

// view reads a run. When its history cannot be read, unreadable says why, and
// the row is valid all the same.
func (op *Operator) view(ctx context.Context, id string) (v *view, unreadable, err error) {
	found, unreadable, err := op.desk.View(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return &view{View: found, op: op}, unreadable, nil
}

// storeError returns an error of the store as callers know it: what is no answer of it
// matches ErrUnavailable.
func storeError(err error) error {
	if err == nil || desk.Answered(err) {
		return err
	}
	return fmt.Errorf("%w: %w", durable.ErrUnavailable, err)
}

// damaged returns err as callers know it: a history that cannot be believed is a
// DamagedError.
func damaged(err error) error {
	if d := (*history.Damage)(nil); errors.As(err, &d) {
		return (*durable.DamagedError)(d)
	}
	return err
}
