package roundtrips

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// From the call of Signal to the body of the step after the wait is one round trip to PostgreSQL: the
// message and its receipt.
func TestASignalInOneProcessIsOneRoundTripOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	var c trips
	p.SetPolicy(c.policy)
	s, err := postgres.OpenOptions(p.DSN(dsn), postgres.Options{Writers: 1})
	require.NoError(t, err)
	defer s.Close()
	look, err := postgres.Open(dsn) // around the proxy
	require.NoError(t, err)
	defer look.Close()
	l := listens()
	eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: []durable.Definition{l.workflow}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer eng.Close()
	ctx := durable.NewContext(t.Context(), eng)
	_, err = durable.Recover(ctx)
	require.NoError(t, err)
	const warm, n = 5, 100
	_, err = l.workflow.Start(ctx, "r", warm+n)
	require.NoError(t, err)
	sent := 0
	for i := range warm + n {
		l.await(t, look)
		sql := c.during(func() {
			require.NoError(t, durable.Signal(ctx, "r", "ping", i))
			<-l.woken
		})
		l.goOn <- struct{}{}
		if i >= warm {
			sent += len(sql)
		}
	}
	require.LessOrEqual(t, sent, n+20, "and beats")
}

// From the call of Signal in one process to the body of the step after the wait in another one are three
// round trips to PostgreSQL: the message, the read of it, which reads nothing else, and its receipt.
func TestASignalFromAnotherProcessIsThreeRoundTripsOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	var c trips
	p.SetPolicy(c.policy)
	look, err := postgres.Open(dsn) // around the proxy
	require.NoError(t, err)
	defer look.Close()
	l := listens()
	begin := func(defs ...durable.Definition) context.Context {
		s, err := postgres.OpenOptions(p.DSN(dsn), postgres.Options{Writers: 1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: defs, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, eng.Close()) })
		ctx := durable.NewContext(t.Context(), eng)
		_, err = durable.Recover(ctx)
		require.NoError(t, err)
		return ctx
	}
	here, away := begin(l.workflow), begin()
	const warm, n = 5, 100
	_, err = l.workflow.Start(here, "r", warm+n)
	require.NoError(t, err)
	var sent []string
	for i := range warm + n {
		l.await(t, look)
		sql := c.during(func() {
			require.NoError(t, durable.Signal(away, "r", "ping", i))
			<-l.woken
		})
		l.goOn <- struct{}{}
		if i >= warm {
			sent = append(sent, sql...)
		}
	}
	require.LessOrEqual(t, len(sent), 3*n+30, "and beats")
	for _, sql := range sent {
		require.False(t, strings.Contains(sql, "durable_branches"), "nothing is read but the message")
	}
}

// listener has a workflow that takes signals.
type listener struct {
	workflow *durable.Workflow[int, int]
	woken    chan struct{} // a step after a wait has begun
	goOn     chan struct{} // lets it end
}

func listens() *listener {
	l := &listener{woken: make(chan struct{}), goOn: make(chan struct{})}
	l.workflow = durable.Define("listener", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			if _, err := durable.Await[int](ctx, "ping"); err != nil {
				return 0, err
			}
			err := durable.Do(ctx, fmt.Sprint("woken", i), func(context.Context) error {
				l.woken <- struct{}{}
				<-l.goOn
				return nil
			})
			if err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	return l
}

// await waits until the run waits.
func (l *listener) await(t *testing.T, s store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		h, err := s.Load(t.Context(), "r", store.Cursor{NoEvents: true})
		return err == nil && h.Run.Status == store.Waiting
	}, waitFor, tick)
}
