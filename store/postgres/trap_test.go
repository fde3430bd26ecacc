package postgres_test

// What the driver does that this package was built around. Each trap is a test,
// so that an upgrade of the driver that changes it is noticed: where one of
// these fails, read the code that the trap explains before adapting the test.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// counted returns a database with a counter, reached through a proxy.
func counted(t *testing.T) (db *sql.DB, p *proxy.Proxy, n func() int) {
	dsn := pgtest.DSN(t)
	direct := raw(t, dsn)
	direct.MustExec("CREATE TABLE counter (n int); INSERT INTO counter VALUES (0)")
	p = proxy.New(t, proxy.Target(dsn))
	return raw(t, p.DSN(dsn)).DB, p, func() (n int) {
		require.NoError(t, direct.Get(&n, "SELECT n FROM counter"))
		return n
	}
}

// cutOnce cuts the answer to the first request with this text.
func cutOnce(text string) proxy.Policy {
	var done atomic.Bool
	return func(r proxy.Request) proxy.Action {
		has := slices.ContainsFunc(r.SQL, func(s string) bool { return strings.Contains(s, text) })
		if r.Executes && has && done.CompareAndSwap(false, true) {
			return proxy.CutReply
		}
		return proxy.Pass
	}
}

const increment = "UPDATE counter SET n = n + 1"

func TestTrapExecOnThePoolRunsTwiceWhenTheAnswerIsLost(t *testing.T) {
	db, p, n := counted(t)
	require.NoError(t, db.Ping())
	p.SetPolicy(cutOnce(increment))
	_, err := db.Exec(increment)
	require.NoError(t, err)
	require.Equal(t, 2, n(), "this is why every write goes to a pinned connection")
}

func TestTrapALostAnswerOnAPinnedConnectionLooksLikeAClosedOne(t *testing.T) {
	db, p, n := counted(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	stmt, err := conn.PrepareContext(t.Context(), increment)
	require.NoError(t, err)
	p.SetPolicy(cutOnce(increment))
	_, err = stmt.Exec()
	require.True(t, errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn), "%v", err)
	require.Equal(t, 1, n(), "and yet it was carried out")
}

func TestTrapACommitWhoseAnswerIsLostIsCommitted(t *testing.T) {
	db, p, n := counted(t)
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(increment)
	require.NoError(t, err)
	p.SetPolicy(cutOnce("COMMIT"))
	require.Error(t, tx.Commit())
	require.Equal(t, 1, n())
}

func TestTrapATerminatedBackendIsABadConnAndNoServerError(t *testing.T) {
	dsn := pgtest.DSN(t)
	db, admin := raw(t, dsn), raw(t, dsn)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	var pid int
	require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	admin.MustExec("SELECT pg_terminate_backend($1)", pid)
	_, err = conn.ExecContext(t.Context(), "SELECT 1")
	require.Error(t, err)
	_, server := errors.AsType[*pq.Error](err)
	_, network := errors.AsType[net.Error](err) // depends on what arrives first
	require.False(t, server, "%v", err)
	require.True(t, network || errors.Is(err, driver.ErrBadConn), "%v", err)
}

func TestTrapOnlyAPreparedStatementIsOneRoundTrip(t *testing.T) {
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	var requests atomic.Int64
	p.SetPolicy(func(proxy.Request) proxy.Action { requests.Add(1); return proxy.Pass })
	conn, err := raw(t, p.DSN(dsn)).DB.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	count := func(f func() error) int64 {
		before := requests.Load()
		require.NoError(t, f())
		return requests.Load() - before
	}
	var n int
	stmt, err := conn.PrepareContext(t.Context(), "SELECT $1::int")
	require.NoError(t, err)
	require.Equal(t, int64(2), count(func() error { return conn.QueryRowContext(t.Context(), "SELECT $1::int", 1).Scan(&n) }))
	require.Equal(t, int64(1), count(func() error { return stmt.QueryRow(1).Scan(&n) }))
}

func TestAPlainCheckpointIsOneRoundTrip(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		p := proxy.New(t, proxy.Target(dsn))
		s := d.open(t, p.DSN(dsn))
		r := &runLog{id: "r"}
		commit(t, s, r.create("me"))
		commit(t, s, r.step(nil)) // prepares
		var requests atomic.Int64
		p.SetPolicy(func(proxy.Request) proxy.Action { requests.Add(1); return proxy.Pass })
		before := s.Counts()
		for range 10 {
			commit(t, s, r.step(nil))
		}
		require.Equal(t, int64(10), requests.Load())
		after := s.Counts()
		require.Equal(t, []int64{10, 0, 10}, []int64{after.Statements - before.Statements, after.Reads - before.Reads, after.Commits - before.Commits})
	})
}

func TestTrapBinaryParametersChangeWhatBytesAre(t *testing.T) {
	db := raw(t, pgtest.With(pgtest.DSN(t), "binary_parameters", "yes"))
	var s string
	err := db.QueryRow("SELECT $1::jsonb::text", []byte(`{"a":1}`)).Scan(&s)
	require.Error(t, err, "bytes are no JSON text in the binary form")
	require.NoError(t, db.QueryRow("SELECT $1::jsonb::text", `{"a":1}`).Scan(&s))
}

func TestAStoreWorksWithBinaryParameters(t *testing.T) {
	s := open(t, pgtest.With(pgtest.DSN(t), "binary_parameters", "yes"))
	a, b := &runLog{id: "a"}, &runLog{id: "b"}
	commit(t, s, a.create("me"), b.create("me"))
	commit(t, s, a.step([]byte("\x00\xff")), b.step([]byte("{}")))
	commit(t, s, a.step([]byte("\x00\xff")))
	commit(t, s, a.complete())
	_, events := load(t, s, "a")
	require.Equal(t, []byte("\x00\xff"), events[1].Payload)
	require.Equal(t, []byte("\x00\xff"), events[2].Payload)
}

func TestTrapCancellingAQueryOfAConnectionClosesIt(t *testing.T) {
	db := raw(t, pgtest.DSN(t)).DB
	for _, c := range []struct {
		name     string
		prepared bool
	}{{"connection", false}, {"statement", true}} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			stmt, err := conn.PrepareContext(t.Context(), "SELECT pg_sleep(30)")
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if c.prepared {
				_, err = stmt.ExecContext(ctx)
			} else {
				_, err = conn.ExecContext(ctx, "SELECT pg_sleep(30)")
			}
			require.Error(t, err)
			_, err = conn.ExecContext(t.Context(), "SELECT 1")
			require.Equal(t, c.prepared, err == nil, "%v", err)
		})
	}
}

func TestTrapTimesAreRoundedToMicroseconds(t *testing.T) {
	db := raw(t, pgtest.DSN(t))
	in := time.Date(2026, 11, 21, 5, 0, 0, 1_999_999, time.UTC)
	var out time.Time
	require.NoError(t, db.Get(&out, "SELECT $1::timestamptz", in))
	require.Equal(t, 2_000_000, out.Nanosecond(), "rounded up, where store.TimeOf cuts off")
}

func TestTrapASecondQueryWhileRowsAreOpenFails(t *testing.T) {
	db := raw(t, pgtest.DSN(t))
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	rows, err := tx.Query("SELECT generate_series(1, 10)")
	require.NoError(t, err)
	defer rows.Close()
	require.True(t, rows.Next())
	_, err = tx.Exec("SELECT 1")
	require.Error(t, err)
}

func TestTrapTheDriversBytesAreOverwrittenByTheNextRow(t *testing.T) {
	conn, err := raw(t, pgtest.DSN(t)).DB.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Raw(func(dc any) error {
		st, err := dc.(driver.ConnPrepareContext).PrepareContext(t.Context(), "VALUES ('first'::bytea), ('other'::bytea)")
		require.NoError(t, err)
		rows, err := st.(driver.StmtQueryContext).QueryContext(t.Context(), nil)
		require.NoError(t, err)
		dest := make([]driver.Value, 1)
		require.NoError(t, rows.Next(dest))
		kept := dest[0].([]byte)
		require.NoError(t, rows.Next(dest))
		require.NotEqual(t, "first", string(kept), "so they are copied")
		return rows.Close()
	}))
}

func TestTrapAPayloadOfANotificationIsBelowEightThousandBytes(t *testing.T) {
	db := raw(t, pgtest.DSN(t))
	_, err := db.Exec("SELECT pg_notify('c', $1)", strings.Repeat("x", 7999))
	require.NoError(t, err)
	_, err = db.Exec("SELECT pg_notify('c', $1)", strings.Repeat("x", 8000))
	require.Error(t, err)
}

// The ping of pq.ListenerConn panics when the answer is an error, so the store
// asks with a statement of its own, which must come back as an error.
func TestTrapAListeningConnectionThatIsEndedSaysSo(t *testing.T) {
	dsn := pgtest.DSN(t)
	heard := make(chan *pq.Notification, 8)
	conn, err := pq.NewListenerConn(dsn, heard)
	require.NoError(t, err)
	_, err = conn.Listen("c")
	require.NoError(t, err)
	raw(t, dsn).MustExec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'")
	for range heard { // closed when the connection is
	}
	_, err = conn.ExecSimpleQuery("SELECT 1")
	require.Error(t, err)
}

func TestAnyOfSeveralHostsThatTakesWritesIsUsed(t *testing.T) {
	dsn := pgtest.DSN(t)
	host, port, _ := strings.Cut(proxy.Target(dsn), ":")
	many := strings.Replace(dsn, proxy.Target(dsn), "", 1)
	many = pgtest.With(pgtest.With(many, "host", host+","+host), "port", "1,"+port)
	s := open(t, pgtest.With(many, "target_session_attrs", "read-write"))
	r := &runLog{id: "r"}
	commit(t, s, r.create(""))
}
