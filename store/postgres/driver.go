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

// checkDriver refuses a database whose driver the store does not support. The
// store writes through the driver, bypassing database/sql, and distinguishes a
// lost answer from a refusal by the driver's behaviour. A driver that behaves
// differently could make the store acknowledge what was not written.
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
	// A wrapper around lib/pq also passes on its errors. The server logs this
	// one, so its text says what it is for.
	_, err = conn.ExecContext(ctx, "SELECT CAST('holdfast asks which driver this is' AS integer)")
	if _, ok := errors.AsType[*pq.Error](err); !ok {
		return refused(fmt.Sprintf("whose errors are not those of lib/pq (%T)", err))
	}
	return nil
}

// missingIn names the interface that the store needs for writing and the
// connection lacks; empty: none.
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
