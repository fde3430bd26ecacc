package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// wrapped is a driver around lib/pq, such as one that traces. What it makes of
// an error is said by worded.
type wrapped struct {
	driver.Connector
	worded func(error) error
}

func (w wrapped) Driver() driver.Driver { return wrappedDriver{} }

func (w wrapped) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return wrappedConn{c.(pqConn), w.worded}, nil
}

type wrappedDriver struct{}

func (wrappedDriver) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

type pqConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
}

type wrappedConn struct {
	pqConn
	worded func(error) error
}

func (c wrappedConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.pqConn.ExecContext(ctx, q, args)
	if err != nil {
		err = c.worded(err)
	}
	return r, err
}

// old is a connection as drivers made it before there were contexts.
type old struct{ driver.Conn }

type oldConnector struct{ driver.Connector }

func (o oldConnector) Driver() driver.Driver { return wrappedDriver{} }

func (o oldConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := o.Connector.Connect(ctx)
	return old{c}, err
}

// foreign is an error as another driver of PostgreSQL's has it.
type foreign struct{ state string }

func (e foreign) Error() string    { return "ERROR: of another driver (SQLSTATE " + e.state + ")" }
func (e foreign) SQLState() string { return e.state }

func connector(t *testing.T, dsn string) driver.Connector {
	t.Helper()
	c, err := pq.NewConnector(dsn)
	require.NoError(t, err)
	return c
}

func newDB(t *testing.T, c driver.Connector) *sqlx.DB {
	t.Helper()
	db := sqlx.NewDb(sql.OpenDB(c), "postgres")
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestADriverThatTheStoreIsNotMadeForIsRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	for name, c := range map[string]driver.Connector{
		"other errors": wrapped{connector(t, dsn), func(error) error { return foreign{"22P02"} }},
		"no contexts":  oldConnector{connector(t, dsn)},
	} {
		s, err := postgres.New(newDB(t, c), postgres.Options{})
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.ErrorContains(t, err, "github.com/lib/pq", name)
		require.Nil(t, s, name)
	}
	var tables int
	require.NoError(t, raw(t, dsn).Get(&tables, "SELECT count(*) FROM pg_class WHERE relname LIKE 'durable%'"))
	require.Zero(t, tables, "before anything is written")
}

func TestADriverThatWrapsTheStoresOwnWorks(t *testing.T) {
	dsn := pgtest.DSN(t)
	for name, c := range map[string]driver.Connector{
		"lib/pq":  connector(t, dsn),
		"traced":  wrapped{connector(t, dsn), func(err error) error { return fmt.Errorf("traced: %w", err) }},
		"as such": wrapped{connector(t, dsn), func(err error) error { return err }},
	} {
		s, err := postgres.New(newDB(t, c), postgres.Options{})
		require.NoError(t, err, name)
		r := &runLog{id: name}
		commit(t, s, r.create("me"))
		commit(t, s, r.step(nil))
		load(t, s, name)
		require.ErrorIs(t, s.Commit(t.Context(), []store.Change{(&runLog{id: name, epoch: 1, seq: 1}).step(nil)})[0], store.ErrFenced, name)
		require.NoError(t, s.Close())
	}
}
