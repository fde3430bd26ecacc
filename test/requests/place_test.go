package requests_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A place is a database with a store in it, and a program that knows only SQL.
type place struct {
	kind string // "sqlite" or "postgres"
	dsn  string
}

// everywhere runs a test on both kinds of databases.
func everywhere(t *testing.T, f func(t *testing.T, p place)) {
	t.Run("sqlite", func(t *testing.T) { f(t, place{"sqlite", filepath.Join(t.TempDir(), "app.db")}) })
	t.Run("postgres", func(t *testing.T) { f(t, place{"postgres", pgtest.DSN(t)}) })
}

func (p place) open() (store.Store, error) {
	if p.kind == "sqlite" {
		return sqlite.Open(p.dsn)
	}
	return postgres.Open(p.dsn)
}

func (p place) store(t *testing.T) store.Store {
	t.Helper()
	st, err := p.open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

// program is a client as another language has it.
type program struct {
	t  *testing.T
	db *sql.DB
	p  place
}

func (p place) program(t *testing.T) *program {
	t.Helper()
	driver, dsn := "postgres", p.dsn
	if p.kind == "sqlite" {
		driver, dsn = "sqlite3", "file:"+p.dsn+"?_busy_timeout=20000&_txlock=immediate&_journal_mode=WAL"
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &program{t: t, db: db, p: p}
}

// text writes the parameters of a statement as the database has them.
func (p place) text(statement string) string {
	if p.kind == "sqlite" {
		return statement
	}
	for n := 1; strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", fmt.Sprintf("$%d", n), 1)
	}
	return statement
}

func (c *program) exec(statement string, args ...any) {
	c.t.Helper()
	_, err := c.db.Exec(c.p.text(statement), args...)
	require.NoError(c.t, err)
}

func (c *program) int(statement string, args ...any) (n int) {
	c.t.Helper()
	require.NoError(c.t, c.db.QueryRow(c.p.text(statement), args...).Scan(&n))
	return n
}

// until waits until a statement returns 1.
func (c *program) until(statement string, args ...any) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.int(statement, args...) == 1 }, 30*time.Second, 2*time.Millisecond, statement)
}

// refused returns what a request's row says.
func (c *program) answer(where string, args ...any) (run, code, text string) {
	c.t.Helper()
	c.until(`SELECT count(*) FROM durable_requests WHERE done_at IS NOT NULL AND `+where, args...)
	require.NoError(c.t, c.db.QueryRow(c.p.text(`SELECT coalesce(run_id, ''), coalesce(code, ''), coalesce(error, '') FROM durable_requests WHERE `+where), args...).Scan(&run, &code, &text))
	return run, code, text
}

// order is the input of the workflow of these tests.
type order struct {
	Item string `json:"item"`
	N    int    `json:"n"`
}

// ship waits for a word as often as the order says and returns them all.
var ship = durable.Define("ship", func(ctx context.Context, o order) (string, error) {
	said := o.Item
	for range o.N {
		word, err := durable.Await[string](ctx, "word")
		if err != nil {
			return "", err
		}
		said += " " + word
	}
	return said, nil
})

func options(defs ...durable.Definition) durable.Options {
	return durable.Options{Workflows: defs, Lease: 5 * time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// engine opens an engine that executes.
func (p place) engine(t *testing.T, o durable.Options) *durable.Engine {
	t.Helper()
	eng, err := durable.Open(t.Context(), p.store(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	_, err = eng.Recover(t.Context())
	require.NoError(t, err)
	return eng
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}
