package durable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrNoTransactions: the store has no transactions that a step could share, as the one
// in memory. Use store/sqlite or store/postgres, or Step with an IdempotencyKey.
var ErrNoTransactions = errors.New("durable: this store has no transactions for steps: open the engine on store/sqlite or store/postgres, or use Step with durable.IdempotencyKey")

// Transact is Step with a transaction on the store's own database, in which fn keeps
// its effect: what fn writes through tx and the outcome of the step become durable
// together, or neither does. So the effect happens exactly once, wherever the process
// dies and also when the answer to COMMIT is lost. tx is a *sqlx.Tx or a *sql.Tx, as
// fn declares it.
//
//	balance, err := durable.Transact(ctx, "withdraw", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
//		var left int
//		err := tx.GetContext(ctx, &left, `UPDATE accounts SET balance = balance - $1 WHERE id = $2 RETURNING balance`, amount, from)
//		return left, err
//	})
//
// If fn returns an error or panics, its writes are rolled back, and the error is
// recorded as that of a Step. It may run more than once: if the database
// reports a conflict with another transaction (SQLSTATE 40001, 40P01, SQLITE_BUSY), or
// if the connection is lost, everything is rolled back and fn runs again, in a new
// transaction, without counting as an attempt, up to a hundred times in a row. So fn must keep its effects within tx.
//
// fn must not commit or roll back, must not use tx after it has returned, and makes no
// durable calls; Start, Signal and Cancel need InTx(tx). In SQLite nobody else writes while fn
// runs, so keep it short: it is logged when it takes longer than five seconds.
//
// Relaxed is refused. Errors beside those of Step: ErrNoTransactions.
func Transact[T any, X *sqlx.Tx | *sql.Tx](ctx context.Context, name string, fn func(ctx context.Context, tx X) (T, error), o ...StepOption) (T, error) {
	return transact(ctx, name, once, fn, o)
}

// RetryTransact is Transact that is tried again as p says, each time in a new
// transaction, like Retry.
//
// Errors are those of Transact and of Retry.
func RetryTransact[T any, X *sqlx.Tx | *sql.Tx](ctx context.Context, name string, p Policy, fn func(ctx context.Context, tx X) (T, error), o ...StepOption) (T, error) {
	return transact(ctx, name, &p, fn, o)
}

func transact[T any, X *sqlx.Tx | *sql.Tx](ctx context.Context, name string, p *Policy, fn func(context.Context, X) (T, error), o []StepOption) (T, error) {
	var body func(context.Context) (T, error)
	if fn != nil {
		body = func(ctx context.Context) (T, error) {
			var none T
			a, _ := inBody(ctx)
			handle, err := a.step.tx.begin(ctx)
			if err != nil {
				return none, err
			}
			if x, ok := handle.(X); ok {
				v, err := fn(ctx, x)
				return v, a.step.tx.explain(err)
			}
			// A *sqlx.Tx contains the other.
			if outer, ok := handle.(*sqlx.Tx); ok && outer != nil {
				if x, ok := any(outer.Tx).(X); ok {
					v, err := fn(ctx, x)
					return v, a.step.tx.explain(err)
				}
			}
			var wanted X
			return none, Permanent(fmt.Errorf("%w: step %s wants a %T and the store has a %T", ErrInvalid, a.step.call.key, wanted, handle))
		}
	}
	return perform(ctx, name, p, body, nil, append(o[:len(o):len(o)], func(o *stepOptions) { o.transact = true }))
}

// transaction is the transaction of a step's attempt.
type transaction struct {
	step *step
	tx   store.Tx     // nil: none is open
	hold *commit.Hold // of the log; nil: others of the run's goroutines write to it
	long *time.Timer
	// again: the attempt came to nothing for a reason that is not its own, and is made again.
	again bool
	vain  int       // how often in a row
	since time.Time // when the first of these began
	begun bool      // the last one had begun
	said  bool
	alone bool // it begins when nothing of the run is in flight, because its outcome could not get past that before
}

// maxVain is how often in a row a transaction that could begin may come to nothing. More
// often it is the body: one that ends its own connection, for example.
const maxVain = 100

// A step that holds the database longer than this is logged.
const longTransaction = 5 * time.Second

// begin opens the transaction for the user's statements.
func (t *transaction) begin(ctx context.Context) (handle any, err error) {
	if t.vain == 0 {
		t.since = time.Now()
	}
	r := t.step.call.scope.run
	defer r.bodies.asks()()
	can := store.CapabilitiesOf(r.eng.store).Transactor
	if can == nil {
		return nil, Permanent(ErrNoTransactions)
	}
	if can.OneWriter() || t.alone {
		// What the run has in flight could not be written any more, and the outcome
		// would wait for it.
		if t.hold, err = r.eng.committer.Hold(ctx, &r.log); err != nil {
			return nil, err
		}
	} else if err := r.flush(); err != nil {
		return nil, err
	}
	t.begun = false
	if t.tx, err = can.BeginTx(ctx); err != nil {
		t.tx = nil
		t.release()
		switch {
		case errors.Is(err, store.ErrUnsupported):
			return nil, Permanent(ErrNoTransactions)
		case errors.Is(err, store.ErrClosed), ctx.Err() == nil && !definite(err):
			t.again = true // the database cannot be reached: the step waits for it, like any write
		case definite(err) && !ofContent(err):
			return nil, t.step.mustRecord(err)
		}
		return nil, err
	}
	if err := t.mayRun(ctx); err != nil {
		_ = t.tx.Rollback() // of nothing
		t.tx = nil
		t.release()
		return nil, err
	}
	t.begun = true
	t.long = time.AfterFunc(longTransaction, func() {
		r.logLine(slog.LevelWarn, "durable: a transactional step holds its transaction for long; others wait for the rows it has written, and with SQLite every writer does", slog.String("step", t.step.call.key), slog.Int64("after_ms", longTransaction.Milliseconds()))
	})
	return t.tx.Handle(), nil
}

// mayRun returns why the body must not run although it has a transaction: the store may have taken its
// time, after the attempt was allowed to begin.
func (t *transaction) mayRun(ctx context.Context) error {
	r := t.step.call.scope.run
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !r.eng.heart.Lease.Holds(time.Now()) {
		t.again = true
		return ErrLeaseExpired
	}
	err := t.step.barred()
	t.again = err != nil // a pause is no outcome: it is found again before a body begins
	return err
}

// isOpen reports whether the body had a transaction, with which the outcome is committed. What
// a test puts in the place of the body needs none.
func (t *transaction) isOpen() bool { return t != nil && t.tx != nil }

// explain returns the error of the user's function in words that say what it did.
func (t *transaction) explain(err error) error {
	if e, ok := t.tx.(store.TxExplainer); ok && err != nil {
		return e.Explain(err)
	}
	return err
}

// undo rolls back what is open. err is why.
func (t *transaction) undo(err error) {
	if t == nil || t.tx == nil {
		return
	}
	t.again = err != nil && t.tx.Again(err)
	r := t.step.call.scope.run
	defer r.bodies.asks()()
	if err := t.tx.Rollback(); err != nil {
		r.logLine(slog.LevelWarn, "durable: a transaction could not be rolled back; the database does so itself", slog.String("step", t.step.call.key), slog.Any("error", err))
	}
	t.tx = nil
	t.release()
}

// release ends what goes with a transaction that is no longer open.
func (t *transaction) release() {
	if t.long != nil {
		t.long.Stop()
	}
	if t.hold != nil {
		t.hold.Release()
		t.hold = nil
	}
}

// A vainError says that a transaction was not committed, and what became of its step is
// not recorded.
type vainError struct{ err error }

func (e *vainError) Error() string { return e.err.Error() }
func (e *vainError) Unwrap() error { return e.err }

// failure returns why the transaction of the attempt was not committed; nil: it was, or the
// run is over.
func (t *transaction) failure(err error) error {
	if v, ok := err.(*vainError); ok && t != nil {
		return v.err
	}
	return nil
}

// commit records the outcome of the step in its transaction and commits it.
func (t *transaction) commit(w *commit.Write, rival store.Event) error {
	r := t.step.call.scope.run
	if r.rehearsal != nil {
		return r.rehearsal.frontier()
	}
	r.sealEvents(w.Events, r.row.Branch)
	if t.hold == nil { // Not for ever: what is in flight may wait for a row that this transaction has locked.
		ctx, cancel := context.WithTimeoutCause(context.Background(), min(holdFirst<<min(t.vain, 6), holdMost), errHeldUp)
		hold, err := r.eng.committer.Hold(ctx, &r.log)
		cancel()
		if err != nil {
			t.undo(nil)
			if t.again = errors.Is(err, errHeldUp); t.again {
				t.alone = true
				return &vainError{err}
			}
			return err
		}
		t.hold = hold
	}
	hold, tried := t.hold, false
	t.hold = nil // from here on Commit ends it
	err := hold.Commit(w, rival, func(c store.Change) error {
		tried = true
		err := t.tx.Commit(c)
		t.again = err != nil && t.tx.Again(err)
		t.tx = nil
		t.release()
		return err
	})
	switch {
	case err == nil:
		r.recordedOnce.Do(func() { close(r.recorded) })
		return nil
	case errors.Is(err, commit.ErrNotLanded):
		r.recordedOnce.Do(func() { close(r.recorded) })
		t.again = true
		return &vainError{err}
	case !tried, definite(err), errors.Is(err, ErrClosed), errors.Is(err, ErrUnavailable):
		t.undo(nil)
		return err
	}
	return &vainError{err} // of a run that was stopped meanwhile, too: why it was stopped is what its function is told
}

// repeats reports whether the attempt is made again without counting.
func (t *transaction) repeats() bool {
	if t == nil || !t.again {
		return false
	}
	if t.begun && t.vain >= maxVain {
		t.again, t.vain = false, 0
		return false
	}
	return true
}

// pause returns how long to wait before the attempt is made again.
func (t *transaction) pause(err error) time.Duration {
	t.again = false
	t.vain++
	if !t.said && (t.vain == 20 || time.Since(t.since) >= longTransaction) {
		t.said = true
		t.step.call.scope.run.logLine(slog.LevelWarn, "durable: a transactional step meets conflicts, or a database that is not there: it was rolled back, and is tried again until it gets through", slog.String("step", t.step.call.key), slog.Int("times", t.vain), slog.Any("error", err))
	}
	top := min(time.Second, 2*time.Millisecond<<min(t.vain, 10))
	return top/2 + rand.N(top/2+1)
}

// A transaction stays open for what the run has in flight beside it for holdFirst, which is
// far longer than a commit takes, and twice as long each time that it was not enough.
const (
	holdFirst = 250 * time.Millisecond
	holdMost  = 10 * time.Second
)

var errHeldUp = errors.New("durable: the run's other writes did not get through beside the transaction")

// succeedIn records the result of a transactional step.
func (st *step) succeedIn(ev store.Event) error {
	rival := st.newEvent(store.StepStarted, int(ev.Attempt), history.Encode(&history.Begun{Input: st.inputHash()}))
	w := &commit.Write{Events: []store.Event{ev}, Clock: st.ended}
	err := st.tx.commit(w, rival)
	switch {
	case err == nil:
		st.recorded(w.At())
		st.ended = time.Time{}
	case errors.Is(err, commit.ErrNotLanded):
		st.recorded(w.At()) // the rival has its place
	}
	return err
}

// useTransaction makes the step a transactional one.
func (st *step) useTransaction(o *stepOptions) error {
	if o.relaxed {
		return fmt.Errorf("durable: a transactional step cannot be Relaxed: it is a commit of its own: %w", ErrInvalid)
	}
	st.tx = &transaction{step: st}
	return nil
}
