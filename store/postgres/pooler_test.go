package postgres_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

func worksThrough(t *testing.T, dsn string, o postgres.Options) {
	s := openOptions(t, dsn, o)
	beat(t, s, executor("me", time.Minute))
	c := &crowd{t: t, store: s, steps: 3, sink: "sink"}
	c.run(func() {
		require.Eventually(t, func() bool { return c.total.Load() >= 40 || t.Failed() }, time.Minute, time.Millisecond)
	})
	commit(t, s, (&runLog{id: "r"}).create(""))
	got, err := s.Claim(t.Context(), store.Claim{Executor: "me", Serves: serves, Max: 1})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.NoError(t, s.Maintain(t.Context()))
	tx, err := s.BeginTx(t.Context()) // on connections of another kind
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
}

func TestAPoolerThatKeepsSessionsNeedsNothing(t *testing.T) {
	dsn := pgtest.Pooler(t, pgtest.DSN(t), "pool_mode = session", "default_pool_size = 40")
	worksThrough(t, dsn, postgres.Options{})
}

// A prepared statement that is not there, or is another's, is found before
// anything is written with it.
func TestAPoolerThatChangesSessionsMustCarryPreparedStatements(t *testing.T) {
	if pgtest.PoolerCarriesStatements(t) {
		worksThrough(t, pgtest.Pooler(t, pgtest.DSN(t), "max_prepared_statements = 200"), postgres.Options{Pooled: true})
		return
	}
	_, err := postgres.OpenOptions(pgtest.Pooler(t, pgtest.DSN(t)), postgres.Options{Pooled: true})
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "max_prepared_statements")
}

func TestAPoolerThatIsNotToldOfIsFoundWhenTheStoreIsOpened(t *testing.T) {
	_, err := postgres.Open(pgtest.Pooler(t, pgtest.DSN(t)))
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "Options.Pooled")
}

// A compatible server, or what stands before one, may know fewer parameters than PostgreSQL.
func TestAServerThatRefusesASettingOfOursIsUsedWithoutIt(t *testing.T) {
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	var refused atomic.Int64
	p.SetPolicy(func(r proxy.Request) proxy.Action {
		if len(r.SQL) == 1 && r.SQL[0] == "SET jit = off" {
			refused.Add(1)
			return proxy.Refuse
		}
		return proxy.Pass
	})
	worksThrough(t, p.DSN(dsn), postgres.Options{})
	require.Positive(t, refused.Load())
}
