package durable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// InTx makes a start, a signal or a cancel part of the program's own transaction on the store's
// database: it happens if tx commits, and leaves nothing behind if tx is rolled back.
// It is an option of Start, of Signal and of Engine.Cancel.
//
//	tx, err := db.BeginTxx(ctx, nil)
//	...
//	_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, total) VALUES ($1, $2)`, o.ID, o.Total)
//	_, err = checkout.Start(ctx, o.ID, o, durable.InTx(tx))
//	err = tx.Commit()
//
// The run is only enqueued: an engine that serves its workflow, this one or another,
// executes it once the transaction has committed. Until then Wait does not find it.
//
// After an error tx must be rolled back. It matches ErrNoTransactions if the store cannot take part
// in transactions, and ErrInvalid if tx is on another database.
//
// In SQLite, begin the transaction with _txlock=immediate, and end it soon: until
// then nobody else writes.
func InTx[X *sqlx.Tx | *sql.Tx](tx X) func(*startOptions) {
	return func(o *startOptions) {
		if tx == nil {
			o.refuse(fmt.Errorf("InTx was given a nil transaction: %w", ErrInvalid))
			return
		}
		o.tx = any(tx)
	}
}

// commitIn carries out a change in the program's transaction.
func commitIn(ctx context.Context, e *Engine, tx any, c store.Change) error {
	can := store.CapabilitiesOf(e.store).TxCommitter
	if can == nil {
		return ErrNoTransactions
	}
	if e.roster.isClosing() {
		return ErrClosed
	}
	defer asksIn(ctx)()
	err := can.CommitIn(ctx, tx, c)
	if errors.Is(err, store.ErrUnsupported) {
		return ErrNoTransactions
	}
	return storeError(err)
}

// startIn starts a run in the program's transaction.
func (o *startOptions) startIn(ctx context.Context, e *Engine, def *definition, id string, input []byte) (string, error) {
	if o.begin != nil {
		return id, fmt.Errorf("durable: starting run %s: FromExport cannot be part of a transaction: %w", id, ErrInvalid)
	}
	if id == AutoID {
		id = generateID(def.name, e.now().Time(), 3) // long, because it is not tried again
	}
	if err := checkRunID(id); err != nil {
		return id, err
	}
	row, created, _, span, _ := e.newborn(ctx, def, id, input, o)
	defer span.End()
	created.At = row.CreatedAt
	new(commit.Head).Append(id, &created)
	start := store.Change{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: []store.Event{created}, Hold: o.exclusive}
	err := commitIn(ctx, e, o.tx, store.Change{Start: []store.Change{start}, Send: e.mailroom.mailTo(id, o.mail)})
	var status *store.StatusError
	switch {
	case errors.As(err, &status):
		return id, &NotRunningError{RunID: id, Status: status.Status}
	case o.heldBy(err, id, def.name) != err:
		return id, o.heldBy(err, id, def.name)
	case errors.Is(err, store.ErrExists):
		return id, conflictOf(ctx, e, def, id)
	case err != nil:
		return id, fmt.Errorf("durable: starting run %s in a transaction: %w", id, commit.Occupied("was not started; start it again once that run has ended", err))
	}
	e.claims.Expect(&row, id)
	return id, nil
}

// conflictOf says which run has the id of one that was to be started.
func conflictOf(ctx context.Context, e *Engine, def *definition, id string) error {
	c := &ConflictError{RunID: id, Want: def.name}
	if h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true}); err == nil {
		c.Have, c.SameFlow = h.Run.Workflow, h.Run.Workflow == def.name
	}
	return c
}

// sendIn sends a message in the program's transaction.
func (mr *mailroom) sendIn(ctx context.Context, tx any, m store.Message) error {
	if err := store.CheckRunID(m.To); err != nil {
		return err
	}
	if m.ID == "" {
		m.ID = newExecutorID()
	}
	mr.seal(&m)
	err := commitIn(ctx, mr.eng, tx, store.Change{Send: []store.Message{m}})
	var status *store.StatusError
	if errors.As(err, &status) {
		return &NotRunningError{RunID: m.To, Status: status.Status}
	}
	if err != nil {
		return fmt.Errorf("durable: sending %s %q to run %s in a transaction: %w", m.Kind, m.Name, m.To, err)
	}
	return nil
}

// signalOptions applies the options of a signal to its message, and returns the
// transaction that it belongs to, nil if there is none.
func signalOptions(m *store.Message, list []SignalOption) (tx any, err error) {
	var o startOptions
	if err := guard.Options(&o, list); err != nil {
		return nil, fmt.Errorf("durable: signal %q: %w", m.Name, err)
	}
	m.ID = o.signalID
	if o.err != nil {
		return nil, o.err
	}
	return o.tx, checkSignalID(m.ID)
}

// errInTransaction returns why a call that writes to the store by itself is refused in the
// body of a transactional step; nil elsewhere.
func errInTransaction(ctx context.Context) error {
	a, ok := inBody(ctx)
	if !ok || a.step.tx == nil {
		return nil
	}
	return a.step.call.scope.run.misused(fmt.Errorf("%w: the body of %s runs in a transaction, and a write beside it would wait for its end, or remain if it is rolled back. Use durable.InTx(tx) with Start, Signal and Cancel, or make the call after the step", ErrNested, a.step.call.key))
}

// asksIn is bodies.asks for a call that may have been made in the body of a step.
func asksIn(ctx context.Context) (over func()) {
	if a, ok := inBody(ctx); ok {
		return a.step.call.scope.run.bodies.asks()
	}
	return func() {}
}
