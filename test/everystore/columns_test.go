package everystore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A database is a store, and the way in behind its back.
type database struct {
	name  string
	st    store.Store
	db    *sql.DB
	param func(n int) string
	// columns lists, as "table.column", what the database has for runs.
	columns string
}

// databases opens an empty database of each kind that has one.
func databases(t *testing.T) []*database {
	t.Helper()
	dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off") // first: without a server nothing is opened
	path := filepath.Join(t.TempDir(), "app.db")
	lite, err := sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off})
	require.NoError(t, err)
	liteDB, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000")
	require.NoError(t, err)
	pg, err := postgres.OpenOptions(dsn, postgres.Options{Schema: "data", Writers: 2})
	require.NoError(t, err)
	pgDB, err := sql.Open("postgres", pgtest.With(dsn, "search_path", "data"))
	require.NoError(t, err)
	list := []*database{
		{"sqlite", lite, liteDB, func(int) string { return "?" }, `
			SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
			WHERE m.type = 'table' AND m.name LIKE 'durable_%' AND c.hidden = 0 ORDER BY 1, c.cid`},
		{"postgres", pg, pgDB, func(n int) string { return fmt.Sprintf("$%d", n) }, `
			SELECT c.table_name, c.column_name FROM information_schema.columns AS c JOIN information_schema.tables AS t USING (table_schema, table_name)
			WHERE c.table_schema = 'data' AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER' ORDER BY 1, c.ordinal_position`},
	}
	t.Cleanup(func() {
		for _, d := range list {
			require.NoError(t, d.db.Close())
			require.NoError(t, d.st.Close())
		}
	})
	return list
}

// rowsOfRun say where the rows of a run stand: a condition that the run's number, %d,
// makes whole.
var rowsOfRun = map[string]map[string]string{
	"sqlite": {
		"runs": "no = %d", "events": "place >> 28 = %d", "branches": "run_no = %d", "inbox": "run_no = %d", "attributes": "run_no = %d", "holds": "run_no = %d",
	},
	"postgres": {
		"runs": "no = %d", "events": "run_no = %d", "branches": "run_no = %d", "inbox": "run_no = %d", "attributes": "run_no = %d", "holds": "run_no = %d",
	},
}

// notOfARun are the tables that hold nothing of a run.
var notOfARun = map[string]string{
	"executors":   "who lives, and until when; a run is fenced by its epoch whatever stands there",
	"queues":      "the limits of queues, which belong to no run",
	"queue_begun": "when runs of a queue with a rate began; what is wrong there lets others begin sooner or later",
	"queue_turns": "whose turn it is in a queue",
	"schedules":   "what starts runs, and belongs to none",
	"requests":    "what programs ask for; once it is answered the run says what it is itself",
	"schema":      "the version of the schema, which Open checks",
	"meta":        "of the schema, which Open checks",
	"numbers":     "the number of the next run, a copy of which a unique index refuses",
}

// harmlessColumns are those in which one other value is not found, with the reason why
// no run goes wrong by it. A column that is neither found nor here fails the test.
var harmlessColumns = map[string]string{
	"runs.updated_at":     "people see it, and no execution looks at it",
	"runs.attributes":     "whether there are any is all that is looked at; without them, what is missing is found",
	"runs.archived_seq":   "within the log: what is in an archive no event says; no execution looks at it",
	"events.epoch":        "of an event that is not the last one: the fence is the epoch of the last, and of the row",
	"branches.created_at": "people see it, and nothing is decided by it",
	"sqlite inbox.run_no": "a message is found by its place; by this, a second one with its id is refused",
	"holds.key":           "no call of a store reads who holds a key; the first event of the run has its keys, and Resume and Repair take them again",
	"holds.name":          "as holds.key",
	"holds.run_no":        "as holds.key",
}

// A cell is one value in one row.
type cell struct {
	table, column string
	where         string // finds its row
}

// otherValues returns values to try in the place of one.
func otherValues(v any) []any {
	switch v := v.(type) {
	case int64:
		return []any{v + 1, v ^ 1, v - 1}
	case bool:
		return []any{!v}
	case string:
		return []any{v + "x", "failed"}
	case []byte:
		b := slices.Clone(v)
		if len(b) > 0 {
			b[len(b)/2] ^= 1
		}
		return []any{b}
	case nil:
		return []any{"x", []byte("x")}
	}
	return nil
}

// set puts a value into the cells of a row that the store does not know of.
func (d *database) set(c cell, to any) error {
	_, err := d.db.Exec(fmt.Sprintf("UPDATE durable_%s SET %s = %s WHERE %s", c.table, c.column, d.param(1), c.where), to)
	return err
}

// Whichever value of whichever column of a run is another one, Verify finds it, and the
// runs beside it are listed, loaded and taken up as if nothing were. A column that is
// added fails here until it is decided.
func TestEveryColumnOfARunThatIsNotWhatWasWrittenIsFound(t *testing.T) {
	flow := durable.Define("flow", func(ctx context.Context, _ int) (string, error) {
		for _, name := range []string{"a", "b"} {
			if _, err := durable.Step(ctx, name, func(context.Context) (string, error) { return name, nil }); err != nil {
				return "", err
			}
		}
		if _, err := durable.Await[string](ctx, "taken"); err != nil {
			return "", err
		}
		return durable.Await[string](ctx, "never")
	})
	for _, d := range databases(t) {
		t.Run(d.name, func(t *testing.T) {
			ctx, eng := engineOf(t, d.st, flow)
			_, err := flow.Start(ctx, "r", 1, durable.Attributes(map[string]string{"team": "blue"}), durable.Exclusive("desk"))
			require.NoError(t, err)
			// What nobody asks for comes first, so that the row of the last wait has seen it.
			require.NoError(t, durable.Signal(ctx, "r", "other", "x"))
			require.NoError(t, durable.Signal(ctx, "r", "taken", "x"))
			waits := func(id string) {
				require.Eventually(t, func() bool {
					h, err := d.st.Load(ctx, id, store.Cursor{NoEvents: true})
					return err == nil && h.Run.Status == store.Waiting && h.Run.Last.Type == store.WaitRequested && h.Run.Seen == h.Run.Inbox
				}, patience, 5*time.Millisecond)
			}
			waits("r")
			at, err := operate.On(eng).CheckpointOf(ctx, "r", "a")
			require.NoError(t, err)
			_, err = operate.On(eng).Jump(ctx, "r", at, operate.JumpOptions{})
			require.NoError(t, err)
			waits("r")
			for i := range 49 {
				_, err := flow.Start(ctx, fmt.Sprintf("well-%d", i), 1)
				require.NoError(t, err)
			}
			require.NoError(t, eng.Close())

			ctx, eng = engineOf(t, d.st)
			v, err := operate.On(eng).Verify(ctx, "r")
			require.NoError(t, err)
			require.Empty(t, v.Findings)
			found, refused, decided := 0, 0, map[string]bool{}
			for _, c := range d.cells(t, "r") {
				name := c.table + "." + c.column
				var was any
				require.NoError(t, d.db.QueryRow(fmt.Sprintf("SELECT %s FROM durable_%s WHERE %s", c.column, c.table, c.where)).Scan(&was), name)
				done := false
				for _, to := range otherValues(was) {
					back, err := d.damage(c, was, to)
					if err != nil {
						continue // the database does not take it: a check, or a key that is taken
					}
					done = true
					v, err := operate.On(eng).Verify(ctx, "r")
					gone := err != nil // its id is another one
					if !gone && len(v.Findings) == 0 {
						require.NotEmpty(t, harmlessColumns[name]+harmlessColumns[d.name+" "+name], "%s: %v instead of %v is not found", name, to, was)
						decided[name] = true
					} else {
						found++
					}
					d.well(t, ctx, eng, name)
					require.NoError(t, back(), name)
					break
				}
				if !done {
					refused++
				}
			}
			v, err = operate.On(eng).Verify(ctx, "r")
			require.NoError(t, err)
			require.Empty(t, v.Findings, "it was the damage that was found")
			require.Greater(t, found, 50)
			t.Logf("%d damages found, %d refused by the database, harmless: %v", found, refused, decided)
		})
	}
}

// damage sets a cell to another value and returns how it is set back, by a condition
// that finds the row although the cell may be part of its key.
func (d *database) damage(c cell, was, to any) (back func() error, err error) {
	if err := d.set(c, to); err != nil {
		return nil, err
	}
	return func() error {
		damaged := c
		damaged.where = strings.ReplaceAll(c.where, fmt.Sprintf("%s = %s", c.column, literal(was)), fmt.Sprintf("%s = %s", c.column, literal(to)))
		return d.set(damaged, was)
	}, nil
}

// literal is a value of a key in SQL.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	default:
		return fmt.Sprint(v)
	}
}

// keysOf are the columns that find a row.
var keysOf = map[string]map[string][]string{
	"sqlite":   {"runs": {"no"}, "events": {"place"}, "branches": {"run_no", "n"}, "inbox": {"place"}, "attributes": {"run_no", "name"}, "holds": {"key"}},
	"postgres": {"runs": {"no"}, "events": {"run_no", "seq"}, "branches": {"run_no", "n"}, "inbox": {"run_no", "seq"}, "attributes": {"run_no", "name"}, "holds": {"name"}},
}

// cells lists every column of every row of a run.
func (d *database) cells(t *testing.T, id string) (cells []cell) {
	t.Helper()
	var no int64
	require.NoError(t, d.db.QueryRow(fmt.Sprintf("SELECT no FROM durable_runs WHERE id = %s", d.param(1)), id).Scan(&no))
	columns := map[string][]string{}
	var tables []string
	rows, err := d.db.Query(d.columns)
	require.NoError(t, err)
	for rows.Next() {
		var table, column string
		require.NoError(t, rows.Scan(&table, &column))
		table = strings.TrimPrefix(table, "durable_")
		if !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
		columns[table] = append(columns[table], column)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	for _, table := range tables {
		of, ok := rowsOfRun[d.name][table]
		if !ok {
			require.NotEmpty(t, notOfARun[table], "is a run kept in durable_%s?", table)
			continue
		}
		list := d.wheres(t, table, fmt.Sprintf(of, no))
		require.NotEmpty(t, list, "the run has something in durable_%s", table)
		for _, where := range list {
			for _, column := range columns[table] {
				cells = append(cells, cell{table, column, where})
			}
		}
	}
	return cells
}

// wheres returns a condition for each row.
func (d *database) wheres(t *testing.T, table, of string) (list []string) {
	t.Helper()
	keys := keysOf[d.name][table]
	rows, err := d.db.Query(fmt.Sprintf("SELECT %s FROM durable_%s WHERE %s ORDER BY 1", strings.Join(keys, ", "), table, of))
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		values, to := make([]any, len(keys)), make([]any, len(keys))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(t, rows.Scan(to...))
		var parts []string
		for i, k := range keys {
			parts = append(parts, fmt.Sprintf("%s = %s", k, literal(values[i])))
		}
		list = append(list, strings.Join(parts, " AND "))
	}
	require.NoError(t, rows.Err())
	return list
}

// well: the runs beside a damaged one are there, and sound.
func (d *database) well(t *testing.T, ctx context.Context, eng *durable.Engine, name string) {
	t.Helper()
	page, err := eng.List(ctx, store.Filter{Limit: 100})
	require.NoError(t, err, name)
	sound := 0
	for _, r := range page.Runs {
		if strings.HasPrefix(r.ID, "well-") {
			sound++
		}
	}
	require.Equal(t, 49, sound, name)
	_, err = d.st.Load(ctx, "well-7", store.Cursor{})
	require.NoError(t, err, name)
	_, err = eng.Recover(ctx)
	require.NoError(t, err, name)
	v, err := operate.On(eng).Verify(ctx, "well-7")
	require.NoError(t, err, name)
	require.Empty(t, v.Findings, name)
}
