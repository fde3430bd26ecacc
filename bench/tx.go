package main

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/durable"
)

// transact measures the transactional steps of a lone run against the same SQL by hand:
// begin, move money between two accounts, note under a key that it was done, with the
// result, and commit. Each has a database of its own.
func transact(ctx context.Context, t *target, n size) ([]result, error) {
	address, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := openAccounts(t, address); err != nil {
		return nil, err
	}
	byHand, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	if err := openAccounts(t, byHand); err != nil {
		return nil, err
	}
	db, err := accountsDB(t, byHand)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	note, done := db.Rebind(`INSERT INTO done (run, seq, result) VALUES (?, ?, ?)`), 0
	floor := func() (float64, error) {
		began := time.Now()
		for range blockSize {
			done++
			tx, err := db.Beginx()
			if err != nil {
				return 0, err
			}
			left, err := pay(tx)
			if err == nil {
				_, err = tx.Exec(note, "run-1", done, left)
			}
			if err != nil {
				_ = tx.Rollback()
				return 0, err
			}
			if err := tx.Commit(); err != nil {
				return 0, err
			}
		}
		return micros(time.Since(began)) / blockSize, nil
	}

	work := newStepper()
	work.steps = func(ctx context.Context, n int) (sum int, err error) {
		for range n {
			left, err := durable.Transact(ctx, "pay", func(_ context.Context, tx *sqlx.Tx) (int, error) { return pay(tx) })
			if err != nil {
				return 0, err
			}
			sum += left
		}
		return sum, nil
	}
	w := durable.Define("tx", work.work)
	var measured []pair
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		r := &lone{work: work, workflow: w}
		measured, err = pairs(n.pairs, floor, func() (float64, error) { return r.block(ctx) })
		if err != nil {
			return err
		}
		return r.end(ctx)
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{pairedResult("TX", "us/step", false, measured)}, nil
}

// accountsDB opens connections as a program would that cares for speed: one of them, and
// with prepared statements kept where the driver does that.
func accountsDB(t *target, address string) (*sqlx.DB, error) {
	driver, dsn := "postgres", address
	if t.name == "sqlite" {
		driver, dsn = "sqlite3", "file:"+address+"?_journal_mode=WAL&_txlock=immediate&_mutex=no&_stmt_cache_size=64&_synchronous="+t.mode
	}
	db, err := sqlx.Connect(driver, dsn)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// openAccounts makes the tables of the case.
func openAccounts(t *target, address string) error {
	db, err := accountsDB(t, address)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, sql := range []string{
		`CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)`,
		`CREATE TABLE done (run TEXT NOT NULL, seq BIGINT NOT NULL, result BIGINT NOT NULL, PRIMARY KEY (run, seq))`,
		`INSERT INTO accounts (id, balance) VALUES (1, 1000000000), (2, 0)`,
	} {
		if _, err := db.Exec(sql); err != nil {
			return err
		}
	}
	return nil
}

// pay is what a step does.
func pay(tx *sqlx.Tx) (left int, err error) {
	if _, err := tx.Exec(tx.Rebind(`UPDATE accounts SET balance = balance - ? WHERE id = ?`), 1, 1); err != nil {
		return 0, err
	}
	_, err = tx.Exec(tx.Rebind(`UPDATE accounts SET balance = balance + ? WHERE id = ?`), 1, 2)
	return 1, err
}
