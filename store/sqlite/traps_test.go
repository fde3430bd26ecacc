//go:build cgo

package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// The tests of this file come in pairs. The first shows what the driver or
// SQLite does: when an upgrade changes it, we want to know, and may drop what
// guards against it. The second shows that the store is not touched by it.

func connect(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?"+params)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func value[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, db.QueryRow(query, args...).Scan(&v))
	return v
}

func TestTrapTheDriverSetsSynchronousNormal(t *testing.T) {
	db := connect(t, file(t), "_journal_mode=WAL")
	require.Equal(t, 1, value[int](t, db, "PRAGMA synchronous"), "NORMAL: the last commits may be lost with the power")
}

func TestOurWriterWaitsForTheDisk(t *testing.T) {
	for mode, want := range map[sqlite.Synchronous]string{sqlite.Full: "2", sqlite.Normal: "1", sqlite.Off: "0"} {
		st := open(t, file(t), sqlite.Options{Synchronous: mode})
		got, err := st.Ask("PRAGMA synchronous")
		require.NoError(t, err)
		require.Equal(t, want, got, mode)
		got, err = st.Ask("PRAGMA journal_mode")
		require.NoError(t, err)
		require.Equal(t, "wal", got)
	}
}

// slow is a statement that runs long enough to be cancelled.
const slow = `INSERT INTO t SELECT value FROM (WITH RECURSIVE c (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c LIMIT 100000000) SELECT value FROM c)`

func TestTrapACancelledStatementUndoesTheWholeTransaction(t *testing.T) {
	db := connect(t, file(t), "_journal_mode=WAL&_txlock=immediate")
	db.SetMaxOpenConns(1)
	_, err := db.Exec("CREATE TABLE t (a INTEGER)")
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO t VALUES (-1)")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = tx.ExecContext(ctx, slow)
	require.Error(t, err)
	_, err = tx.Exec("INSERT INTO t VALUES (-2)")
	require.NoError(t, err, "nothing says that the transaction is gone")
	require.ErrorContains(t, tx.Commit(), "no transaction is active")
	require.Equal(t, 0, value[int](t, db, "SELECT count(*) FROM t WHERE a = -1"), "the first write is lost")
	require.Equal(t, 1, value[int](t, db, "SELECT count(*) FROM t WHERE a = -2"), "the last one is kept, by itself")
}

// However a context ends while a Change is on its way, all of the Change is
// there or nothing.
func TestACancelledContextLeavesNoHalfChange(t *testing.T) {
	st := open(t, file(t), sqlite.Options{Synchronous: sqlite.Off})
	l := start(t, st, "r")
	start(t, st, "other")
	carried := 0
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Duration(3*i) * time.Microsecond)
			cancel()
		}()
		before := *l
		c := l.plain(20)
		c.Row = &store.RowPatch{Reason: new(strconv.Itoa(i))}
		c.Send = []store.Message{{To: "other", Kind: store.KindSignal, Name: "n", ID: strconv.Itoa(i)}}
		err := st.Commit(ctx, []store.Change{c})[0]
		cancel()
		h, events := load(t, st, "r")
		other, err2 := st.Load(t.Context(), "other", store.Cursor{NoEvents: true})
		require.NoError(t, err2)
		if err == nil {
			carried++
			require.Equal(t, strconv.Itoa(i), h.Run.Reason)
		} else {
			require.ErrorIs(t, err, context.Canceled)
			*l = before
			require.NotEqual(t, strconv.Itoa(i), h.Run.Reason)
		}
		require.Len(t, events, 1+20*carried)
		require.Len(t, other.Inbox, carried)
		sound(t, "r", events)
	}
	require.Positive(t, carried)
}

func TestTrapTheBusyWaitIgnoresTheContext(t *testing.T) {
	path := file(t)
	holder := connect(t, path, "_journal_mode=WAL&_txlock=immediate")
	tx, err := holder.Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	waiter := connect(t, path, "_txlock=immediate&_busy_timeout=500")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = waiter.ExecContext(ctx, "CREATE TABLE t (a)")
	require.Error(t, err)
	require.Greater(t, time.Since(begin), 300*time.Millisecond, "the deadline was 20 ms")
}

func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	l := start(t, st, "r")
	other := connect(t, path, "_txlock=immediate")
	tx, err := other.Begin()
	require.NoError(t, err)
	for name, c := range map[string]store.Change{"autocommit": l.plain(1), "transaction": (&log{run: "r", epoch: l.epoch, last: l.last}).plain(2)} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		begin := time.Now()
		err = st.Commit(ctx, []store.Change{c})[0]
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.Less(t, time.Since(begin), time.Minute, "%s: the lock is held until it has returned", name)
	}
	// A second call of ours waits for the first one's turn, and looks at its
	// context too.
	blocked := make(chan error, 1)
	go func() {
		blocked <- st.Commit(context.Background(), []store.Change{(&log{run: "r", epoch: l.epoch, last: l.last}).plain(1)})[0]
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = st.Beat(ctx, executor("e"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	// Reading does not wait at all.
	_, events := load(t, st, "r")
	require.Len(t, events, 1)
	require.NoError(t, tx.Rollback())
	require.ErrorIs(t, <-blocked, store.ErrFenced, "its predecessor was never written")
}

func TestTrapADeferredTransactionThatReadsFirstCannotWrite(t *testing.T) {
	path := file(t)
	db := connect(t, path, "_journal_mode=WAL&_busy_timeout=5000")
	_, err := db.Exec("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM t").Scan(&n))
	_, err = connect(t, path, "").Exec("INSERT INTO t VALUES (2)")
	require.NoError(t, err)
	begin := time.Now()
	_, err = tx.Exec("INSERT INTO t VALUES (3)")
	require.ErrorContains(t, err, "locked")
	require.Less(t, time.Since(begin), 4*time.Second, "at once, whatever the time-out")
}

func TestTrapBeginTxIgnoresReadOnly(t *testing.T) {
	db := connect(t, file(t), "_journal_mode=WAL")
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	_, err = tx.Exec("CREATE TABLE t (a)")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
}

func TestOurReadersCannotWrite(t *testing.T) {
	st := open(t, file(t), sqlite.Options{})
	require.ErrorContains(t, st.WriteOnReader(), "readonly")
}

func TestTrapAFullDiskEndsTheTransaction(t *testing.T) {
	db := connect(t, file(t), "_journal_mode=WAL&_txlock=immediate")
	db.SetMaxOpenConns(1)
	_, err := db.Exec("CREATE TABLE t (a); PRAGMA max_page_count = 20")
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO t VALUES (zeroblob(1000000))")
	require.ErrorContains(t, err, "full")
	// Which of the two it is depends on where the disk became full; the store
	// has to live with both.
	t.Logf("after SQLITE_FULL the commit says: %v", tx.Commit())
}

func TestAFullDiskRefusesClearlyAndIsGotOver(t *testing.T) {
	for name, n := range map[string]int{"autocommit": 1, "transaction": 3} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			st := open(t, path, sqlite.Options{})
			l := start(t, st, "r")
			big := func() store.Change {
				c := store.Change{RunID: "r", Expect: store.Expect{Epoch: l.epoch}}
				for range n {
					c.Events = append(c.Events, l.next(store.Event{Type: store.StepCompleted, Key: "k", Payload: make([]byte, 100_000)}))
				}
				return c
			}
			require.NoError(t, st.Setting("PRAGMA max_page_count = 300"))
			written, full := 1, false
			var last store.Change
			for range 20 {
				last = big()
				err := st.Commit(t.Context(), []store.Change{last})[0]
				if err != nil {
					require.ErrorContains(t, err, "free some space")
					require.NotErrorIs(t, err, store.ErrUnknown)
					full = true
					break
				}
				written += n
			}
			require.True(t, full)
			_, events := load(t, st, "r")
			require.Len(t, events, written, "nothing of the refused Change")
			stillFull(t, st, last)
			require.NoError(t, st.Setting("PRAGMA max_page_count = 100000"))
			commit(t, st, last) // the very same
			commit(t, st, last)
			commit(t, st, l.plain(1))
			_, events = load(t, st, "r")
			require.Len(t, events, written+n+1)
			sound(t, "r", events)
			require.Equal(t, "ok", value[string](t, connect(t, path, ""), "PRAGMA integrity_check"))
		})
	}
}

// stillFull sends c to a full disk once more.
func stillFull(t testing.TB, st store.Store, c store.Change) {
	t.Helper()
	var cause sqlite3.Error
	require.ErrorAs(t, st.Commit(t.Context(), []store.Change{c})[0], &cause)
	require.Equal(t, sqlite3.ErrFull, cause.Code)
}

func TestTrapForeignKeysAreOffByDefault(t *testing.T) {
	require.Equal(t, 0, value[int](t, connect(t, file(t), ""), "PRAGMA foreign_keys"))
}

func TestTrapAContextThatCanEndCostsAGoroutine(t *testing.T) {
	dc, err := (&sqlite3.SQLiteDriver{}).Open("file:" + file(t))
	require.NoError(t, err)
	defer dc.Close()
	st, err := dc.Prepare("SELECT 1")
	require.NoError(t, err)
	defer st.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exec := func(ctx context.Context) float64 {
		return testing.AllocsPerRun(100, func() {
			_, err := st.(driver.StmtExecContext).ExecContext(ctx, nil)
			require.NoError(t, err)
		})
	}
	require.Greater(t, exec(ctx), exec(context.Background()))
}

// Nothing of ours blocks the virtual clock, or needs the real one.
func TestAYearPassesInABubble(t *testing.T) {
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.OpenOptions(path, sqlite.Options{Watch: -1})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- st.Notify(ctx, func(store.Notice) {}) }()
		l := start(t, st, "r")
		e := executor("e")
		e.Lease = 25 * time.Hour
		for range 365 {
			beat(t, st, e)
			commit(t, st, l.plain(1))
			time.Sleep(24 * time.Hour)
		}
		p := beat(t, st, e)
		require.False(t, p.Late)
		time.Sleep(26 * time.Hour)
		require.True(t, beat(t, st, e).Late)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, st.Close())
	})
}
