package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
)

// checkDriver refuses a database of a driver that the store is not made for. The
// store writes through the driver, past database/sql, and tells a lost answer
// from a refusal by what the driver does then: one whose ways are not known
// could make it acknowledge what was not written.
func checkDriver(ctx context.Context, db *sqlx.DB) error {
	switch db.Driver().(type) {
	case *pq.Driver, pq.Driver:
		return nil
	}
	refused := func(why string) error {
		return fmt.Errorf("postgres: the database is of the driver %T, %s; the store is made for github.com/lib/pq: "+
			"open the database with sqlx.Open(\"postgres\", dsn), or use postgres.Open(dsn): %w", db.Driver(), why, store.ErrInvalid)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("postgres: open: %w", err)
	}
	defer conn.Close()
	if missing, err := missingIn(ctx, conn); err != nil || missing != "" {
		if err != nil {
			return fmt.Errorf("postgres: open: %w", err)
		}
		return refused("whose " + missing)
	}
	// One that passes on what lib/pq says passes on its errors, too. The server
	// keeps this one in its log, so it says what it is for.
	_, err = conn.ExecContext(ctx, "SELECT CAST('holdfast asks which driver this is' AS integer)")
	if _, ok := errors.AsType[*pq.Error](err); !ok {
		return refused(fmt.Sprintf("whose errors are not those of lib/pq (%T)", err))
	}
	return nil
}

// missingIn says which of the interfaces that the store writes through a
// connection does not have; empty: none.
func missingIn(ctx context.Context, conn *sql.Conn) (missing string, err error) {
	err = conn.Raw(func(dc any) error {
		_, execs := dc.(driver.ExecerContext)
		_, begins := dc.(driver.ConnBeginTx)
		prepares, ok := dc.(driver.ConnPrepareContext)
		if !execs || !begins || !ok {
			missing = "connections know no contexts"
			return nil
		}
		st, err := prepares.PrepareContext(ctx, "SELECT 1")
		if err != nil {
			return err
		}
		_, execs = st.(driver.StmtExecContext)
		_, queries := st.(driver.StmtQueryContext)
		if !execs || !queries {
			missing = "prepared statements know no contexts"
		}
		return st.Close()
	})
	return missing, err
}
