//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// looks are the commands that only look, with a part of what they print.
var looks = map[string]string{
	"durable ls":                              "order-42\tcheckout\tinterrupted",
	"durable ls --resumable":                  "order-42",
	"durable show order-42":                   "bank: timeout",
	"durable sessions show order-42 --json":   `"status":"interrupted"`,
	"durable stuck; true":                     "order-42",
	"durable doctor; true":                    ", takes no writes",
	"durable checkpoints list order-42":       "reserve",
	"durable checkpoints validate":            "0 corrupt",
	"durable checkpoints export order-42":     `"workflow":"checkout"`,
	"durable branches order-42":               "current",
	"durable queues ls":                       "emails",
	"durable queues show emails":              "emails",
	"durable queues dead emails; true":        "",
	"durable schedules ls; true":              "",
	"durable schema status":                   "as this program needs it",
	"durable watch order-42 </dev/null; true": "reserve",
	"durable resume order-42 --dry-run; true": "",
}

// acts are commands that change something.
var acts = []string{
	"cancel order-42", "pause order-42", "resume order-42 --detach", "resume --all --yes", "signal order-42 go --value 1", "queues pause emails", "sessions clean --all --force --yes",
	"checkpoints delete order-42 --yes", "checkpoints edit order-42 reserve --value 1 --yes", "fork order-42 --yes",
}

// isLookedAt checks that all looking commands work on the store of a desk, and that nothing else does.
func isLookedAt(d *desk, why string) {
	d.t.Helper()
	for line, want := range looks {
		began := time.Now()
		a := d.ok(line)
		require.Contains(d.t, a.out+a.err, want, line)
		require.Less(d.t, time.Since(began), 6*time.Second, line)
		if !strings.Contains(line, "schema") && !strings.Contains(line, "--json") {
			require.Contains(d.t, a.err, "Only looking: ", line)
			require.Contains(d.t, a.err, why, line)
		}
	}
	for _, line := range acts {
		began := time.Now()
		a := d.sh("durable " + line)
		require.NotZero(d.t, a.code, line)
		require.Contains(d.t, a.err, "takes no writes", line)
		require.Less(d.t, time.Since(began), 6*time.Second, line)
	}
	a := d.sh("durable cancel order-42 --json")
	require.Equal(d.t, 4, a.code)
	require.Contains(d.t, a.err, `"code":"read_only"`)
}

// At night there may be nothing but a replica.
func TestAStandbyIsLookedAtInTheTerminal(t *testing.T) {
	primary := pgtest.Start(t)
	replica := primary.StartReplica(t, nil)
	d := newDesk(t, "SHOP_DB="+primary.DSN(), "DURABLE_STORE=")
	d.ok("shop enqueue mail-1")
	interrupted(d)
	db, err := sqlx.Open("postgres", primary.DSN())
	require.NoError(t, err)
	defer db.Close()
	on, err := sqlx.Open("postgres", replica.DSN())
	require.NoError(t, err)
	defer on.Close()
	var at string
	require.NoError(t, db.Get(&at, "SELECT pg_current_wal_lsn()::text"))
	require.Eventually(t, func() bool {
		var there bool
		return on.Get(&there, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", at) == nil && there
	}, time.Minute, 10*time.Millisecond)
	isLookedAt(d.with("DURABLE_STORE="+replica.DSN()), "the server takes no writes: it is a standby, or is set read-only")
	require.Contains(t, d.with("DURABLE_STORE="+primary.DSN()).ok("durable ls").out, "order-42\tcheckout\tinterrupted")
}

// A server may be set read-only, as before its disk is full.
func TestADatabaseThatIsSetReadOnlyIsLookedAtInTheTerminal(t *testing.T) {
	dsn := pgtest.DSN(t)
	d := newDesk(t, "SHOP_DB="+dsn, "DURABLE_STORE=")
	d.ok("shop enqueue mail-1")
	interrupted(d)
	isLookedAt(d.with("DURABLE_STORE="+pgtest.With(dsn, "default_transaction_read_only", "on")), "the server takes no writes")
	st, err := postgres.Open(dsn)
	require.NoError(t, err)
	defer st.Close()
	all, err := st.Executors(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

// somebody makes what a desk runs run as a user who may read its directory, and not write there.
func (d *desk) somebody() *desk {
	d.t.Helper()
	s := d.with("DURABLE_STORE=app.db")
	if os.Geteuid() == 0 {
		u, err := user.Lookup("nobody")
		require.NoError(d.t, err)
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		require.NoError(d.t, err)
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		require.NoError(d.t, err)
		nobody := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		s.as = func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody} }
		require.NoError(d.t, os.Chmod(bin, 0o755))
	}
	return s
}

// within makes a desk in a directory that others may enter.
func within(t *testing.T, env ...string) *desk {
	d := newDesk(t, env...)
	dir, err := os.MkdirTemp("/tmp", "holdfast-look-")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = os.Chmod(dir, 0o755)
		require.NoError(t, os.RemoveAll(dir))
	})
	require.NoError(t, os.Chmod(dir, 0o755))
	d.dir, d.env = dir, append(d.env, "SHOP_JOURNAL="+filepath.Join(dir, "journal"))
	return d
}

// files returns what is in the directory of a desk.
func (d *desk) files() map[string]string {
	d.t.Helper()
	list := map[string]string{}
	entries, err := os.ReadDir(d.dir)
	require.NoError(d.t, err)
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(d.dir, e.Name()))
		list[e.Name()] = string(b)
	}
	return list
}

// A backup that an operator may read is looked at as it lies there, and nothing is made beside it.
func TestAFileThatMayOnlyBeReadIsLookedAtInTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name      string
		file, dir os.FileMode
	}{{"nothing may be written", 0o444, 0o555}, {"the file may not", 0o444, 0o777}, {"the directory may not", 0o666, 0o555}} {
		t.Run(c.name, func(t *testing.T) {
			d := within(t, "SHOP_DB=app.db", "DURABLE_STORE=")
			d.ok("shop enqueue mail-1")
			interrupted(d)
			require.NoError(t, os.RemoveAll(filepath.Join(d.dir, "app.db.executors")))
			require.NoError(t, os.Chmod(filepath.Join(d.dir, "app.db"), c.file))
			require.NoError(t, os.Chmod(d.dir, c.dir))
			before := d.files()
			isLookedAt(d.somebody(), "the file takes no writes: this user may not write")
			require.Equal(t, before, d.files())
		})
	}
}

// Beside a program that has it open, the file is read as any other reader does.
func TestTheFileOfALiveProgramMayBeLookedAtByWhoMayNotWriteIt(t *testing.T) {
	d := within(t, "SHOP_DB=app.db", "DURABLE_STORE=")
	d.start("shop serve")
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(d.dir, "app.db-shm")); return err == nil }, 20*time.Second, 10*time.Millisecond)
	for _, name := range []string{"app.db", "app.db-wal", "app.db-shm"} {
		require.NoError(t, os.Chmod(filepath.Join(d.dir, name), 0o644))
	}
	s := d.somebody()
	if s.as == nil {
		t.Skip("the file is this user's: run as root")
	}
	for i := range 3 {
		id := "mail-" + strconv.Itoa(i)
		d.ok("shop enqueue " + id)
		require.Contains(t, s.ok("durable ls").out, id+"\tmail")
	}
	require.Contains(t, s.ok("durable doctor; true").out, "1 live")
}

// The journal of a copy cannot be read where its index cannot be made: that is said, and what helps.
func TestACopyWithItsJournalWhereNothingMayBeWrittenIsRefusedWithAReason(t *testing.T) {
	d := within(t, "SHOP_DB=app.db", "DURABLE_STORE=")
	p := d.start("shop serve")
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(d.dir, "app.db-shm")); return err == nil }, 20*time.Second, 10*time.Millisecond)
	d.ok("shop enqueue mail-1")
	p.signal(syscall.SIGKILL)
	p.wait()
	require.NoError(t, os.Remove(filepath.Join(d.dir, "app.db-shm")))
	for _, name := range []string{"app.db", "app.db-wal"} {
		require.NoError(t, os.Chmod(filepath.Join(d.dir, name), 0o444))
	}
	require.NoError(t, os.Chmod(d.dir, 0o555))
	before := d.files()
	a := d.somebody().sh("durable ls")
	require.Equal(t, 5, a.code)
	require.Contains(t, a.err, "to look at it, copy it and its -wal to where that is so")
	require.Equal(t, before, d.files())
	to := within(t)
	for _, name := range []string{"app.db", "app.db-wal"} {
		require.NoError(t, os.WriteFile(filepath.Join(to.dir, name), []byte(before[name]), 0o644))
	}
	require.Contains(t, to.with("DURABLE_STORE=app.db").ok("durable ls").out, "mail-1")
}
