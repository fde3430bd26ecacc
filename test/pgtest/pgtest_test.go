//go:build unix

package pgtest_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func query[T any](t *testing.T, db *sql.DB, q string) (v T) {
	t.Helper()
	require.NoError(t, db.QueryRow(q).Scan(&v))
	return v
}

func TestEachDSNIsAnEmptyDatabaseOfItsOwn(t *testing.T) {
	a, b := open(t, pgtest.DSN(t)), open(t, pgtest.DSN(t))
	_, err := a.Exec("CREATE TABLE t (n int)")
	require.NoError(t, err)
	require.True(t, query[bool](t, a, "SELECT to_regclass('t') IS NOT NULL"))
	require.False(t, query[bool](t, b, "SELECT to_regclass('t') IS NOT NULL"))
	require.Equal(t, "on", query[string](t, a, "SHOW fsync"))
}

// The memory is for what is made for tests; what is measured is on disk.
func TestAClusterForMeasurementsIsOnDisk(t *testing.T) {
	pgtest.Programs(t) // left out without a server
	c, err := pgtest.New()
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	db := open(t, c.DSN())
	require.NotContains(t, query[string](t, db, "SHOW data_directory"), "/dev/shm")
	require.Equal(t, "on", query[string](t, db, "SHOW fsync"))
}

func TestTheTemporaryFilesOfTestsAreInMemoryUntilTheyEnd(t *testing.T) {
	t.Setenv("TMPDIR", "")
	dir, remove := pgtest.MemoryTemp()
	leftOut, _ := pgtest.MemoryLeftOut()
	require.Equal(t, dir == "", leftOut != "", "make test says at its end what is left out")
	if dir == "" {
		t.Skip(leftOut)
	}
	fi, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|os.ModeSticky|0o777, fi.Mode(), "the server's user gets there too")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "left"), nil, 0o600))
	require.NoError(t, remove())
	require.NoDirExists(t, dir)

	t.Setenv("TMPDIR", t.TempDir())
	dir, _ = pgtest.MemoryTemp()
	require.Empty(t, dir, "TMPDIR names another place")
}

func TestADatabaseIsDroppedWithTheTest(t *testing.T) {
	pgtest.Programs(t) // left out without a server
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = pgtest.DSN(t)
		require.Equal(t, 1, query[int](t, open(t, dsn), "SELECT 1"))
	})
	require.ErrorContains(t, open(t, dsn).Ping(), "does not exist")
}

func TestASchemaStandsInWhereDatabasesCannotBeCreated(t *testing.T) {
	admin := pgtest.Start(t).DSN() // roles belong to a whole server
	db := open(t, admin)
	_, err := db.Exec("CREATE ROLE pgtest_poor LOGIN PASSWORD 'x'")
	require.NoError(t, err)
	_, err = db.Exec("DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO pgtest_poor', current_database()); END $$")
	require.NoError(t, err)
	// DSN reads the variable once per process, so ask another process.
	name := query[string](t, db, "SELECT current_database()")
	u := strings.Replace(pgtest.With(admin, "dbname", name), "postgres://", "", 1)
	poor := "postgres://pgtest_poor:x@" + u[strings.LastIndex(u, "@")+1:]
	out := child(t, "TestChildUsesADSN", pgtest.EnvDSN+"="+poor)
	require.Contains(t, out, "schema=durable_test_")
	require.Equal(t, 0, query[int](t, db, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'durable_test_%'"))
}

func TestChildUsesADSN(t *testing.T) {
	if os.Getenv("PGTEST_CHILD") == "" {
		return // run by TestASchemaStandsInWhereDatabasesCannotBeCreated
	}
	db := open(t, pgtest.DSN(t))
	fmt.Printf("schema=%s\n", query[string](t, db, "SELECT current_schema()"))
}

func TestSkipIsSaid(t *testing.T) {
	out := child(t, "TestChildUsesADSN", pgtest.EnvSkip+"=skip")
	require.Contains(t, out, "skipped because DURABLE_POSTGRES=skip")
}

func TestAMissingServerIsAnErrorThatSaysWhatToDo(t *testing.T) {
	out, err := command("TestChildUsesADSN", pgtest.EnvDSN+"=postgres://nobody:secret@127.0.0.1:1/x?sslmode=disable").CombinedOutput()
	require.Error(t, err, "must fail, not skip")
	require.Contains(t, string(out), "is DURABLE_POSTGRES_DSN right?")
	require.NotContains(t, string(out), "secret")
}

func TestAClusterSurvivesEveryWayToStopIt(t *testing.T) {
	c := pgtest.Start(t)
	db := open(t, c.DSN())
	_, err := db.Exec("CREATE TABLE t (n int)")
	require.NoError(t, err)
	stops := []func() error{
		func() error { return c.Stop(pgtest.Fast) },
		func() error { return c.Stop(pgtest.Immediate) },
		c.Kill9,
	}
	for i, stop := range stops {
		_, err := db.Exec("INSERT INTO t VALUES (1)")
		require.NoError(t, err)
		require.NoError(t, stop())
		require.Zero(t, c.PID())
		// The sessions of a killed server notice a moment later.
		require.Eventually(t, func() bool { return db.Ping() != nil }, time.Minute, time.Millisecond)
		require.NoError(t, c.Restart())
		require.Eventually(t, func() bool { return db.Ping() == nil }, time.Minute, 10*time.Millisecond)
		require.Equal(t, i+1, query[int](t, db, "SELECT count(*) FROM t"))
	}
}

func TestACloseLeavesNothing(t *testing.T) {
	pgtest.Programs(t) // left out without a server
	c, err := pgtest.New()
	require.NoError(t, err)
	pid := c.PID()
	dir := query[string](t, open(t, c.DSN()), "SHOW data_directory")
	require.NoError(t, c.Close())
	require.False(t, alive(pid))
	require.NoDirExists(t, filepath.Dir(dir))
}

func TestAClusterDoesNotOutliveAKilledProcess(t *testing.T) {
	pgtest.Programs(t) // left out without a server
	cmd := command("TestChildStartsAClusterAndHangs")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pid int
	var dir string
	in := bufio.NewScanner(stdout)
	for in.Scan() {
		if n, _ := fmt.Sscanf(in.Text(), "cluster %d %s", &pid, &dir); n == 2 {
			break
		}
	}
	require.True(t, alive(pid), "the child's server runs")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, 10*time.Millisecond, "the server must end")
	require.Eventually(t, func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) }, 20*time.Second, 10*time.Millisecond, "its data must go")
}

func TestChildStartsAClusterAndHangs(t *testing.T) {
	if os.Getenv("PGTEST_CHILD") == "" {
		return // run by TestAClusterDoesNotOutliveAKilledProcess
	}
	c := pgtest.Start(t)
	dir := query[string](t, open(t, c.DSN()), "SHOW data_directory")
	fmt.Printf("cluster %d %s\n", c.PID(), filepath.Dir(dir))
	select {}
}

// command runs one test of this binary in a process of its own.
func command(test string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), "PGTEST_CHILD=1", pgtest.EnvSkip+"="), env...)
	return cmd
}

func child(t *testing.T, test string, env ...string) string {
	t.Helper()
	out, err := command(test, env...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
