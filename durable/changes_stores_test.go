//go:build !race

// The race detector finds what there is in the engine with the same table in
// memory, at a tenth of the time.

package durable_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A SQLite file lives in virtual time, too, as long as it is opened and closed
// in the bubble: every row of the table is tried on it, those that sleep for
// days among them. Nothing else looks at the file, so nobody watches it.
var onFile = sqlite.Options{Synchronous: sqlite.Off, Watch: -1}

func TestEveryEditAtEveryMomentEndsRightOrStopsByNameOnSQLite(t *testing.T) {
	// A new file is a copy of this one, which has its tables already.
	empty := filepath.Join(t.TempDir(), "empty.db")
	st, err := sqlite.OpenOptions(empty, onFile)
	require.NoError(t, err)
	require.NoError(t, st.Close())
	image, err := os.ReadFile(empty)
	require.NoError(t, err)
	var total atomic.Int64
	t.Run("edits", func(t *testing.T) {
		for _, e := range edits() {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					files := 0
					x := &trial{edit: e, fresh: func(t require.TestingT) *ground {
						files++
						return onSQLite(t, filepath.Join(dir, fmt.Sprintf("%d.db", files)), image)
					}}
					total.Add(int64(x.everywhere(t)))
				})
			})
		}
	})
	t.Logf("%d edits at %d moments", len(edits()), total.Load())
}

func onSQLite(t require.TestingT, path string, image []byte) *ground {
	require.NoError(t, os.WriteFile(path, image, 0o600))
	open := func(t require.TestingT) *sqlite.Store {
		st, err := sqlite.OpenOptions(path, onFile)
		require.NoError(t, err)
		return st
	}
	look := open(t)
	return &ground{
		look: look,
		enter: func(t require.TestingT) (store.Store, func()) {
			st := open(t)
			return st, func() { require.NoError(t, st.Close()) }
		},
		bury:     func(require.TestingT) { time.Sleep(2 * rareBeats) },
		lease:    rareBeats, // each beat of a virtual week is a write
		patience: 30 * 24 * time.Hour,
		close: func(t require.TestingT) {
			require.NoError(t, look.Close())
			require.NoError(t, os.Remove(path))
		},
	}
}

// onServer are the rows that are tried on a PostgreSQL server: each kind of call
// is in one of them, and each way to stop. There time is real, so that the rows
// that sleep for hours are left to memory and SQLite.
var onServer = []string{
	"rename a step, with declared names",
	"insert with Patched",
	"Patched is taken away",
	"another kind, matched by name",
	"a retry becomes a step",
	"insert a Once",
	"a wait gets a time limit",
	"a child gets another name",
	"a loop becomes a Map",
	"rename a step in a branch",
	"replace an item",
	"add a compensation",
	"a result gets another type",
	"a step works on something else",
}

func TestEditsAtEveryMomentEndRightOrStopByNameOnPostgreSQL(t *testing.T) {
	schemas := runtime.GOMAXPROCS(0) // go test has no more trials than that at a time
	dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off")
	free := make(chan *ground, schemas)
	for n := range schemas {
		g := onPostgres(t, dsn, fmt.Sprintf("data_%d", n))
		release := g.close
		g.close = func(t require.TestingT) { release(t); free <- g }
		free <- g
	}
	list := edits()
	for _, name := range onServer {
		require.True(t, slices.ContainsFunc(list, func(e edit) bool { return e.name == name }), "no such edit: %s", name)
	}
	var total atomic.Int64
	t.Run("edits", func(t *testing.T) {
		for _, e := range list {
			if slices.Contains(onServer, e.name) {
				t.Run(e.name, func(t *testing.T) {
					t.Parallel()
					x := &trial{edit: e, fresh: func(require.TestingT) *ground { return <-free }}
					total.Add(int64(x.everywhere(t)))
				})
			}
		}
	})
	t.Logf("%d edits at %d moments", len(onServer), total.Load())
}

// onPostgres is a schema that one trial after the other uses. Handles stay open:
// each costs connections. The processes take turns on two of them.
func onPostgres(t *testing.T, dsn, schema string) *ground {
	var handles [3]store.Store
	for i := range handles {
		st, err := postgres.OpenOptions(dsn, postgres.Options{Schema: schema, Writers: 2})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		handles[i] = st
	}
	look, turns := handles[2], 0
	g := &ground{look: look, patience: time.Minute}
	g.enter = func(require.TestingT) (store.Store, func()) {
		turns++
		return handles[turns%2], func() {}
	}
	// To wait for a lease costs more than all the rest. What comes of one that
	// runs out is shown by test/everystore; here it is given up by name.
	g.bury = func(t require.TestingT) {
		list, err := look.Executors(context.Background())
		require.NoError(t, err)
		for _, x := range list {
			x.Leaving = true
			_, err := look.Beat(context.Background(), x)
			require.NoError(t, err)
		}
	}
	g.close = func(t require.TestingT) {
		g.bury(t)
		p, err := look.List(context.Background(), store.Filter{})
		require.NoError(t, err)
		d := store.Deletion{Force: true}
		for i := range p.Runs {
			d.RunIDs = append(d.RunIDs, p.Runs[i].ID)
		}
		_, err = look.Delete(context.Background(), d)
		require.NoError(t, err)
	}
	return g
}
