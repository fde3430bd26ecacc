package everystore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A clockwork is data whose clock can be set.
type clockwork struct {
	open  opener
	now   func() time.Time
	jump  func(d time.Duration)
	until func(at time.Time) // lets the time go by until then
	// looked waits until an engine has noticed what the clock says, and has looked for
	// what is due.
	looked func()
	lease  time.Duration
}

// onEachClock runs a test on every store, with a clock that can be set.
func onEachClock(t *testing.T, name string, test func(t *testing.T, c *clockwork)) {
	t.Run("memory/"+name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var by atomic.Int64
			c := virtualClock(&by)
			data := memory.OpenAt(c.now)
			c.open = func() (store.Store, error) { return data.Handle(), nil }
			test(t, c)
		})
	})
	t.Run("sqlite/"+name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "clock.db")
		synctest.Test(t, func(t *testing.T) {
			var by atomic.Int64
			c := virtualClock(&by)
			c.open = func() (store.Store, error) {
				return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off, Watch: -1, Clock: c.now})
			}
			test(t, c)
		})
	})
	t.Run("postgres/"+name, func(t *testing.T) {
		t.Parallel()
		test(t, serverClock(t))
	})
}

// virtualClock is the clock of a bubble, by so much ahead.
func virtualClock(by *atomic.Int64) *clockwork {
	by.Store(int64(800 * 24 * time.Hour)) // away from the beginning of the bubble's time
	c := &clockwork{lease: 6 * time.Second}
	c.now = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
	c.jump = func(d time.Duration) { by.Add(int64(d)) }
	c.until = func(at time.Time) { time.Sleep(at.Sub(c.now())) }
	c.looked = func() { time.Sleep(3 * c.lease); synctest.Wait() }
	return c
}

// serverClock is PostgreSQL's. Nobody can set the clock of the server for a test, so the
// connections of these stores pass through a driver that puts another function in the place
// of pg_catalog.clock_timestamp, which adds what a table says. All else in the statements is as
// the store wrote it, and the server executes it. That time goes by is a small jump ahead.
func serverClock(t *testing.T) *clockwork {
	dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off")
	raw, err := sqlx.Open("postgres", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	raw.SetMaxOpenConns(1)
	raw.MustExec(`CREATE SCHEMA set_clock;
		CREATE TABLE set_clock.ahead (by interval NOT NULL);
		INSERT INTO set_clock.ahead VALUES ('0');
		CREATE FUNCTION set_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + (SELECT by FROM set_clock.ahead)'`)
	var beats, looks, asked atomic.Int64
	c := &clockwork{lease: durable.MinLease}
	c.open = func() (store.Store, error) {
		pool, err := pq.NewConnector(dsn)
		if err != nil {
			return nil, err
		}
		db := sqlx.NewDb(sql.OpenDB(setClock{pool, &asked}), "postgres")
		st, err := postgres.New(db, postgres.Options{Writers: 2})
		if err != nil {
			_ = db.Close()
			return nil, err
		}
		return &looking{st, db, &beats, &looks}, nil
	}
	c.now = func() (now time.Time) {
		require.NoError(t, raw.Get(&now, "SELECT set_clock.clock_timestamp()"))
		return now.UTC()
	}
	c.jump = func(d time.Duration) {
		raw.MustExec("UPDATE set_clock.ahead SET by = by + $1 * interval '1 microsecond'", d.Microseconds())
	}
	c.until = func(at time.Time) {
		if d := at.Sub(c.now()); d > 0 {
			c.jump(d)
		}
	}
	c.looked = func() {
		b, l := beats.Load(), looks.Load()
		await(t, "the engine looks", func() bool { return beats.Load() >= b+3 && looks.Load() >= l+2 })
		require.NotZero(t, asked.Load(), "the statements ask the clock that is set")
	}
	return c
}

// looking counts the beats and the looks for schedules that have been answered, and closes
// its pool.
type looking struct {
	*postgres.Store
	db           *sqlx.DB
	beats, looks *atomic.Int64
}

func (l *looking) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	defer l.beats.Add(1)
	return l.Store.Beat(ctx, e)
}

func (l *looking) DueSchedules(ctx context.Context, limit int) (store.DueSchedules, error) {
	defer l.looks.Add(1)
	return l.Store.DueSchedules(ctx, limit)
}

func (l *looking) Close() error {
	err := l.Store.Close()
	_ = l.db.Close()
	return err
}

// setClock is a driver around lib/pq for which the clock is another one.
type setClock struct {
	driver.Connector
	asked *atomic.Int64
}

func (s setClock) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return setConn{c.(fullConn), s.asked}, nil
}

// fullConn is what a connection of lib/pq does.
type fullConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
	driver.Pinger
}

type setConn struct {
	fullConn
	asked *atomic.Int64
}

func (c setConn) reword(text string) string {
	other := strings.ReplaceAll(text, "pg_catalog.clock_timestamp()", "set_clock.clock_timestamp()")
	if other != text {
		c.asked.Add(1)
	}
	return other
}

func (c setConn) Prepare(text string) (driver.Stmt, error) { return c.fullConn.Prepare(c.reword(text)) }

func (c setConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.fullConn.PrepareContext(ctx, c.reword(text))
}

func (c setConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.fullConn.ExecContext(ctx, c.reword(text), args)
}

func (c setConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.fullConn.QueryContext(ctx, c.reword(text), args)
}

// await waits until ok reports true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		require.Less(t, time.Since(began), patience, "it does not come to it that %s", what)
	}
}
