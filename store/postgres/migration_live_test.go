package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

var literal = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'`)

// A name within quotes is data. Where the schema was put before it there too, a
// comparison never held.
func TestNoTextBetweenQuotesIsTakenForATable(t *testing.T) {
	for name, text := range postgres.Texts("other") {
		for _, l := range literal.FindAllString(text, -1) {
			if !strings.HasPrefix(l, "--") && !strings.Contains(text, "to_regclass("+l) {
				require.NotContains(t, l, "other", "%s: %s", name, text)
			}
		}
	}
	require.Contains(t, postgres.Texts("it's")["schema_exists"], `to_regclass('"it''s".durable_schema')`)
}

func TestTheCurrentSchemaMayHaveAQuoteInItsName(t *testing.T) {
	dsn := pgtest.DSN(t)
	raw(t, dsn).MustExec(`CREATE SCHEMA "it's"`)
	dsn = pgtest.With(dsn, "search_path", `"it's"`)
	for range 2 { // made, and found again
		s := open(t, dsn)
		r := &runLog{id: fmt.Sprint("r", time.Now().UnixNano())}
		commit(t, s, r.create("me"))
		require.NoError(t, s.Maintain(t.Context()))
	}
}

// busy writes as programs do (creations, steps, ends with messages, claims from
// a queue with a limit) and reports the longest commit.
type busy struct {
	longest atomic.Int64
	commits atomic.Int64
	failed  sync.Map
}

func (b *busy) work(ctx context.Context, s *postgres.Store, name string) {
	commit := func(c store.Change) {
		began := time.Now()
		err := s.Commit(context.WithoutCancel(ctx), []store.Change{c})[0]
		b.longest.Store(max(b.longest.Load(), int64(time.Since(began))))
		b.commits.Add(1)
		if err != nil {
			b.failed.Store(c.RunID, err)
		}
	}
	e := executor(name, time.Minute)
	for k := 0; ctx.Err() == nil; k++ {
		r := &runLog{id: fmt.Sprintf("%s-%d", name, k)}
		commit(r.create("me"))
		commit(r.step([]byte("{}")))
		done := r.complete()
		done.Send = []store.Message{{To: "sink", Kind: store.KindSignal, Name: "n", ID: r.id}}
		done.Hold = []string{r.id}
		commit(done)
		if k%5 != 0 {
			continue
		}
		waits := &runLog{id: fmt.Sprintf("%s-q%d", name, k)}
		c := waits.create("")
		c.Create.Queue = "q"
		commit(c)
		if _, err := s.Beat(context.WithoutCancel(ctx), e); err != nil {
			b.failed.Store("beat", err)
		}
		if _, err := s.Claim(context.WithoutCancel(ctx), store.Claim{Executor: name, Serves: serves, Max: 1, Queues: []store.QueueRoom{{Queue: "q", Max: 1 << 20}}}); err != nil {
			b.failed.Store("claim", err)
		}
	}
}

func TestMigrationsUnderLoadMeetNoDeadlockAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	first := open(t, dsn)
	sink := &runLog{id: "sink"}
	commit(t, first, sink.create("me"))
	var b busy
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for i := range 4 {
		s := open(t, dsn)
		writers.Go(func() { b.work(ctx, s, fmt.Sprint("w", i)) })
	}
	var steps []string
	const migrations = 12
	for i := range migrations {
		steps = append(steps, fmt.Sprintf("ALTER TABLE durable_events ADD COLUMN later_%d int; ALTER TABLE durable_runs ADD COLUMN later_%d int; "+
			"CREATE INDEX later_%d_idx ON durable_inbox (run_no)", i, i, i))
		seen := b.commits.Load()
		require.Eventually(t, func() bool { return b.commits.Load() > seen+50 }, time.Minute, time.Millisecond)
		o := postgres.Options{NoMigrationBackup: i%2 == 0}.Later(steps...)
		_, err := schemaOf(t, dsn, o).Migrate(t.Context())
		require.NoError(t, err)
	}
	stop()
	writers.Wait()
	b.failed.Range(func(run, err any) bool {
		t.Errorf("%v: %v", run, err)
		return true
	})
	db := raw(t, dsn)
	var deadlocks int
	require.NoError(t, db.Get(&deadlocks, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
	require.Zero(t, deadlocks)
	longest := time.Duration(b.longest.Load())
	t.Logf("%d migrations, %d commits of 4 writers, the longest took %v", migrations, b.commits.Load(), longest)
	require.Less(t, longest, 3*time.Second)
}

// One transaction that somebody left open holds up the migration, and the
// migration must not hold up everybody else behind it.
func TestAMigrationBehindAnOpenTransactionLetsOthersPass(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{true, false} {
		t.Run(fmt.Sprint("without backup ", without), func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s := open(t, dsn)
			r, other := &runLog{id: "r"}, &runLog{id: "other"}
			commit(t, s, r.create("me"), other.create("me"))
			db := raw(t, dsn)
			tx := db.MustBegin()
			defer func() { _ = tx.Rollback() }() // the migration waits for it, and the end of the test for that
			require.NoError(t, s.CommitIn(t.Context(), tx, other.step(nil)))
			sc := schemaOf(t, dsn, postgres.Options{NoMigrationBackup: without}.Later(widen))
			migrated := make(chan error, 1)
			go func() {
				_, err := sc.Migrate(context.WithoutCancel(t.Context()))
				migrated <- err
			}()
			// It waits by now.
			require.Eventually(t, func() bool {
				var n int
				require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() AND NOT l.granted"))
				return n > 0
			}, time.Minute, time.Millisecond)
			var longest time.Duration
			for priority := range int32(30) {
				c := r.step(nil)
				c.Row = &store.RowPatch{Priority: &priority} // the migration waits for the table of rows, the first that the transaction has locked
				began := time.Now()
				commit(t, s, c)
				longest = max(longest, time.Since(began))
			}
			t.Logf("the longest of 30 commits took %v", longest)
			require.Less(t, longest, 10*time.Second, "the transaction is open until all have returned")
			require.NoError(t, tx.Commit())
			require.NoError(t, <-migrated)
		})
	}
}

func TestAStatementTimeoutOfTheRoleDoesNotCutAMigrationOrABackup(t *testing.T) {
	t.Parallel()
	dsn, _ := filled(t)
	db := raw(t, dsn)
	short := pgtest.With(dsn, "statement_timeout", "150ms")
	sc := schemaOf(t, short, postgres.Options{}.Later("SELECT pg_sleep(0.5)"))

	tx := db.MustBegin()
	tx.MustExec("LOCK TABLE durable_inbox IN ACCESS EXCLUSIVE MODE")
	done := make(chan error, 1)
	go func() { done <- sc.Backup(context.WithoutCancel(t.Context()), "by_hand") }()
	time.AfterFunc(500*time.Millisecond, func() { _ = tx.Rollback() })
	require.NoError(t, <-done)

	m, err := sc.Migrate(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, m.Backup)
	_, err = schemaOf(t, short, postgres.Options{}).Restore(t.Context(), "by_hand")
	require.NoError(t, err)

	// Those of a program that uses the store stay as the role has them.
	var e *pq.Error
	_, err = raw(t, short).Exec("SELECT pg_sleep(1)")
	require.True(t, errors.As(err, &e) && e.Code == "57014", "%v", err)
}

// The schema need not be in the search path.
func TestAllStepsWorkInASchemaOfItsOwn(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openOptions(t, dsn, postgres.Options{Schema: "aside"})
	r := &runLog{id: "r"}
	commit(t, s, r.create("me"))
	var n int
	require.NoError(t, raw(t, dsn).Get(&n, "SELECT count(*) FROM aside.durable_runs"))
	require.Equal(t, 1, n)
}
