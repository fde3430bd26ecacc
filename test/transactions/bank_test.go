package transactions_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A bank is a database with accounts, which is also the store.
type bank struct {
	kind string // "sqlite" or "postgres"
	dsn  string // a path or a connection string
	db   *sqlx.DB
	last *durable.Engine // the one opened last
	pgx  bool            // the store is made of a pool of pgx
}

// onEach runs a test on an empty bank of each kind.
func onEach(t *testing.T, f func(t *testing.T, b *bank)) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) { f(t, newBank(t, kind)) })
	}
}

const (
	accounts = 4
	deposit  = 1000
)

func newBank(t *testing.T, kind string) *bank {
	b := &bank{kind: kind}
	if kind == "sqlite" {
		b.dsn = filepath.Join(t.TempDir(), "bank.db")
	} else {
		b.dsn = pgtest.DSN(t)
	}
	require.NoError(t, b.open(t).Close()) // makes the file and the tables
	b.connect(t)
	b.db.MustExec(`CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)`)
	b.db.MustExec(`CREATE TABLE applied (what TEXT NOT NULL)`)
	for i := range accounts {
		b.db.MustExec(b.db.Rebind(`INSERT INTO accounts (id, balance) VALUES (?, ?)`), i, deposit)
	}
	return b
}

// connect opens the program's own connections.
func (b *bank) connect(t *testing.T) {
	driver, dsn := "postgres", b.dsn
	if b.kind == "sqlite" {
		driver, dsn = "sqlite3", "file:"+b.dsn+"?_txlock=immediate&_busy_timeout=10000&_journal_mode=WAL"
	}
	db, err := sqlx.Connect(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	b.db = db
}

// open opens a handle of the store.
func (b *bank) open(t testing.TB) store.Store {
	var st store.Store
	var err error
	if b.pgx {
		db, err := sqlx.Open("pgx", b.dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		st, err = postgres.New(db, postgres.Options{DSN: b.dsn})
		require.NoError(t, err)
		return st
	}
	if b.kind == "sqlite" {
		st, err = sqlite.OpenOptions(b.dsn, sqlite.Options{Synchronous: sqlite.Normal})
	} else {
		st, err = postgres.Open(b.dsn)
	}
	require.NoError(t, err)
	return st
}

// engine opens an engine on a handle of its own.
func (b *bank) engine(t *testing.T, o durable.Options) context.Context {
	st := b.open(t)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := durable.Open(t.Context(), st, o)
	require.NoError(t, err)
	b.last = e
	t.Cleanup(func() {
		_ = e.Close()
		_ = st.Close()
	})
	return durable.NewContext(t.Context(), e)
}

func (b *bank) applied(t testing.TB, what string) (n int) {
	require.NoError(t, b.db.Get(&n, b.db.Rebind(`SELECT count(*) FROM applied WHERE what = ?`), what))
	return n
}

func (b *bank) sum(t testing.TB) (sum int) {
	require.NoError(t, b.db.Get(&sum, `SELECT sum(balance) FROM accounts`))
	return sum
}

// mark notes in tx that something was applied.
func mark(tx *sqlx.Tx, what string) error {
	_, err := tx.Exec(tx.Rebind(`INSERT INTO applied (what) VALUES (?)`), what)
	return err
}

// move moves money in tx and notes it.
func move(tx *sqlx.Tx, what string, from, to, amount int) error {
	for _, leg := range []struct{ id, by int }{{min(from, to), 0}, {max(from, to), 0}} {
		by := amount
		if leg.id == from {
			by = -amount
		}
		if _, err := tx.Exec(tx.Rebind(`UPDATE accounts SET balance = balance + ? WHERE id = ?`), by, leg.id); err != nil {
			return fmt.Errorf("account %d: %w", leg.id, err)
		}
	}
	return mark(tx, what)
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 30*time.Second, 5*time.Millisecond, what)
}

func TestMain(m *testing.M) {
	if victim := os.Getenv(victimVariable); victim != "" {
		beVictim(victim)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/test/pgtest.(*Cluster).start.func1"))
}
