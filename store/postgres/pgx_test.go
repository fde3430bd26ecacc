package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// pgxDB returns a pool of pgx, as a program has it that uses no other driver.
func pgxDB(dsn string, change ...func(*pgx.ConnConfig)) (*sqlx.DB, error) {
	cfg, err := pgx.ParseConfig(strings.ReplaceAll(dsn, "+", "%20")) // "+" is no blank to it
	if err != nil {
		return nil, err
	}
	for _, f := range change {
		f(cfg)
	}
	return sqlx.NewDb(stdlib.OpenDB(*cfg), "pgx"), nil
}

// pooled is a store on a pool of the program's, which it closes for the program.
type pooled struct {
	*postgres.Store
	db *sqlx.DB
}

func (p pooled) Close() error { return errors.Join(p.Store.Close(), p.db.Close()) }

func openPgx(dsn string, o postgres.Options, change ...func(*pgx.ConnConfig)) (store.Store, error) {
	db, err := pgxDB(dsn, change...)
	if err != nil {
		return nil, err
	}
	o.DSN = dsn
	s, err := postgres.New(db, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return pooled{s, db}, nil
}

// drive opens stores on connections of one driver.
type drive struct {
	openOptions func(t testing.TB, dsn string, o postgres.Options) *postgres.Store
}

func (d drive) open(t testing.TB, dsn string) *postgres.Store {
	return d.openOptions(t, dsn, postgres.Options{})
}

// onEveryDriver runs what depends on what a driver makes of the server's answers, or
// of their loss.
func onEveryDriver(t *testing.T, f func(*testing.T, drive)) {
	t.Parallel()
	t.Run("pq", func(t *testing.T) { t.Parallel(); f(t, drive{openOptions}) })
	t.Run("pgx", func(t *testing.T) {
		t.Parallel()
		f(t, drive{func(t testing.TB, dsn string, o postgres.Options) *postgres.Store {
			t.Helper()
			s, err := openPgx(dsn, o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s.(pooled).Store
		}})
	})
}

// What the server says once, with one of the codes after which it is to be tried
// again, hinders nothing and doubles nothing.
func TestAServerThatAsksForAnotherTryGetsIt(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s, admin := d.open(t, dsn), raw(t, dsn)
		admin.MustExec(`CREATE SEQUENCE asked; CREATE TABLE code (state text); INSERT INTO code VALUES ('');
			CREATE FUNCTION asks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF pg_catalog.nextval('public.asked') = 1 THEN RAISE EXCEPTION USING ERRCODE = (SELECT state FROM public.code); END IF;
				RETURN NULL; END $$;
			SELECT nextval('asked');
			CREATE TRIGGER asks AFTER INSERT ON durable_events FOR EACH STATEMENT EXECUTE FUNCTION asks()`)
		for _, code := range []string{"40001", "40P01", "55P03", "40003", "57P01", "08006", "53300", "25006"} {
			r, priority := &runLog{id: code}, int32(1)
			commit(t, s, r.create("me"))
			patched := r.step(nil)
			patched.Row = &store.RowPatch{Priority: &priority}
			for _, c := range []store.Change{patched, r.step(nil)} {
				admin.MustExec("UPDATE code SET state = $1", code)
				admin.MustExec("SELECT setval('asked', 1, false)")
				commit(t, s, c)
				var asked int
				require.NoError(t, admin.Get(&asked, "SELECT last_value FROM asked"))
				require.Greater(t, asked, 1, code)
			}
			_, events := load(t, s, code)
			require.Len(t, events, 3, code)
		}
	})
}

func TestADeadlockWithATransactionOfTheUsersEnds(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, pgtest.With(dsn, "deadlock_timeout", "20ms"))
		a, b, priority := &runLog{id: "a"}, &runLog{id: "b"}, int32(1)
		commit(t, s, a.create("me"), b.create("me"))
		both := a.step(nil)
		both.Row = &store.RowPatch{Priority: &priority}
		both.Send = []store.Message{{To: "b", Kind: store.KindSignal, ID: "m", Name: "n"}}
		db := raw(t, pgtest.With(dsn, "deadlock_timeout", "1min"))
		tx := db.MustBegin()
		tx.MustExec("SELECT 1 FROM durable_runs WHERE id = 'b' FOR UPDATE")
		done := make(chan error, 1)
		go func() { done <- s.Commit(context.Background(), []store.Change{both})[0] }()
		require.Eventually(t, func() bool {
			var waits bool
			require.NoError(t, db.Get(&waits, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))
			return waits
		}, time.Minute, time.Millisecond)
		tx.MustExec("SELECT 1 FROM durable_runs WHERE id = 'a' FOR UPDATE") // the store's transaction makes way
		require.NoError(t, tx.Commit())
		require.NoError(t, <-done)
		h, _ := load(t, s, "b")
		require.Len(t, h.Inbox, 1)
	})
}

// otherDriver is a driver of a program's own around pgx, such as one that traces.
type otherDriver struct{ driver.Connector }

func (o otherDriver) Driver() driver.Driver { return wrappedDriver{} }

func TestADriverThatWrapsPgxWorks(t *testing.T) {
	dsn := pgtest.DSN(t)
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	s, err := postgres.New(newDB(t, otherDriver{stdlib.GetConnector(*cfg)}), postgres.Options{})
	require.NoError(t, err)
	r := &runLog{id: "r"}
	commit(t, s, r.create("me"), (&runLog{id: "other"}).create(""))
	load(t, s, "r")
	require.NoError(t, s.Close())
}

// A pool of pgx has no connection that listens. With Options.DSN the store opens one
// of its own; without, it learns of other processes' changes at the next beat.
func TestAPoolOfPgxListensWithADSN(t *testing.T) {
	dsn := pgtest.DSN(t)
	other := open(t, dsn)
	db, err := pgxDB(dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, listens := range []bool{false, true} {
		o := postgres.Options{}
		if listens {
			o.DSN = dsn
		}
		s, err := postgres.New(db, o)
		require.NoError(t, err)
		require.Equal(t, listens, s.PresenceKind() != "")
		ear := listen(t, s)
		r := &runLog{id: fmt.Sprintf("r-%v", listens)}
		if listens {
			commit(t, other, r.create(""))
		} else {
			commit(t, s, r.create("")) // its own are told in the process
		}
		ear.hears(t, r.id)
		require.NoError(t, s.Close())
	}
}

// How pgx sends statements is the program's choice.
func TestAPoolOfPgxWithAnotherModeOfQueriesWorks(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			dsn := pgtest.DSN(t)
			st, err := openPgx(dsn, postgres.Options{}, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
			require.NoError(t, err)
			s := st.(pooled).Store
			c := &crowd{t: t, store: s, steps: 3, sink: "sink"}
			c.run(func() {
				require.Eventually(t, func() bool { return c.total.Load() >= 20 || t.Failed() }, time.Minute, time.Millisecond)
			})
			page, err := s.List(t.Context(), store.Filter{IDs: []string{"sink"}, WithLast: true})
			require.NoError(t, err)
			require.Len(t, page.Runs, 1)
			beat(t, s, executor("me", time.Minute))
			_, err = s.Claim(t.Context(), store.Claim{Executor: "me", Serves: serves, Max: 3})
			require.NoError(t, err)
			tx, err := st.(pooled).db.Beginx()
			require.NoError(t, err)
			require.NoError(t, s.CommitIn(t.Context(), tx, (&runLog{id: "in"}).create("")))
			require.NoError(t, tx.Commit())
			require.NoError(t, st.Close())
		})
	}
}

// What pgx does that the store was built around; see trap_test.go. It calls a statement
// safe to send again whose answer was lost, because it finds the connection closed:
// nobody may conclude from that that nothing was sent.
func TestTrapPgxCallsALostAnswerSafeToTryAgain(t *testing.T) {
	dsn := pgtest.DSN(t)
	direct := raw(t, dsn)
	direct.MustExec("CREATE TABLE counter (n int); INSERT INTO counter VALUES (0)")
	p := proxy.New(t, proxy.Target(dsn))
	db := rawWith(t, "pgx", p.DSN(dsn))
	require.NoError(t, db.Ping())
	p.SetPolicy(cutOnce(increment))
	_, err := db.Exec(increment)
	require.NoError(t, err)
	var n int
	require.NoError(t, direct.Get(&n, "SELECT n FROM counter"))
	require.Equal(t, 2, n, "database/sql has sent it twice: this is why every write goes to a pinned connection")

	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(increment)
	require.NoError(t, err)
	p.SetPolicy(cutOnce("commit"))
	err = tx.Commit()
	var e interface {
		error
		SafeToRetry() bool
	}
	require.ErrorAs(t, err, &e)
	require.True(t, e.SafeToRetry())
	require.NoError(t, direct.Get(&n, "SELECT n FROM counter"))
	require.Equal(t, 3, n, "and yet it was committed")
}

func TestTrapPgxTellsALostAnswerToAPreparedStatement(t *testing.T) {
	dsn := pgtest.DSN(t)
	raw(t, dsn).MustExec("CREATE TABLE counter (n int)")
	p := proxy.New(t, proxy.Target(dsn))
	conn, err := rawWith(t, "pgx", p.DSN(dsn)).Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	st, err := conn.PrepareContext(t.Context(), increment)
	require.NoError(t, err)
	p.SetPolicy(cutOnce(increment))
	_, err = st.ExecContext(t.Context())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
