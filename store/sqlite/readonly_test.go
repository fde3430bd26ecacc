//go:build cgo

package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// lies returns the files of a directory, with what is in them.
func lies(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, n := range names {
		if n.IsDir() {
			files[n.Name()] = "a directory"
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, n.Name()))
		require.NoError(t, err)
		files[n.Name()] = string(b)
	}
	return files
}

// kept makes a store that nobody has open, and returns its file in a directory of its own.
func kept(t *testing.T) string {
	t.Helper()
	st, err := sqlite.Open(file(t))
	require.NoError(t, err)
	l := start(t, st, "r")
	commit(t, st, l.plain(300))
	path := file(t)
	require.NoError(t, st.Backup(t.Context(), path+".copy"))
	require.NoError(t, st.Close())
	// As a program leaves it: in WAL mode, without a WAL.
	st, err = sqlite.Open(path + ".copy")
	require.NoError(t, err)
	require.NoError(t, st.Close())
	require.NoError(t, os.Rename(path+".copy", path))
	return path
}

// A file that takes no writes is looked at, and stays as it is, with nothing beside it.
func TestAStoreOpenedReadOnlyWritesNothing(t *testing.T) {
	path := kept(t)
	before := lies(t, filepath.Dir(path))
	require.Len(t, before, 1)
	st, err := sqlite.OpenOptions(path, sqlite.Options{ReadOnly: true})
	require.NoError(t, err)
	ctx := t.Context()

	_, events := load(t, st, "r")
	require.Len(t, events, 301)
	page, err := st.List(ctx, store.Filter{WithLast: true})
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	n, err := st.Count(ctx, store.Filter{}, "")
	require.NoError(t, err)
	require.EqualValues(t, 1, n[""])
	for _, read := range []func() error{
		func() error { _, err := st.Executors(ctx); return err },
		func() error { _, err := st.Queues(ctx); return err },
		func() error { _, err := st.Schedules(ctx); return err },
		func() error { _, err := st.DueSchedules(ctx, 1); return err },
		func() error { _, err := st.RunKinds(ctx); return err },
	} {
		require.NoError(t, read())
	}
	for what, write := range writes(st, "r") {
		require.ErrorIs(t, write(), store.ErrReadOnly, what)
	}
	db, err := sqlx.Open("sqlite3", "file:"+path+"?mode=ro&immutable=1")
	require.NoError(t, err)
	defer db.Close()
	tx := db.MustBegin()
	_, c := create("other", nil)
	require.ErrorIs(t, st.CommitIn(ctx, tx, c), store.ErrReadOnly)
	require.NoError(t, tx.Rollback())
	require.NoError(t, st.Close())

	sc, err := sqlite.OpenSchema(path, sqlite.Options{ReadOnly: true})
	require.NoError(t, err)
	p, err := sc.Plan(ctx)
	require.NoError(t, err)
	require.Empty(t, p.Steps)
	_, err = sc.Migrate(ctx)
	require.ErrorIs(t, err, store.ErrReadOnly)
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, sc.Backup(ctx, copied))
	_, err = sc.Restore(ctx, copied)
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.Equal(t, before, lies(t, filepath.Dir(path)))

	_, err = sqlite.OpenOptions(path+".absent", sqlite.Options{ReadOnly: true})
	require.Error(t, err)
	_, err = sqlite.OpenOptions(":memory:", sqlite.Options{ReadOnly: true})
	require.Error(t, err)
	require.Equal(t, before, lies(t, filepath.Dir(path)), "a name that leads nowhere makes no file")
}

// writes are the calls that change something.
func writes(st interface {
	store.Store
	store.Queues
	store.Schedules
	store.Requests
	store.Transactor
	store.Maintainer
}, run string) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"Commit": func() error {
			_, c := create("other", nil)
			return st.Commit(ctx, []store.Change{c})[0]
		},
		"Claim": func() error {
			e := executor("e")
			_, err := st.Claim(ctx, store.Claim{Executor: e.ID, Serves: e.Serves, Max: 1, IDs: []string{run}, At: created})
			return err
		},
		"Beat":           func() error { _, err := st.Beat(ctx, executor("e")); return err },
		"leaving":        func() error { e := executor("e"); e.Leaving = true; _, err := st.Beat(ctx, e); return err },
		"Delete":         func() error { _, err := st.Delete(ctx, store.Deletion{RunIDs: []string{run}, Force: true}); return err },
		"PutQueue":       func() error { return st.PutQueue(ctx, store.Queue{Name: "q"}) },
		"DeleteSchedule": func() error { _, err := st.DeleteSchedule(ctx, "s"); return err },
		"DropRequests":   func() error { _, err := st.DropRequests(ctx, created, 1); return err },
		"BeginTx": func() error {
			tx, err := st.BeginTx(ctx)
			if err == nil {
				err = tx.Rollback()
			}
			return err
		},
		"Maintain": func() error { return st.Maintain(ctx) },
	}
}

// A file without locks must not be believed once somebody writes to it.
func TestAFileThatSomebodyBeginsToWriteIsNotReadOnAsItLay(t *testing.T) {
	path := kept(t)
	looking := open(t, path, sqlite.Options{ReadOnly: true})
	load(t, looking, "r")
	h, err := looking.Load(t.Context(), "r", store.Cursor{All: true})
	require.NoError(t, err)
	st := open(t, path, sqlite.Options{})
	start(t, st, "other")
	_, err = looking.List(t.Context(), store.Filter{})
	require.ErrorContains(t, err, "a program has begun to write to it while it was looked at")
	var last error
	for _, last = range h.Events {
	}
	require.ErrorContains(t, last, "a program has begun to write to it while it was looked at")

	again := open(t, path, sqlite.Options{ReadOnly: true})
	load(t, again, "other")
	start(t, st, "third")
	load(t, again, "third") // beside a program it reads on
}

// A schema that is not this program's is refused, and neither made nor migrated.
func TestAStoreOpenedReadOnlyKeepsItsSchema(t *testing.T) {
	golden, err := os.ReadFile("testdata/v1.db")
	require.NoError(t, err)
	for name, content := range map[string][]byte{"older": golden, "none": nil} {
		path := filepath.Join(t.TempDir(), name+".db")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err = sqlite.OpenOptions(path, sqlite.Options{ReadOnly: true})
		require.ErrorIs(t, err, store.ErrSchema, name)
		require.Equal(t, map[string]string{name + ".db": string(content)}, lies(t, filepath.Dir(path)))
	}
}

// Whether a file takes writes is asked without opening it.
func TestASchemaSaysWhetherItsFileTakesWrites(t *testing.T) {
	path := kept(t)
	sc, err := sqlite.OpenSchema(path, sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, sc.TakesWrites(t.Context()))
	if os.Geteuid() == 0 {
		return // who may write everything; the terminal's tests ask as another user
	}
	require.NoError(t, os.Chmod(path, 0o444))
	require.ErrorIs(t, sc.TakesWrites(t.Context()), store.ErrReadOnly)
	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o555))
	defer os.Chmod(filepath.Dir(path), 0o755)
	require.ErrorIs(t, sc.TakesWrites(t.Context()), store.ErrReadOnly)
}
