package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// What the schema may become one day: a column more, data rewritten.
const (
	widen   = `ALTER TABLE durable_runs ADD COLUMN note text NOT NULL DEFAULT 'none'; UPDATE durable_runs SET note = 'was ' || status;`
	rewrite = `CREATE TABLE public.durable_seen (n bigint PRIMARY KEY); INSERT INTO public.durable_seen SELECT count(*) FROM durable_events; UPDATE durable_runs SET archived_seq = archived_seq + 1`
	fails   = `UPDATE durable_runs SET note = 'half done'; INSERT INTO durable_nowhere VALUES (1)`
	forever = `UPDATE durable_runs SET note = 'half done'; SELECT pg_sleep(600)`
)

// now is the version of the schema that the program knows.
var now = postgres.Present

// whole is all that is read of a run.
type whole struct {
	Run      store.Run
	Inbox    []store.Message
	Branches []store.Branch
	Events   []store.Event
}

func allRuns(t testing.TB, s store.Store) map[string]whole {
	t.Helper()
	all := map[string]whole{}
	for f := (store.Filter{Limit: 1000}); ; {
		page, err := s.List(t.Context(), f)
		require.NoError(t, err)
		for _, r := range page.Runs {
			h, events := load(t, s, r.ID)
			sum := uint32(0)
			for i := range events {
				require.EqualValues(t, i+1, events[i].Seq)
				require.Equal(t, store.Seal(r.ID, sum, &events[i]), events[i].Sum)
				sum = events[i].Sum
			}
			all[r.ID] = whole{h.Run, h.Inbox, h.Branches, events}
		}
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}

// filled makes a database that the present program has used, and closes it.
func filled(t testing.TB) (dsn string, all map[string]whole) {
	t.Helper()
	dsn = pgtest.DSN(t)
	s, err := postgres.Open(dsn)
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c", "d"} {
		r := &runLog{id: id}
		commit(t, s, r.create(""))
		commit(t, s, r.step([]byte{0, 255}))
		c := r.step(nil)
		c.Hold = []string{"desk " + id}
		c.Send = []store.Message{{To: "a", Kind: store.KindSignal, Name: "n", ID: id}}
		c.Row = &store.RowPatch{Attributes: map[string]string{"k": id}}
		commit(t, s, c)
	}
	all = allRuns(t, s)
	require.NoError(t, s.Close())
	return dsn, all
}

func schemaOf(t testing.TB, dsn string, o postgres.Options) *postgres.Schema {
	t.Helper()
	sc, err := postgres.OpenSchema(dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sc.Close()) })
	return sc
}

// copies lists the schemas that hold copies.
func copies(t testing.TB, db *sqlx.DB) (names []string) {
	t.Helper()
	require.NoError(t, db.Select(&names, `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'holdfast\_%' ORDER BY nspname`))
	return names
}

func version(t testing.TB, db *sqlx.DB) (v int) {
	t.Helper()
	require.NoError(t, db.Get(&v, "SELECT max(version) FROM durable_schema"))
	return v
}

func TestAnUpgradeBacksUpFirstAndGoingBackIsARestore(t *testing.T) {
	dsn, before := filled(t)
	db := raw(t, dsn)
	later := postgres.Options{}.Later(widen, rewrite)
	sc := schemaOf(t, dsn, later)
	m, err := sc.Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{now, now + 2}, []int{m.From, m.To})
	require.Regexp(t, fmt.Sprintf(`^holdfast_backup_\w+_v%d_\d{8}t\d{6}_\d{6}$`, now), m.Backup)
	require.Equal(t, []string{m.Backup}, copies(t, db))
	var note string
	require.NoError(t, db.Get(&note, "SELECT note FROM durable_runs WHERE id = 'a'"))
	require.Equal(t, "was pending", note)
	again, err := sc.Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Migration{From: now + 2, To: now + 2}, again)

	// The new program works with it; the old one says why it does not.
	s := openOptions(t, dsn, later)
	r := &runLog{id: "since"}
	commit(t, s, r.create("me"))
	_, err = postgres.Open(dsn)
	require.ErrorContains(t, err, fmt.Sprintf("schema version %d is newer than version %d", now+2, now))
	old := schemaOf(t, dsn, postgres.Options{})
	_, err = old.Plan(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)
	_, err = old.Migrate(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)

	// Not while somebody works.
	_, err = s.Beat(t.Context(), store.Executor{ID: "alive", Lease: time.Hour})
	require.NoError(t, err)
	_, err = old.Restore(t.Context(), m.Backup)
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorContains(t, err, "in use by the executors alive")
	require.Equal(t, []string{m.Backup}, copies(t, db))
	_, err = s.Beat(t.Context(), store.Executor{ID: "alive", Leaving: true})
	require.NoError(t, err)

	var last int64
	require.NoError(t, db.Get(&last, "SELECT max(no) FROM durable_runs"))
	kept, err := old.Restore(t.Context(), m.Backup)
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`^holdfast_replaced_\w+_v%d_`, now+2), kept)
	back := openOptions(t, dsn, postgres.Options{})
	require.Equal(t, before, allRuns(t, back))
	commit(t, back, (&runLog{id: "more"}).create("me"))
	var no int64
	require.NoError(t, db.Get(&no, "SELECT no FROM durable_runs WHERE id = 'more'"))
	require.Greater(t, no, last, "run numbers are never used twice")

	// What belonged to the replaced state is fenced in what came back.
	require.ErrorIs(t, s.Commit(t.Context(), []store.Change{r.step(nil)})[0], store.ErrNotFound)
	var since int
	require.NoError(t, db.Get(&since, "SELECT count(*) FROM "+kept+".durable_history WHERE run = 'since'"))
	require.Equal(t, 1, since, "what was there is not lost")
	require.Equal(t, shape(t, raw(t, fresh1(t)), "public"), shape(t, db, "public"), "indexes and checks are those of a new database")
}

// fresh1 makes a database with a new schema.
func fresh1(t testing.TB) string {
	dsn := pgtest.DSN(t)
	openOptions(t, dsn, postgres.Options{})
	return dsn
}

// shape describes the tables, indexes, checks and views of a schema.
func shape(t testing.TB, db *sqlx.DB, schema string) (lines []string) {
	t.Helper()
	require.NoError(t, db.Select(&lines, `
		SELECT indexdef FROM pg_indexes WHERE schemaname = $1
		UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = to_regnamespace($1)
		UNION ALL SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || is_identity || ' ' || is_generated
			FROM information_schema.columns WHERE table_schema = $1
		ORDER BY 1`, schema))
	return lines
}

func TestADryRunSaysWhatWouldBeDoneAndChangesNothing(t *testing.T) {
	dsn, before := filled(t)
	sc := schemaOf(t, dsn, postgres.Options{}.Later(widen, rewrite, `CREATE INDEX durable_later ON durable_runs (workflow)`))
	p, err := sc.Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{now, now + 3, true, 3}, []any{p.Have, p.Know, p.Backup, len(p.Steps)})
	require.Equal(t, store.MigrationStep{Version: now + 1, Name: fmt.Sprint("later_", now+1), SQL: strings.ReplaceAll(widen, "durable_", `"public".durable_`), Rows: map[string]int64{"durable_runs": 4}}, p.Steps[0])
	schema := postgres.Options{Schema: "public"}.Later(widen, rewrite)
	p, err = schemaOf(t, dsn, schema).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"durable_runs": 4}, p.Steps[0].Rows)
	require.Equal(t, map[string]int64{"durable_runs": 4}, p.Steps[1].Rows)
	db := raw(t, dsn)
	require.Empty(t, copies(t, db))
	require.Equal(t, now, version(t, db))
	require.Equal(t, before, allRuns(t, openOptions(t, dsn, postgres.Options{})))

	p, err = schemaOf(t, dsn, postgres.Options{}).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.MigrationPlan{Have: now, Know: now}, p)
	p, err = schemaOf(t, dsn, postgres.Options{Schema: "not_yet"}).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{0, now, false, now}, []any{p.Have, p.Know, p.Backup, len(p.Steps)})
	var there bool
	require.NoError(t, db.Get(&there, "SELECT to_regnamespace('not_yet') IS NOT NULL"))
	require.False(t, there)
}

func TestAMigrationThatFailsLeavesTheStoreToTheProgramBefore(t *testing.T) {
	dsn, before := filled(t)
	db := raw(t, dsn)
	_, err := postgres.OpenOptions(dsn, postgres.Options{}.Later(widen, fails))
	require.ErrorContains(t, err, fmt.Sprint("later_", now+2))
	require.Equal(t, now, version(t, db))
	require.Empty(t, copies(t, db), "the backup is undone with what it was made for")
	s := openOptions(t, dsn, postgres.Options{})
	require.Equal(t, before, allRuns(t, s))
	commit(t, s, (&runLog{id: "since"}).create("me"))
	m, err := schemaOf(t, dsn, postgres.Options{}.Later(widen)).Migrate(t.Context())
	require.NoError(t, err, "a second try finishes")
	var n int
	require.NoError(t, db.Get(&n, "SELECT count(*) FROM "+m.Backup+".durable_runs"))
	require.Equal(t, 5, n)
}

func TestASessionThatEndsInTheMiddleOfAMigrationLeavesTheSchemaAsItWas(t *testing.T) {
	dsn, before := filled(t)
	db := raw(t, dsn)
	done := make(chan error, 1)
	go func() {
		s, err := postgres.OpenOptions(dsn, postgres.Options{}.Later(widen, forever))
		if err == nil {
			err = errors.Join(errors.New("it was opened"), s.Close())
		}
		done <- err
	}()
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, db.Get(&n, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%pg_sleep(600)%' AND wait_event = 'PgSleep'`))
		return n == 1
	}, 30*time.Second, 10*time.Millisecond)
	require.ErrorContains(t, <-done, fmt.Sprint("later_", now+2))
	require.Equal(t, now, version(t, db))
	require.Empty(t, copies(t, db))
	require.Equal(t, before, allRuns(t, openOptions(t, dsn, postgres.Options{})))
	openOptions(t, dsn, postgres.Options{}.Later(widen, rewrite))
	require.Equal(t, now+2, version(t, db))
	require.Len(t, copies(t, db), 1)
}

func TestProcessesThatUpgradeAtOnceDoItOnce(t *testing.T) {
	for _, level := range []string{"read committed", "serializable"} {
		dsn, _ := filled(t)
		dsn = pgtest.With(dsn, "default_transaction_isolation", level)
		later := postgres.Options{}.Later(widen, rewrite)
		errs := make([]error, 5)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				s, err := postgres.OpenOptions(dsn, later)
				if err == nil {
					err = s.Close()
				}
				errs[i] = err
			})
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(t, err, level)
		}
		require.Len(t, copies(t, raw(t, dsn)), 1, "one backup")
		h, _ := load(t, openOptions(t, dsn, later), "a")
		require.EqualValues(t, 1, h.Run.ArchivedSeq, "each step once")
	}
}

// An engine of the version before writes all the while: the backup has exactly
// what the migration began with, and the engine goes on behind it.
func TestAProcessOfTheVersionBeforeGoesOnAcrossAnUpgrade(t *testing.T) {
	dsn, _ := filled(t)
	old := openOptions(t, dsn, postgres.Options{})
	r := &runLog{id: "mine"}
	commit(t, old, r.create("me"))
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var written atomic.Int64
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			c := r.step([]byte("x"))
			c.Row = &store.RowPatch{Priority: new(int32(c.Events[0].Seq))}
			if err := old.Commit(t.Context(), []store.Change{c})[0]; err != nil {
				t.Errorf("commit %d: %v", i, err)
				return
			}
			written.Add(1)
		}
	})
	some := func() {
		before := written.Load()
		require.Eventually(t, func() bool { return written.Load() > before+20 || t.Failed() }, time.Minute, time.Millisecond)
	}
	some()
	later := postgres.Options{}.Later(widen, `ALTER TABLE durable_events ADD COLUMN more text`)
	m, err := schemaOf(t, dsn, later).Migrate(t.Context())
	require.NoError(t, err)
	some()
	close(stop)
	writing.Wait()
	db := raw(t, dsn)
	var agree bool
	require.NoError(t, db.Get(&agree, fmt.Sprintf(
		`SELECT (SELECT priority FROM %[1]s.durable_runs WHERE id = 'mine') = (SELECT max(e.seq) FROM %[1]s.durable_events e JOIN %[1]s.durable_runs r ON r.no = e.run_no WHERE r.id = 'mine')`, m.Backup)))
	require.True(t, agree, "the copy is of one moment")
	require.Equal(t, allRuns(t, old), allRuns(t, openOptions(t, dsn, later)))
	_, events := load(t, old, "mine")
	require.EqualValues(t, r.seq, len(events), "nothing acknowledged is lost")
}

func TestManualMigrationsAreLeftToTheOperator(t *testing.T) {
	dsn, before := filled(t)
	o := postgres.Options{ManualMigrations: true}.Later(widen)
	_, err := postgres.OpenOptions(dsn, o)
	var e *store.SchemaError
	require.ErrorAs(t, err, &e)
	require.Equal(t, []int{now, now + 1}, []int{e.Have, e.Know})
	require.ErrorContains(t, err, "call Migrate of postgres.OpenSchema")
	require.Equal(t, now, version(t, raw(t, dsn)))
	_, err = schemaOf(t, dsn, o).Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, allRuns(t, openOptions(t, dsn, o)))
	openOptions(t, pgtest.DSN(t), o) // a new database is nobody's to decide about
}

func TestABackupOfALiveStoreIsOfOneMoment(t *testing.T) {
	dsn, before := filled(t)
	s := openOptions(t, dsn, postgres.Options{})
	for _, bad := range []string{"", "pg_x", `a"b`, strings.Repeat("x", 64), "public"} {
		require.ErrorIs(t, s.Backup(t.Context(), bad), store.ErrInvalid, bad)
	}
	require.NoError(t, s.Backup(t.Context(), "Nightly 1"))
	require.ErrorIs(t, s.Backup(t.Context(), "Nightly 1"), store.ErrInvalid, "nothing is replaced")
	sc := schemaOf(t, dsn, postgres.Options{Schema: "elsewhere"})
	kept, err := sc.Restore(t.Context(), "Nightly 1")
	require.NoError(t, err)
	require.Empty(t, kept)
	require.Equal(t, before, allRuns(t, openOptions(t, dsn, postgres.Options{Schema: "elsewhere"})))
	for from, want := range map[string]error{"elsewhere": store.ErrInvalid, "none": store.ErrInvalid, "information_schema": store.ErrInvalid} {
		_, err := sc.Restore(t.Context(), from)
		require.ErrorIs(t, err, want, from)
	}
	raw(t, dsn).MustExec(`INSERT INTO "Nightly 1".durable_schema VALUES (7, 'later', 0)`)
	_, err = sc.Restore(t.Context(), "Nightly 1")
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, "restore this backup with the program that made it")
	require.ErrorIs(t, schemaOf(t, dsn, postgres.Options{Schema: "empty"}).Backup(t.Context(), "x"), store.ErrInvalid)
	require.Empty(t, copies(t, raw(t, dsn)))
}

// The server ends the session in the middle: at every statement of a restore.
func TestARestoreThatIsCutShortChangesNothing(t *testing.T) {
	dsn, before := filled(t)
	s := openOptions(t, dsn, postgres.Options{})
	require.NoError(t, s.Backup(t.Context(), "nightly"))
	commit(t, s, (&runLog{id: "since"}).create("me"))
	after := allRuns(t, s)
	db := raw(t, dsn)
	// A trigger on what is restored ends the session that fills it.
	for _, table := range []string{"durable_attributes", "durable_events", "durable_runs"} {
		db.MustExec(`CREATE OR REPLACE FUNCTION cut() RETURNS event_trigger LANGUAGE plpgsql AS $$
			BEGIN IF EXISTS (SELECT 1 FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE 'public.` + table + `')
			THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; END $$`)
		db.MustExec("CREATE EVENT TRIGGER cut ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION cut()")
		_, err := schemaOf(t, dsn, postgres.Options{}).Restore(t.Context(), "nightly")
		require.Error(t, err, table)
		db.MustExec("DROP EVENT TRIGGER cut")
		require.Equal(t, after, allRuns(t, s), table)
		require.Empty(t, copies(t, db))
	}
	_, err := schemaOf(t, dsn, postgres.Options{}).Restore(t.Context(), "nightly")
	require.NoError(t, err, "a second try finishes")
	require.Equal(t, before, allRuns(t, openOptions(t, dsn, postgres.Options{})))
}

// An append that is under way while its run is deleted leaves an event that
// nothing reads; maintenance removes it.
func TestMaintenanceRemovesWhatAppendsLeftBehindADeletion(t *testing.T) {
	dsn, before := filled(t)
	s := openOptions(t, dsn, postgres.Options{})
	db := raw(t, dsn)
	db.MustExec(`INSERT INTO durable_events SELECT 1000 + g, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum
		FROM durable_events, generate_series(1, 5) g WHERE run_no = (SELECT no FROM durable_runs WHERE id = 'a')`)
	require.NoError(t, s.Maintain(t.Context()))
	var n int
	require.NoError(t, db.Get(&n, "SELECT count(*) FROM durable_events WHERE run_no NOT IN (SELECT no FROM durable_runs)"))
	require.Zero(t, n)
	require.Equal(t, before, allRuns(t, s))
	require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_user_tables WHERE relname LIKE 'durable%' AND last_vacuum IS NOT NULL AND last_analyze IS NOT NULL"))
	require.Equal(t, 11, n)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Maintain(t.Context()), store.ErrClosed)
	require.ErrorIs(t, s.Backup(t.Context(), "x"), store.ErrClosed)
}

func TestNamesOfCopiesFit(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	require.Equal(t, "holdfast_backup_app_v12_20260102t030405_000006", postgres.CopySchema("backup", "app", 12, at))
	long := postgres.CopySchema("replaced", strings.Repeat("ü", 31), 1, at)
	require.LessOrEqual(t, len(long), 63)
	require.True(t, strings.HasSuffix(long, "ü_v1_20260102t030405_000006"), long)
}

// Every table of every version is one whose name statements put the schema
// before.
func TestEveryTableIsQualified(t *testing.T) {
	steps, err := sqlstore.ReadMigrations(os.DirFS("."), "migrations", nil)
	require.NoError(t, err)
	for v := range steps {
		for _, table := range sqlstore.Tables(steps, v+1) {
			require.True(t, postgres.Qualified(table), "add %s to tableNames", table)
		}
	}
}
