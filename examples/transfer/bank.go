package main

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/examples/internal/demo"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

const (
	accounts = 10
	deposit  = 1000 // in each of them, at first
	transit  = 0    // an account for money that has left one and has not arrived at the other
)

// Bank is a database with accounts, in which the runs are kept, too.
type Bank struct {
	db   *sqlx.DB
	kind string
	dsn  string
	book *demo.Book
}

// openBank connects to the bank's own tables. The store has connections of its own to
// the same database.
func openBank(kind, dsn string) (*Bank, error) {
	driver, name := "postgres", dsn
	if kind == "sqlite" {
		driver, name = "sqlite3", "file:"+dsn+"?_txlock=immediate&_busy_timeout=30000&_synchronous=NORMAL"
	}
	db, err := sqlx.Connect(driver, name)
	if err != nil {
		return nil, fmt.Errorf("the bank's database: %w", err)
	}
	return &Bank{db: db, kind: kind, dsn: dsn}, nil
}

// openStore opens the store in the bank's database. A process that is killed loses nothing
// that the operating system has, so SQLite need not wait for the disk here.
func openStore(kind, dsn string) (store.Store, error) {
	if kind == "sqlite" {
		return sqlite.OpenOptions(dsn, sqlite.Options{Synchronous: sqlite.Normal})
	}
	return postgres.Open(dsn)
}

// found makes the tables and the accounts.
func (b *Bank) found() error {
	for _, sql := range []string{
		`CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)`,
		`CREATE TABLE orders (id TEXT PRIMARY KEY)`,
		// No key: a movement that is made twice is there twice.
		`CREATE TABLE movements (transfer TEXT NOT NULL, account INTEGER NOT NULL, amount BIGINT NOT NULL)`,
		`INSERT INTO accounts (id, balance) VALUES (0, 0)`,
	} {
		if _, err := b.db.Exec(sql); err != nil {
			return err
		}
	}
	for id := range accounts {
		if _, err := b.db.Exec(b.db.Rebind(`INSERT INTO accounts (id, balance) VALUES (?, ?)`), id+1, deposit); err != nil {
			return err
		}
	}
	return nil
}

// add adds an amount to an account in a transaction, and returns the balance.
func (b *Bank) add(ctx context.Context, tx *sqlx.Tx, o Order, account, amount int) (balance int, err error) {
	err = tx.GetContext(ctx, &balance, tx.Rebind(`UPDATE accounts SET balance = balance + ? WHERE id = ? RETURNING balance`), amount, account)
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`INSERT INTO movements (transfer, account, amount) VALUES (?, ?, ?)`), o.ID, account, amount)
	return balance, err
}

// workflow is the bank's one workflow.
func (b *Bank) workflow() *durable.Workflow[Order, int] { return durable.Define("transfer", b.Move) }

// Audit is what the tables say.
type Audit struct {
	Sum      int // of all accounts, with the money in transit
	Orders   int
	Finished int // transfers that have left no money in transit
	Twice    int // movements that were made more than once
}

// audit asks the tables, at any moment.
func (b *Bank) audit() (a Audit, err error) {
	err = b.db.QueryRow(`SELECT (SELECT sum(balance) FROM accounts), (SELECT count(*) FROM orders),
		(SELECT count(*) FROM (SELECT transfer FROM movements GROUP BY transfer HAVING count(*) = 4) whole),
		(SELECT count(*) FROM (SELECT transfer FROM movements GROUP BY transfer, account, amount HAVING count(*) > 1) twice)`).
		Scan(&a.Sum, &a.Orders, &a.Finished, &a.Twice)
	if err == nil && (a.Sum != accounts*deposit || a.Twice > 0) {
		err = fmt.Errorf("the books are wrong: the accounts hold %d, not %d, and %d movements were made twice", a.Sum, accounts*deposit, a.Twice)
	}
	return a, err
}
