package everystore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Those who wait for runs elsewhere share their looks. What is wrong with one run does not concern
// those who wait for another.
func TestAWaiterIsNotToldOfTheDamageOfAnotherRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	open := func() (store.Store, error) { return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off}) }
	outside, err := open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, outside.Close()) })
	d := &data{place: place{open: open}, outside: outside}

	ends := make(chan struct{})
	held := durable.Define("held", func(ctx context.Context, n int) (int, error) {
		return durable.Step(ctx, "hold", func(context.Context) (int, error) { <-ends; return n, nil })
	})
	steps := durable.Define("steps", func(ctx context.Context, n int) (int, error) {
		for i := 0; ; i++ { // until it is paused
			if err := durable.Do(ctx, fmt.Sprint("step ", i), func(context.Context) error { return nil }); err != nil {
				return n, err
			}
		}
	})
	there, here := d.program(t, held, steps), d.program(t)
	_, err = held.Start(there, "sound", 7)
	require.NoError(t, err)
	_, err = steps.Start(there, "damaged", 0)
	require.NoError(t, err)
	d.awaits(t, "sound", store.Running)
	d.awaits(t, "damaged", store.Running)
	require.NoError(t, there.eng.Pause(there, "damaged", "lunch"))
	d.awaits(t, "damaged", store.Interrupted)
	damageRow(t, path, "damaged")
	_, err = outside.List(t.Context(), store.Filter{IDs: []string{"sound", "damaged"}})
	require.Error(t, err, "no page has both")

	type outcome struct {
		n   int
		err error
	}
	told := make(chan outcome, 1)
	for id, then := range map[string]func(outcome){"sound": func(o outcome) { told <- o }, "damaged": func(outcome) {}} {
		h, err := held.Handle(here, id)
		require.NoError(t, err)
		go func() {
			n, err := h.Wait(here)
			then(outcome{n, err})
		}()
	}
	select {
	case o := <-told:
		require.NoError(t, o.err, "before the run has ended")
		require.Fail(t, "the run has not ended")
	case <-time.After(500 * time.Millisecond): // after three looks at both
	}
	close(ends)
	require.Equal(t, outcome{7, nil}, <-told)
}

// damageRow makes a column of a run hold what its type forbids, as a broken disk may.
func damageRow(t *testing.T, path, id string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=20000")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, s := range []string{
		`PRAGMA writable_schema = on`,
		`UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'durable_runs'`,
		`PRAGMA writable_schema = reset`,
	} {
		_, err = db.Exec(s)
		require.NoError(t, err, s)
	}
	_, err = db.Exec(`UPDATE durable_runs SET archived_seq = 'torn' WHERE id = ?`, id)
	require.NoError(t, err)
}
