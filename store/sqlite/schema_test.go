//go:build cgo

package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// What the schema may become one day: a column more, data rewritten.
const (
	widen   = `ALTER TABLE durable_runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none'; UPDATE durable_runs SET note = 'was ' || status;`
	rewrite = `CREATE TABLE durable_seen (n INTEGER PRIMARY KEY); INSERT INTO durable_seen SELECT count(*) FROM durable_events; UPDATE durable_events SET data = data;
		UPDATE durable_runs SET archived_seq = archived_seq + 1`
	fails = `UPDATE durable_runs SET note = 'half done'; INSERT INTO durable_nowhere VALUES (1)`
	// forever does not end by itself.
	forever = `UPDATE durable_runs SET reason = 'half done'; CREATE TABLE durable_slow AS SELECT value FROM
		(WITH RECURSIVE c (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c LIMIT 100000000000) SELECT value FROM c)`
)

// used fills a store with some runs and returns what is in it.
func used(t testing.TB, st *sqlite.Store) map[string]whole {
	t.Helper()
	for _, id := range []string{"a", "b", "c"} {
		commit(t, st, start(t, st, id).plain(3))
	}
	c := start(t, st, "d").plain(1)
	c.Send = []store.Message{{To: "a", Kind: store.KindSignal, Name: "n", ID: "1", Payload: []byte{0, 255}}}
	c.Hold = []string{"desk"}
	commit(t, st, c)
	return everything(t, st)
}

// whole is all that is read of a run.
type whole struct {
	Run      store.Run
	Inbox    []store.Message
	Branches []store.Branch
	Events   []store.Event
}

func everything(t testing.TB, st store.Store) map[string]whole {
	t.Helper()
	all := map[string]whole{}
	for f := (store.Filter{Limit: 1000}); ; {
		page, err := st.List(t.Context(), f)
		require.NoError(t, err)
		for _, r := range page.Runs {
			h, events := load(t, st, r.ID)
			sound(t, r.ID, events)
			all[r.ID] = whole{h.Run, h.Inbox, h.Branches, events}
		}
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}

// filled makes a file that the present program has used, and closes it.
func filled(t testing.TB) (path string, all map[string]whole) {
	t.Helper()
	path = file(t)
	st, err := sqlite.Open(path)
	require.NoError(t, err)
	all = used(t, st)
	require.NoError(t, st.Close())
	return path, all
}

func schemaOf(t testing.TB, path string, o sqlite.Options) *sqlite.Schema {
	t.Helper()
	sc, err := sqlite.OpenSchema(path, o)
	require.NoError(t, err)
	return sc
}

// beside lists the copies beside a file.
func beside(t testing.TB, path, kind string) []string {
	t.Helper()
	names, err := filepath.Glob(path + ".v*" + kind)
	require.NoError(t, err)
	return names
}

// ask is value on a connection that is closed again: one that stays keeps a
// file in use.
func ask[T any](t testing.TB, path, query string) T {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	return value[T](t, db, query)
}

func version(t testing.TB, path string) int {
	return ask[int](t, path, `SELECT max(version) FROM durable_schema`)
}

// newest is the version of the schema that this program knows.
func newest(t testing.TB) int {
	t.Helper()
	p, err := schemaOf(t, file(t), sqlite.Options{}).Plan(t.Context())
	require.NoError(t, err)
	return p.Know
}

func TestAnUpgradeBacksUpFirstAndGoingBackIsARestore(t *testing.T) {
	path, before := filled(t)
	n := newest(t)
	later := sqlite.Options{}.Later(widen, rewrite)
	sc := schemaOf(t, path, later)
	m, err := sc.Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{n, n + 2}, []int{m.From, m.To})
	require.Positive(t, m.Took)
	require.Equal(t, []string{m.Backup}, beside(t, path, ".backup"))
	require.Regexp(t, fmt.Sprintf(`app\.db\.v%d-\d{8}T\d{6}\.\d{6}Z\.backup$`, n), m.Backup)
	require.Empty(t, beside(t, path, ".migrating"))
	info, err := os.Stat(m.Backup)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody but the owner can read it, like the file")

	require.Equal(t, "was pending", ask[string](t, path, `SELECT note FROM durable_runs WHERE id = 'a'`))
	again, err := sc.Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Migration{From: n + 2, To: n + 2}, again, "there is nothing more to do")

	// The new program works with it; the old one says why it does not.
	st := open(t, path, later)
	start(t, st, "since")
	_, err = sqlite.Open(path)
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, fmt.Sprintf("schema version %d is newer than version %d", n+2, n))
	require.ErrorContains(t, err, "restore the backup")

	old := schemaOf(t, path, sqlite.Options{})
	_, err = old.Plan(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)
	_, err = old.Migrate(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)
	_, err = old.Restore(t.Context(), m.Backup)
	require.ErrorContains(t, err, "stop every program that has it open")
	require.NoError(t, st.Close())

	kept, err := old.Restore(t.Context(), m.Backup)
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`app\.db\.v%d-.*\.replaced$`, n+2), kept)
	st = open(t, path, sqlite.Options{})
	require.Equal(t, before, everything(t, st))
	start(t, st, "more")
	require.FileExists(t, m.Backup, "a backup stays")

	// And what was there is not lost either.
	there := open(t, kept, later)
	require.Len(t, everything(t, there), len(before)+1)
}

func TestADryRunSaysWhatWouldBeDoneAndChangesNothing(t *testing.T) {
	path, before := filled(t)
	n := newest(t)
	bytes, err := os.ReadFile(path)
	require.NoError(t, err)
	sc := schemaOf(t, path, sqlite.Options{}.Later(widen, rewrite, `CREATE INDEX durable_later ON durable_runs (workflow)`))
	p, err := sc.Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{n, n + 3, true}, []any{p.Have, p.Know, p.Backup})
	require.Len(t, p.Steps, 3)
	require.Equal(t, store.MigrationStep{Version: n + 1, Name: fmt.Sprint("later_", n+1), SQL: widen, Rows: map[string]int64{"durable_runs": 4}}, p.Steps[0])
	require.Equal(t, map[string]int64{"durable_events": 14, "durable_runs": 4}, p.Steps[1].Rows, "a table of the step's own is not among them")
	require.Empty(t, p.Steps[2].Rows)

	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, bytes, now)
	require.Empty(t, beside(t, path, ""))
	require.Equal(t, before, everything(t, open(t, path, sqlite.Options{})))

	p, err = schemaOf(t, path, sqlite.Options{}).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.MigrationPlan{Have: n, Know: n}, p, "nothing to do")
	p, err = schemaOf(t, path, sqlite.Options{NoMigrationBackup: true}.Later(widen)).Plan(t.Context())
	require.NoError(t, err)
	require.False(t, p.Backup)

	missing := file(t)
	p, err = schemaOf(t, missing, sqlite.Options{}).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{0, n, false, n}, []any{p.Have, p.Know, p.Backup, len(p.Steps)})
	require.NoFileExists(t, missing)
	_, err = sqlite.OpenSchema(":memory:", sqlite.Options{})
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestAMigrationThatFailsLeavesTheStoreToTheProgramBefore(t *testing.T) {
	path, before := filled(t)
	n := newest(t)
	for range 3 {
		_, err := sqlite.OpenOptions(path, sqlite.Options{}.Later(widen, fails))
		require.ErrorContains(t, err, fmt.Sprint("later_", n+2))
		require.Equal(t, n, version(t, path))
		require.Empty(t, beside(t, path, ".backup"))
		require.LessOrEqual(t, len(beside(t, path, ".migrating")), 1, "each try would leave a copy otherwise")
	}
	st := open(t, path, sqlite.Options{})
	require.Equal(t, before, everything(t, st))
	start(t, st, "since")
	require.NoError(t, st.Close())
	m, err := schemaOf(t, path, sqlite.Options{}.Later(widen)).Migrate(t.Context())
	require.NoError(t, err, "a second try finishes")
	require.Equal(t, []string{m.Backup}, beside(t, path, ""), "one copy, of the state it began with")
	require.Equal(t, 5, ask[int](t, m.Backup, `SELECT count(*) FROM durable_runs`))
}

// childUpgrades opens the file as a later program would; what that program
// knows is in the name.
func childUpgrades(path, name string) error {
	steps := map[string][]string{"forever": {widen, forever}, "widen": {widen, rewrite}}[name]
	st, err := sqlite.OpenOptions(path, sqlite.Options{}.Later(steps...))
	if err != nil {
		return err
	}
	fmt.Println("upgraded")
	return st.Close()
}

func TestAKillInTheMiddleOfAMigrationLeavesTheSchemaAsItWas(t *testing.T) {
	path, before := filled(t)
	n := newest(t)
	for range 2 {
		c := spawn(t, "upgrade", path, "forever")
		require.Eventually(t, func() bool {
			// The copy is whole before the first step begins, and the step is
			// in the middle once its pages spill over into the WAL.
			info, err := os.Stat(path + "-wal")
			return err == nil && info.Size() > 1<<20 && len(beside(t, path, ".migrating")) == 1
		}, 30*time.Second, time.Millisecond)
		c.kill(t)
		require.Equal(t, n, version(t, path))
	}
	st := open(t, path, sqlite.Options{})
	require.Equal(t, before, everything(t, st))
	require.NoError(t, st.Close())
	st = open(t, path, sqlite.Options{}.Later(widen, rewrite))
	start(t, st, "since")
	require.Len(t, beside(t, path, ""), 1)
	require.Len(t, beside(t, path, ".backup"), 1)
}

// The power goes between the commit and the backup's last name.
func TestABackupWhoseMigrationHappenedGetsItsNameLater(t *testing.T) {
	path, _ := filled(t)
	later := sqlite.Options{}.Later(widen)
	m, err := schemaOf(t, path, later).Migrate(t.Context())
	require.NoError(t, err)
	unsettled := strings.TrimSuffix(m.Backup, ".backup") + ".migrating"
	require.NoError(t, os.Rename(m.Backup, unsettled))
	other := path + ".vx-mine.migrating" // not one of ours
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	open(t, path, later)
	require.Equal(t, []string{m.Backup}, beside(t, path, ".backup"))
	require.NoFileExists(t, unsettled)
	require.FileExists(t, other)
}

func TestProcessesThatUpgradeAtOnceDoItOnce(t *testing.T) {
	path, _ := filled(t)
	var all []*child
	for range 4 {
		all = append(all, spawn(t, "upgrade", path, "widen"))
	}
	for _, c := range all {
		c.says(t, "upgraded")
		require.NoError(t, c.cmd.Wait())
	}
	require.Equal(t, newest(t)+2, version(t, path))
	require.Len(t, beside(t, path, ""), 1, "one backup")
	require.Len(t, beside(t, path, ".backup"), 1)
	h, _ := load(t, open(t, path, sqlite.Options{}.Later(widen, rewrite)), "a")
	require.EqualValues(t, 1, h.Run.ArchivedSeq, "each step once")
}

func TestManualMigrationsAreLeftToTheOperator(t *testing.T) {
	path, before := filled(t)
	n := newest(t)
	o := sqlite.Options{ManualMigrations: true}.Later(widen)
	for range 2 {
		_, err := sqlite.OpenOptions(path, o)
		require.ErrorIs(t, err, store.ErrSchema)
		var e *store.SchemaError
		require.ErrorAs(t, err, &e)
		require.Equal(t, []int{n, n + 1}, []int{e.Have, e.Know})
		require.ErrorContains(t, err, fmt.Sprintf("schema version %d is older than version %d, which this program needs: call Migrate of sqlite.OpenSchema", n, n+1))
		require.Equal(t, n, version(t, path))
	}
	_, err := schemaOf(t, path, o).Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, everything(t, open(t, path, o)))

	empty := file(t)
	start(t, open(t, empty, o), "a") // a new file is nobody's to decide about
	require.Equal(t, n+1, version(t, empty))
	_, err = sqlite.OpenOptions(path, sqlite.Options{ManualMigrations: true})
	require.ErrorContains(t, err, "is newer than")
}

// A rolling deploy: one process brings the schema up to date while another, of
// the version before, has the file open.
func TestAProcessOfTheVersionBeforeGoesOnAcrossAnUpgrade(t *testing.T) {
	path := file(t)
	old := open(t, path, sqlite.Options{})
	used(t, old)
	a := start(t, old, "mine")
	commit(t, old, a.plain(1))
	later := sqlite.Options{}.Later(widen, `CREATE INDEX durable_later ON durable_runs (workflow)`)
	fresh := open(t, path, later)
	commit(t, old, a.plain(2))
	b := start(t, old, "after")
	commit(t, fresh, b.plain(2))
	e := executor("old")
	beat(t, old, e)
	require.NotEmpty(t, claim(t, old, e))
	require.Equal(t, everything(t, fresh), everything(t, old))
}

// A backup that another has in hand, or that cannot be made, stops a migration
// before it begins.
func TestWithoutABackupThereIsNoMigration(t *testing.T) {
	path, before := filled(t)
	n := newest(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := sqlite.Options{Clock: func() time.Time { return at }}.Later(widen)
	inTheWay := fmt.Sprintf("%s.v%d-20260102T030405.000000Z.migrating", path, n)
	require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700))
	_, err := sqlite.OpenOptions(path, later)
	require.ErrorContains(t, err, "which was not begun")
	require.Equal(t, n, version(t, path))
	require.Equal(t, before, everything(t, open(t, path, sqlite.Options{})))
	later.NoMigrationBackup = true
	open(t, path, later)
	require.Equal(t, n+1, version(t, path))
}

func childRestores(path, from string) error {
	fmt.Println("begins")
	sc, err := sqlite.OpenSchema(path, sqlite.Options{})
	if err != nil {
		return err
	}
	_, err = sc.Restore(context.Background(), from)
	return err
}

func TestARestoreThatIsKilledLeavesTheOneOrTheOther(t *testing.T) {
	path, before := filled(t)
	backup := filepath.Join(t.TempDir(), "old.db")
	st := open(t, path, sqlite.Options{Synchronous: sqlite.Off})
	require.NoError(t, st.Backup(t.Context(), backup))
	for i := range 40 { // enough that putting it back takes a while
		l, c := create(fmt.Sprint("since-", i), nil)
		e := l.next(store.Event{Type: store.StepCompleted, Payload: make([]byte, 200_000)})
		c.Events = append(c.Events, e)
		commit(t, st, c)
	}
	after := everything(t, st)
	require.NoError(t, st.Close())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	found := map[int]int{}
	most := 20 * time.Millisecond // grows until some get through
	for range 30 {
		c := spawn(t, "restore", path, backup)
		c.says(t, "begins")
		time.Sleep(time.Duration(random.Int64N(int64(most))))
		c.kill(t)
		st := open(t, path, sqlite.Options{})
		now := everything(t, st)
		found[len(now)]++
		if len(now) == len(before) {
			require.Equal(t, before, now)
			require.NoError(t, st.Close())
			// Begin again with what there was.
			_, err := schemaOf(t, path, sqlite.Options{}).Restore(t.Context(), last(t, path))
			require.NoError(t, err)
			continue
		}
		require.Equal(t, after, now)
		require.NoError(t, st.Close())
		most += 10 * time.Millisecond
	}
	require.Equal(t, "ok", ask[string](t, path, "PRAGMA integrity_check"))
	t.Logf("runs found after a kill: %v", found)
	kept, err := schemaOf(t, path, sqlite.Options{}).Restore(t.Context(), backup)
	require.NoError(t, err, "a second try finishes")
	require.Equal(t, before, everything(t, open(t, path, sqlite.Options{})))
	require.Equal(t, after, everything(t, open(t, kept, sqlite.Options{})))
}

// last returns the newest copy of what a restore replaced that is whole.
func last(t testing.TB, path string) string {
	names := beside(t, path, ".replaced")
	for i := len(names) - 1; i >= 0; i-- {
		var ok string
		db := connect(t, names[i], "")
		if db.QueryRow("SELECT CASE WHEN count(*) > 10 THEN 'ok' END FROM durable_runs").Scan(&ok) == nil && ok == "ok" {
			return names[i]
		}
	}
	require.Fail(t, "what was replaced is not there")
	return ""
}

func TestWhatIsNoBackupIsNotRestored(t *testing.T) {
	path, before := filled(t)
	sc := schemaOf(t, path, sqlite.Options{})
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	require.NoError(t, sc.Backup(t.Context(), good))
	bytes, err := os.ReadFile(good)
	require.NoError(t, err)

	damaged := filepath.Join(dir, "damaged.db")
	for i := 3 * 4096; i < 4*4096; i++ {
		bytes[i] ^= 0x55
	}
	require.NoError(t, os.WriteFile(damaged, bytes, 0o600))
	text := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	_, err = connect(t, foreign, "").Exec("CREATE TABLE x (a)")
	require.NoError(t, err)

	for from, want := range map[string]error{
		damaged: store.ErrCorrupt, text: store.ErrCorrupt, foreign: store.ErrInvalid, path: store.ErrInvalid, "": store.ErrInvalid,
		filepath.Join(dir, "none.db"): os.ErrNotExist,
	} {
		_, err := sc.Restore(t.Context(), from)
		require.ErrorIs(t, err, want, from)
	}
	require.Empty(t, beside(t, path, ""))
	require.NoFileExists(t, filepath.Join(dir, "none.db"))
	require.Equal(t, before, everything(t, open(t, path, sqlite.Options{})))

	// The database of another program is not a store that can be replaced.
	_, err = schemaOf(t, foreign, sqlite.Options{}).Restore(t.Context(), good)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.Empty(t, beside(t, foreign, ".replaced"))
	var tables string
	require.NoError(t, connect(t, foreign, "").QueryRow("SELECT group_concat(name) FROM sqlite_master").Scan(&tables))
	require.Equal(t, "x", tables)

	// Into a place where there is nothing yet.
	moved := file(t)
	kept, err := schemaOf(t, moved, sqlite.Options{}).Restore(t.Context(), good)
	require.NoError(t, err)
	require.Empty(t, kept)
	require.Equal(t, before, everything(t, open(t, moved, sqlite.Options{})))

	// A plain copy of a file in WAL mode is a backup too, once it is closed.
	_, err = schemaOf(t, moved+"2", sqlite.Options{}).Restore(t.Context(), moved)
	require.NoError(t, err)
	require.Equal(t, before, everything(t, open(t, moved+"2", sqlite.Options{})))
}

// A program that could not open what it restores would leave nobody with a store.
func TestABackupOfANewerProgramIsNotRestored(t *testing.T) {
	path, before := filled(t)
	newer := file(t)
	later := schemaOf(t, newer, sqlite.Options{}.Later(widen))
	_, err := later.Restore(t.Context(), path)
	require.NoError(t, err)
	_, err = later.Migrate(t.Context())
	require.NoError(t, err)
	_, err = schemaOf(t, path, sqlite.Options{}).Restore(t.Context(), newer)
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, "with the program that made it")
	require.Empty(t, beside(t, path, ".replaced"))
	require.Equal(t, before, everything(t, open(t, path, sqlite.Options{})))
}
