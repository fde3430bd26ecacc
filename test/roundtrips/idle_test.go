package roundtrips

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// A beat of an engine with nothing to do is one statement on PostgreSQL, and the engine sends no more
// beside its beats than with them: two statements a beat are 0.2 a second with the default lease.
func TestAnIdleEngineSendsOneStatementABeatToPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	var tr trips
	p.SetPolicy(tr.policy)
	s, err := postgres.Open(p.DSN(dsn))
	require.NoError(t, err)
	defer s.Close()
	wf := durable.Define("idle", func(_ context.Context, n int) (int, error) { return n, nil })
	eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Lease: time.Second})
	require.NoError(t, err)
	defer eng.Close()
	ctx := durable.NewContext(t.Context(), eng)
	_, err = durable.Recover(ctx)
	require.NoError(t, err)
	_, err = wf.Run(ctx, "r", 1)
	require.NoError(t, err)
	beats := func(sent []string) (n int) {
		for _, sql := range sent {
			if strings.Contains(sql, "durable_executors AS e (id, name") {
				n++
			}
		}
		return n
	}
	await := func(n int) func() {
		return func() {
			before := beats(tr.all())
			require.Eventually(t, func() bool { return beats(tr.all()) >= before+n }, 30*time.Second, time.Millisecond)
		}
	}
	await(3)()  // what the engine does once, it has done
	const n = 9 // three leases
	sent := tr.during(await(n))
	require.LessOrEqual(t, len(sent), 2*n+4, "%q", sent) // leases are short here: what runs by the minute runs, too
	for _, sql := range sent {
		require.False(t, strings.HasPrefix(sql, "-- The results of a beat") || strings.HasPrefix(sql, "-- Returns the clock"), "a part of a beat was asked for alone")
	}
}
