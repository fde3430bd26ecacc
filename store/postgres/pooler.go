package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
)

// checkSessions finds out whether something between this program and the server
// gives each transaction a different server session. If so, session locks and
// settings are shared with other clients, and a prepared statement may be
// missing or, worse, be another program's statement of the same name.
func checkSessions(ctx context.Context, db *sqlx.DB, o *Options) error {
	a, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("postgres: open: %w", err)
	}
	defer a.Close()
	b, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("postgres: open: %w", err)
	}
	defer b.Close()
	var mine, other int
	prepared, err := a.PreparexContext(ctx, "SELECT pg_catalog.pg_backend_pid()")
	if err == nil {
		defer prepared.Close()
		err = prepared.GetContext(ctx, &mine)
	}
	if err != nil {
		return unprepared(err)
	}
	// A pooler hands out the most recently returned session next.
	tx, err := b.BeginTxx(ctx, &sql.TxOptions{ReadOnly: o.ReadOnly})
	if err != nil {
		return described("open", err) // a standby refuses a transaction that may write
	}
	defer func() { _ = tx.Rollback() }() // it only read
	if err := tx.GetContext(ctx, &other, "SELECT pg_catalog.pg_backend_pid()"); err != nil {
		return fmt.Errorf("postgres: open: %w", err)
	}
	if mine != other {
		return nil
	}
	if !o.Pooled {
		return fmt.Errorf("postgres: open: the connections go through a pooler that gives each transaction another session, such as PgBouncer in transaction mode: "+
			"set Options.Pooled, or connect to the server itself: %w", store.ErrInvalid)
	}
	// The other connection occupies this session, so the statement gets a
	// different one.
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := prepared.GetContext(short, &mine); sqlState(err) != "" && sqlState(err) != "57014" {
		return unprepared(err)
	}
	return nil // a pooler without a second session cannot be tested
}

func unprepared(err error) error {
	return fmt.Errorf("postgres: open: prepared statements do not work on these connections: a pooler in transaction mode must carry them "+
		"(PgBouncer 1.21 or later with max_prepared_statements above 0); else use its session mode, or connect to the server itself: %w: %w", err, store.ErrInvalid)
}
