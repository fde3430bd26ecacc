package store

import "context"

// Transactor is a store that begins transactions on its own database, in which the
// user's statements and a Change become durable together.
//
// S40 What was done through the Handle of a Tx and the Change given to its Commit are one
// atomic act: after nil both are durable; after an error that matches ErrUnknown that is
// not known; after any other error, and after Rollback, neither is, and never will be. A
// Change that the log has no place for is refused with ErrFenced, also one that was
// carried out before: the rest of the transaction would happen twice. After ErrUnknown
// the transaction may still be in progress; a Change that is then committed to the same
// place in the log waits for it, so that exactly one of the two is durable.
type Transactor interface {
	TxCommitter
	// BeginTx begins a transaction that may write. ctx ends only the wait for it. Close
	// waits for the transactions that are open.
	BeginTx(ctx context.Context) (Tx, error)
	// OneWriter reports whether nothing else is written while a transaction is open: the
	// caller must then have nothing in flight that it waits for before it ends the
	// transaction.
	OneWriter() bool
}

// Tx is a transaction of a Transactor. One goroutine at a time uses it, and ends it with
// Commit or Rollback.
type Tx interface {
	// Handle returns the transaction for the user's statements, a *sqlx.Tx or a *sql.Tx;
	// CommitIn takes it.
	Handle() any
	// Commit carries out c in the transaction and ends it (S40).
	Commit(c Change) error
	// Rollback undoes everything. After Commit it does nothing.
	Rollback() error
	// Again reports whether err, which a statement of the transaction or Commit has
	// returned, is none of the statement's fault: another transaction was in the way, or
	// the connection was lost. A new transaction may then succeed. It is called before
	// Rollback, and is false for ErrUnknown.
	Again(err error) bool
}

// TxExplainer is what a Tx implements beside its methods where the database's own words do
// not say what the user's statements did wrong.
type TxExplainer interface {
	// Explain returns err, which the user's function has returned, or what it means.
	Explain(err error) error
}
