package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// caseSchemas gives each case of the suite a schema, mostly one that an earlier case has left
// and that is emptied first: making the tables is a quarter of what a case costs the server.
type caseSchemas struct {
	driver, dsn string
	asMade      string // the fingerprint of a schema that nobody has used

	mu   sync.Mutex
	made int
	left []string // the first has been unused for longest
}

// madeAnew are the sections of the suite whose cases open new data, kill processes that use
// them, or copy them: they get a schema that does not exist yet.
var madeAnew = []string{"/store/", "/process/", "/care/"}

func newCaseSchemas(t testing.TB, driver, dsn string) *caseSchemas {
	s := &caseSchemas{driver: driver, dsn: dsn}
	name := s.name()
	st, err := openWith(driver, dsn, postgres.Options{Schema: name})
	require.NoError(t, err)
	require.NoError(t, st.Close())
	require.NoError(t, s.connect(t, name).Get(&s.asMade, fingerprint))
	return s
}

// dsnOf names the schema to the server, which is asked whether sessions on it are left.
func (s *caseSchemas) dsnOf(schema string) string {
	return pgtest.With(s.dsn, "application_name", schema)
}

func (s *caseSchemas) connect(t testing.TB, schema string) *sqlx.DB {
	return rawWith(t, s.driver, pgtest.With(s.dsnOf(schema), "search_path", schema))
}

func (s *caseSchemas) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("case_%d", s.made)
}

// take returns an empty schema, and connections to it for what bypasses the store.
func (s *caseSchemas) take(t testing.TB) (schema string, db *sqlx.DB) {
	anew := false
	for _, section := range madeAnew {
		anew = anew || strings.Contains(t.Name(), section)
	}
	if anew {
		schema = s.name()
		return schema, s.connect(t, schema)
	}
	for schema == "" {
		s.mu.Lock()
		if len(s.left) > 0 {
			schema, s.left = s.left[0], s.left[1:]
		}
		s.mu.Unlock()
		if schema == "" {
			schema = s.name()
			db = s.connect(t, schema)
		} else if db = s.connect(t, schema); !s.emptied(db) {
			schema = ""
		}
	}
	// Runs once the case has closed its handles.
	t.Cleanup(func() {
		if !t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.left = append(s.left, schema)
		}
	})
	return schema, db
}

// emptied empties a schema. It reports false, and the schema is never used again, unless it is
// then as it was made, but for dead rows and statistics.
func (s *caseSchemas) emptied(db *sqlx.DB) bool {
	var now string
	if _, err := db.Exec(empty); err != nil {
		return false
	}
	return db.Get(&now, fingerprint) == nil && now == s.asMade
}

// empty deletes all rows but those about the schema itself, and begins to count anew. It fails
// if another session is left on the schema, or if the schema was never made.
const empty = `DO $$
DECLARE c record;
BEGIN
  IF EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = current_schema() AND pid <> pg_backend_pid()) THEN
    RAISE 'a session is left';
  END IF;
  FOR c IN SELECT oid::regclass AS name, relkind FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'S') AND relname <> 'durable_schema' LOOP
    IF c.relkind = 'S' THEN
      PERFORM setval(c.name, 1, false);
    ELSE
      EXECUTE format('DELETE FROM %s', c.name);
    END IF;
  END LOOP;
END $$`

// fingerprint is what a schema consists of, and what it says of itself.
const fingerprint = `SELECT md5((SELECT string_agg(format('%s %s %s', relname, relkind, relnatts), ',' ORDER BY relname) FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
  || (SELECT string_agg(format('%s %s', tgname, tgenabled), ',' ORDER BY tgname) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = current_schema()::regnamespace)
  || (SELECT string_agg(format('%s %s', version, name), ',' ORDER BY version) FROM durable_schema))`

func TestTheNextCaseGetsTheSchemaOfTheLastOneEmptyAndAsItWasMade(t *testing.T) {
	schemas := newCaseSchemas(t, "postgres", pgtest.DSN(t))
	use := func(name string, do func(st *postgres.Store, schema string, db *sqlx.DB)) (schema string) {
		t.Run(name, func(t *testing.T) {
			var db *sqlx.DB
			schema, db = schemas.take(t)
			do(openOptions(t, schemas.dsnOf(schema), postgres.Options{Schema: schema}), schema, db)
		})
		return schema
	}
	runs := func(db *sqlx.DB) (list []int64) {
		require.NoError(t, db.Select(&list, "SELECT no FROM durable_runs"))
		return list
	}
	fill := func(st *postgres.Store, _ string, db *sqlx.DB) {
		require.Empty(t, runs(db))
		commit(t, st, (&runLog{id: "r"}).create(""))
		require.Equal(t, []int64{1}, runs(db))
	}
	free := func(schema string) func() bool {
		db := schemas.connect(t, "look")
		return func() bool {
			var n int
			require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", schema))
			return n == 0
		}
	}
	first := use("first", fill)
	require.Eventually(t, free(first), 20*time.Second, 5*time.Millisecond)
	require.Equal(t, first, use("second", func(st *postgres.Store, schema string, db *sqlx.DB) {
		fill(st, schema, db)
		db.MustExec("INSERT INTO durable_schema (version, name, applied_at) VALUES (9999, 'future', 0)")
	}))
	require.Eventually(t, free(first), 20*time.Second, 5*time.Millisecond)
	third := use("third", fill)
	require.NotEqual(t, first, third, "it is not as it was made")
	require.Eventually(t, free(third), 20*time.Second, 5*time.Millisecond)
	db := schemas.connect(t, third)
	require.NoError(t, db.Ping())
	require.NotEqual(t, third, use("fourth", fill), "another session is left on it")
	require.NotContains(t, schemas.left, third)
	anew := use("store/fifth", fill)
	require.NotContains(t, schemas.left, anew)
}
