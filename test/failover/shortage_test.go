package failover_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// shortage is something that the server runs out of.
type shortage struct {
	cluster *pgtest.Cluster
	dsn     string         // the program's
	begins  func(*program) // returns when the server is short of it
	ends    func()         // returns when it is not
}

// A server that is short of something makes the program wait for longer than its leases. It
// starts nothing meanwhile, and goes on by itself.
func TestAServerThatIsShortOfSomethingForLongerThanTheLease(t *testing.T) {
	for name, of := range map[string]func(*testing.T) shortage{"connections": connections, "writes": writes, "disk": disk, "log": walDisk} {
		t.Run(name, func(t *testing.T) {
			if !soaking() && (name == "disk" || name == "log") {
				t.Skip("a disk takes longer to fill than this may take: make soak does it")
			}
			t.Parallel()
			of(t).try(t, name)
		})
	}
}

const shortLease = time.Second

func (s shortage) try(t *testing.T, name string) {
	times := 1
	if soaking() {
		times = 5
	}
	p := begin(t, shortLease, s.dsn, s.dsn)
	var after []time.Duration
	for i := range times {
		p.moves(time.Now())
		time.Sleep(300 * time.Millisecond) // of load
		s.begins(p)
		p.startsNothing(s, i)
		time.Sleep(3 * shortLease / 2)
		s.ends()
		over := time.Now()
		after = append(after, p.moves(over).Sub(over))
		p.comes(s, i)
	}
	found := p.settle(s.cluster.DSN())
	require.Zero(t, found.lostRuns+found.lostSteps)
	tried.Say(t, "shortages", "mode=%s shortages=%d %s %s", name, times, found, spread("after", after))
}

// startsNothing looks at what a program is told that starts during the shortage. It may be let
// in, where what is there is enough for that, but not wait for ever, and not in vain.
func (p *program) startsNothing(s shortage, i int) {
	ctx, stop := context.WithTimeout(p.t.Context(), shortLease)
	defer stop()
	st, err := postgres.Open(s.dsn)
	if err != nil {
		p.t.Logf("open: %v", err)
		return
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{p.wf}, Lease: shortLease, Logger: quiet()})
	if err != nil {
		p.t.Logf("open: %v", err)
		return
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	_, err = p.wf.Start(ctx, fmt.Sprint("newcomer-", i), i)
	p.t.Logf("start: %v", err)
	_, err = durable.Recover(ctx)
	p.t.Logf("recover: %v", err)
}

// comes starts a program after the shortage.
func (p *program) comes(s shortage, i int) {
	st, err := postgres.Open(s.dsn)
	require.NoError(p.t, err)
	defer st.Close()
	eng, err := durable.Open(p.t.Context(), st, durable.Options{Workflows: []durable.Definition{p.wf}, Lease: shortLease, Logger: quiet()})
	require.NoError(p.t, err)
	defer eng.Close()
	ctx := durable.NewContext(p.t.Context(), eng)
	_, err = durable.Recover(ctx)
	require.NoError(p.t, err)
	run, err := p.wf.Start(ctx, fmt.Sprint("newcomer-", i), i)
	require.NoError(p.t, err)
	_, err = run.Wait(ctx)
	require.NoError(p.t, err)
}

func admin(t *testing.T, c *pgtest.Cluster) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", c.DSN())
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		_, err := db.Exec(q)
		require.NoError(t, err, q)
	}
}

// connections: others take every connection that there is, those of the program too.
func connections(t *testing.T) shortage {
	c := pgtest.Start(t)
	require.NoError(t, c.Stop(pgtest.Fast))
	c.Set("max_connections=110", "superuser_reserved_connections=6")
	require.NoError(t, c.Restart())
	db := admin(t, c)
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(2)
	do(t, db, "CREATE ROLE program LOGIN PASSWORD 'program'", "CREATE ROLE others LOGIN PASSWORD 'others'", "GRANT ALL ON DATABASE postgres TO program", "GRANT ALL ON SCHEMA public TO program")
	as := func(role string) string {
		return fmt.Sprintf("postgres://%s:%[1]s@%s/postgres?sslmode=disable", role, c.Addr())
	}
	var taken []*sql.DB
	take := func() bool {
		o, err := sql.Open("postgres", as("others"))
		require.NoError(t, err)
		o.SetMaxOpenConns(1)
		if o.Ping() != nil {
			_ = o.Close()
			return false
		}
		taken = append(taken, o)
		return true
	}
	return shortage{
		cluster: c, dsn: as("program"),
		begins: func(*program) {
			require.Eventually(t, func() bool {
				do(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'program'")
				for take() {
				}
				var left int
				require.NoError(t, db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE usename = 'program'").Scan(&left))
				return left == 0
			}, time.Minute, time.Millisecond)
		},
		ends: func() {
			for _, o := range taken {
				_ = o.Close()
			}
			taken = nil
		},
	}
}

// writes: the server takes none, as one that its operator has set so, or that its cloud has.
func writes(t *testing.T) shortage {
	c := pgtest.Start(t)
	set := func(q string) func() {
		return func() {
			db, err := sql.Open("postgres", c.DSN())
			require.NoError(t, err)
			defer db.Close()
			do(t, db, q, "SELECT pg_reload_conf()")
		}
	}
	return shortage{
		cluster: c, dsn: c.DSN(),
		begins: func(*program) { set("ALTER SYSTEM SET default_transaction_read_only = on")() },
		ends:   set("ALTER SYSTEM RESET default_transaction_read_only"),
	}
}

// stands waits until nothing is acknowledged any more.
func (p *program) stands() {
	require.Eventually(p.t, func() bool { return time.Since(p.diary.latest()) > shortLease/4 }, time.Minute, 10*time.Millisecond)
}

// disk: the disk of the tables is full.
func disk(t *testing.T) shortage {
	c := pgtest.Start(t)
	d := c.Confine(t, "base", 128)
	return shortage{
		cluster: c, dsn: c.DSN(),
		begins: func(p *program) {
			require.NoError(t, d.Fill())
			p.stands()
		},
		ends: func() { require.NoError(t, d.Empty()) },
	}
}

// walDisk: the disk of the write-ahead log is full, which ends the server; it is started again
// when there is room.
func walDisk(t *testing.T) shortage {
	c := pgtest.Start(t)
	c.Set("max_wal_size=1GB", "min_wal_size=32MB") // no checkpoint that makes room
	d := c.Confine(t, "pg_wal", 128)
	return shortage{
		cluster: c, dsn: c.DSN(),
		begins: func(p *program) {
			require.NoError(t, d.Fill())
			db, err := sql.Open("postgres", c.DSN())
			require.NoError(t, err)
			defer db.Close()
			require.Eventually(t, func() bool {
				_, err := db.Exec("SELECT pg_switch_wal()") // what is left of the present file is not used
				return err != nil
			}, time.Minute, 50*time.Millisecond)
			p.stands()
		},
		ends: func() {
			require.NoError(t, d.Empty())
			require.NoError(t, c.Stop(pgtest.Immediate))
			require.NoError(t, c.Restart())
		},
	}
}
