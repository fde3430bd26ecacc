package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// withdrawal is the input of pay.
type withdrawal struct{ Account, Amount int }

var errNoFunds = errors.New("not enough money")

func pay(ctx context.Context, w withdrawal) (int, error) {
	return durable.Transact(ctx, "withdraw", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
		var left int
		err := tx.GetContext(ctx, &left, `UPDATE accounts SET balance = balance - $1 WHERE id = $2 RETURNING balance`, w.Amount, w.Account)
		if err == nil && left < 0 {
			err = durable.Permanent(errNoFunds) // and the money is where it was
		}
		return left, err
	})
}

// placeOrder is called by the program, outside of any run.
func placeOrder(ctx context.Context, db *sqlx.DB, payment *durable.Workflow[withdrawal, int], id string, w withdrawal) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id, amount) VALUES ($1, $2)`, id, w.Amount); err != nil {
		return err
	}
	if _, err := payment.Start(ctx, id, w, durable.InTx(tx)); err != nil {
		return err
	}
	return tx.Commit()
}

// accountsIn opens a database with one account, and an engine on it.
func accountsIn(dir string, defs ...durable.Definition) (db *sqlx.DB, ctx context.Context, end func()) {
	file := filepath.Join(dir, "app.db")
	st, err := sqlite.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	db = sqlx.MustConnect("sqlite3", "file:"+file+"?_txlock=immediate&_busy_timeout=10000")
	db.MustExec(`CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO accounts VALUES (1, 100)`)
	db.MustExec(`CREATE TABLE orders (id TEXT PRIMARY KEY, amount INTEGER)`)
	eng, err := durable.Open(context.Background(), st, durable.Options{
		Workflows: defs, Errors: []durable.ErrorKind{durable.Sentinel("no funds", errNoFunds)}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	return db, durable.NewContext(context.Background(), eng), func() {
		_ = eng.Close()
		_ = db.Close()
		_ = st.Close()
		_ = os.RemoveAll(dir)
	}
}

func ExampleTransact() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	payment := durable.Define("pay", pay)
	db, ctx, end := accountsIn(dir, payment)
	defer end()
	left, err := payment.Run(ctx, "order-1", withdrawal{Account: 1, Amount: 70})
	fmt.Println(left, err)
	_, err = payment.Run(ctx, "order-2", withdrawal{Account: 1, Amount: 70})
	var balance int
	_ = db.Get(&balance, `SELECT balance FROM accounts`)
	fmt.Println(balance, errors.Is(err, errNoFunds))
	// Output:
	// 30 <nil>
	// 30 true
}

func ExampleInTx() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	payment := durable.Define("pay", pay)
	db, ctx, end := accountsIn(dir, payment)
	defer end()
	if err := placeOrder(ctx, db, payment, "order-1", withdrawal{Account: 1, Amount: 70}); err != nil {
		log.Fatal(err)
	}
	run, err := payment.Handle(ctx, "order-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output: 30 <nil>
}
