package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
)

// The drivers that the store is made for. Their modules are not imported here:
// lib/pq is, for connections of the store's own.
const drivers = "github.com/lib/pq and github.com/jackc/pgx/v5/stdlib"

// checkDriver refuses a database whose driver the store does not support. The
// store writes through the driver, bypassing database/sql, and distinguishes a
// lost answer from a refusal by the driver's behaviour. A driver that behaves
// differently could make the store acknowledge what was not written.
func checkDriver(ctx context.Context, db *sqlx.DB) error {
	if known(db.Driver()) {
		return nil
	}
	refused := func(why string) error {
		return fmt.Errorf("postgres: the database is of the driver %T, %s; the store is made for %s: "+
			"open the database with sqlx.Open(\"postgres\", dsn) or sqlx.Open(\"pgx\", dsn), or use postgres.Open(dsn): %w", db.Driver(), why, drivers, store.ErrInvalid)
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
	// A wrapper around a supported driver also passes on its errors. The server
	// logs this one, so its text says what it is for.
	_, err = conn.ExecContext(ctx, "SELECT CAST('holdfast asks which driver this is' AS integer)")
	if sqlState(err) == "" || !knownError(err) {
		return refused(fmt.Sprintf("whose errors are not those of a driver it knows (%T)", err))
	}
	return nil
}

// known reports whether d is one of the drivers that the store is made for.
func known(d driver.Driver) bool {
	switch d.(type) {
	case *pq.Driver, pq.Driver:
		return true
	}
	return isType(d, "github.com/jackc/pgx/v5/stdlib", "Driver")
}

// knownError reports whether err is, or wraps, an error of the server as one of the
// supported drivers returns it.
func knownError(err error) bool {
	if _, ok := errors.AsType[*pq.Error](err); ok {
		return true
	}
	var e interface {
		error
		SQLState() string
	}
	return errors.As(err, &e) && isType(e, "github.com/jackc/pgx/v5/pgconn", "PgError")
}

// isType reports whether v is a pointer to the named type of a package, which is
// not imported for it: a program with lib/pq would link pgx otherwise.
func isType(v any, path, name string) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == path && t.Elem().Name() == name
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
