//go:build cgo

package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestDataFilesAreTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows has no such mode: not checked")
		return
	}
	path := file(t)
	st := open(t, path, sqlite.Options{})
	start(t, st, "r")
	beat(t, st, executor("e"))
	listen(t, st)
	want := map[string]fs.FileMode{"app.db": 0o600, "app.db-wal": 0o600, "app.db-shm": 0o600, "app.db.executors": fs.ModeDir | 0o700}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	for _, f := range lockFiles(t, path) {
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode())
	}
	// A file that was there keeps its mode.
	shared := file(t)
	require.NoError(t, os.WriteFile(shared, nil, 0o640))
	open(t, shared, sqlite.Options{})
	info, err := os.Stat(shared)
	require.NoError(t, err)
	require.EqualValues(t, 0o640, info.Mode())
}

func TestAPathIsTakenAsItIs(t *testing.T) {
	for _, name := range []string{"with space.db", "what?mode=memory&x=1.db", "100%25.db", "a#b.db", "ä\u2603.db", "a;b'c\"d.db"} {
		path := filepath.Join(t.TempDir(), name)
		st, err := sqlite.Open(path)
		require.NoError(t, err, name)
		start(t, st, "r")
		require.NoError(t, st.Close())
		_, err = os.Stat(path)
		require.NoError(t, err, name)
		load(t, open(t, path, sqlite.Options{}), "r")
	}
}

func TestTwoNamesOfAFileAreOneStore(t *testing.T) {
	path := file(t)
	link := filepath.Join(t.TempDir(), "link.db")
	a := open(t, path, sqlite.Options{})
	if err := os.Symlink(path, link); errors.Is(err, errors.ErrUnsupported) {
		t.Log("no links here: not checked")
		return
	}
	b := open(t, link, sqlite.Options{})
	start(t, a, "r")
	load(t, b, "r")
	beat(t, a, executor("e"))
	require.Len(t, lockFiles(t, path), 1)
	list, err := b.Executors(t.Context())
	require.NoError(t, err)
	require.True(t, list[0].Live)
}

func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	noLeak(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 1000)), 0o600))
	for name, c := range map[string]struct {
		path string
		o    sqlite.Options
		want error
		says string
	}{
		"empty path":     {path: "", want: store.ErrInvalid, says: "empty"},
		"a DSN":          {path: "file:x.db?mode=ro", want: store.ErrInvalid, says: "plain path"},
		"the terminal's": {path: "sqlite:x.db", want: store.ErrInvalid, says: "plain path"},
		"NUL":            {path: "a\x00b", want: store.ErrInvalid},
		"a directory":    {path: dir, want: store.ErrInvalid, says: "directory"},
		"no directory":   {path: filepath.Join(dir, "none", "x.db"), want: fs.ErrNotExist},
		"not a database": {path: text, want: store.ErrCorrupt, says: "integrity_check"},
		"bad prefix":     {path: filepath.Join(dir, "p.db"), o: sqlite.Options{Prefix: "a; --"}, want: store.ErrInvalid, says: "prefix"},
		"bad mode":       {path: filepath.Join(dir, "m.db"), o: sqlite.Options{Synchronous: 7}, want: store.ErrInvalid},
		"bad readers":    {path: filepath.Join(dir, "r.db"), o: sqlite.Options{Readers: -1}, want: store.ErrInvalid},
	} {
		st, err := sqlite.OpenOptions(c.path, c.o)
		require.Nil(t, st, name)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestANewerSchemaIsRefusedAndLeftAlone(t *testing.T) {
	path := file(t)
	st, err := sqlite.Open(path)
	require.NoError(t, err)
	start(t, st, "r")
	require.NoError(t, st.Close())
	db := connect(t, path, "")
	_, err = db.Exec(`INSERT INTO durable_schema (version, name, applied_at) VALUES (1012, 'later', 0)`)
	require.NoError(t, err)
	_, err = sqlite.Open(path)
	var schema *store.SchemaError
	require.ErrorAs(t, err, &schema)
	require.Equal(t, store.SchemaError{Have: 1012, Know: newest(t)}, *schema)
	require.ErrorContains(t, err, path)
	require.Equal(t, newest(t)+1, value[int](t, db, `SELECT count(*) FROM durable_schema`))
}

func TestPrefixesKeepStoresApart(t *testing.T) {
	path := file(t)
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{Prefix: "app_"})
	start(t, a, "r")
	_, err := b.Load(t.Context(), "r", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound)
	start(t, b, "r")
	db := connect(t, path, "")
	require.Equal(t, 1, value[int](t, db, `SELECT count(*) FROM app_history WHERE run = 'r'`))
	require.Equal(t, 0, value[int](t, db, `SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'durable\_%' ESCAPE '\' AND name NOT LIKE 'app\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`))
}

func TestAProgramsOwnDatabaseHoldsTheStoreToo(t *testing.T) {
	noLeak(t)
	path := file(t)
	db, err := sqlx.Open("sqlite3", path)
	require.NoError(t, err)
	defer db.Close()
	db.MustExec(`CREATE TABLE orders (id TEXT PRIMARY KEY)`)
	st, err := sqlite.New(db, sqlite.Options{})
	require.NoError(t, err)
	start(t, st, "r")
	require.NoError(t, st.Close())
	require.NoError(t, db.Ping(), "it stays the caller's")
	require.Equal(t, 1, value[int](t, db.DB, `SELECT count(*) FROM durable_runs`))

	memory, err := sqlx.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	defer memory.Close()
	_, err = sqlite.New(memory, sqlite.Options{})
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestAChangeSharesTheFateOfTheUsersTransaction(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	l := start(t, st, "r")
	db := sqlx.NewDb(connect(t, path, "_txlock=immediate&_busy_timeout=5000"), "sqlite3")
	db.MustExec(`CREATE TABLE orders (id TEXT PRIMARY KEY)`)

	before := *l
	tx := db.MustBegin()
	tx.MustExec(`INSERT INTO orders VALUES ('a')`)
	require.NoError(t, st.CommitIn(t.Context(), tx, l.plain(2)))
	require.NoError(t, tx.Rollback())
	_, events := load(t, st, "r")
	require.Len(t, events, 1)

	*l = before
	c := l.plain(2)
	c.Row = &store.RowPatch{Reason: new("why"), Attributes: map[string]string{"a": "b"}}
	tx = db.MustBegin()
	tx.MustExec(`INSERT INTO orders VALUES ('b')`)
	require.NoError(t, st.CommitIn(t.Context(), tx.Tx, c))
	require.NoError(t, tx.Commit())
	h, events := load(t, st, "r")
	require.Len(t, events, 3)
	require.Equal(t, "why", h.Run.Reason)
	require.Equal(t, map[string]string{"a": "b"}, h.Run.Attributes)
	require.Equal(t, "b", value[string](t, db.DB, `SELECT group_concat(id) FROM orders`))

	tx = db.MustBegin()
	late := before.plain(1)
	late.Events[0].Sum++
	require.ErrorIs(t, st.CommitIn(t.Context(), tx, late), store.ErrFenced, "sent late")
	require.NoError(t, st.CommitIn(t.Context(), tx, c), "sent again (S6)")
	require.NoError(t, tx.Rollback())

	require.ErrorIs(t, st.CommitIn(t.Context(), "no transaction", c), store.ErrInvalid)
	var none *sqlx.Tx
	require.ErrorIs(t, st.CommitIn(t.Context(), none, c), store.ErrInvalid)
	other, err := connect(t, file(t), "").Begin()
	require.NoError(t, err)
	require.ErrorIs(t, st.CommitIn(t.Context(), other, c), store.ErrInvalid, "another file")
	require.NoError(t, other.Rollback())
}

func TestMemoryIsEachHandlesOwn(t *testing.T) {
	noLeak(t)
	a, b := open(t, ":memory:", sqlite.Options{}), open(t, ":memory:", sqlite.Options{})
	start(t, a, "r")
	_, err := b.Load(t.Context(), "r", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestEveryStatementIsServedByAnIndex(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	db := connect(t, path, "")
	for name, text := range st.Statements() {
		if name == "executors" || name == "queues_put" || name == "schedules" { // all of them, in the order of their keys
			continue
		}
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = 1
		}
		rows, err := db.Query("EXPLAIN QUERY PLAN "+text, args[:highest(text)]...)
		require.NoError(t, err, name)
		for rows.Next() {
			var id, parent, unused int
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			if name != "queue_parts_due" { // of the runs whose time has come alone
				require.NotContains(t, detail, "TEMP B-TREE", name)
			}
			if strings.HasPrefix(detail, "SCAN durable_") {
				require.Contains(t, detail, "USING INDEX", name)
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
}

// highest returns the highest number of a parameter in text.
func highest(text string) int {
	n := 0
	for i := 1; i < 100; i++ {
		for _, end := range []string{",", ")", " ", "\n"} {
			if strings.Contains(text+"\n", "?"+strconv.Itoa(i)+end) {
				n = i
			}
		}
	}
	return n
}
