package statements_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// failure is what a statement meets.
type failure struct {
	name  string
	err   error
	after bool
}

func failures() (all []failure) {
	for _, state := range []string{"40001", "40P01", "55P03", "57P01", "57014", "53100", "53300", "08006", "25006"} {
		all = append(all, failure{state, &pq.Error{Code: pqerror.Code(state), Severity: "ERROR", Message: "injected"}, false})
	}
	return append(all,
		failure{"lost before", driver.ErrBadConn, false},
		failure{"lost after", driver.ErrBadConn, true},
		failure{"40003 after", &pq.Error{Code: "40003", Severity: "ERROR", Message: "injected"}, true})
}

// program has each kind of write. once counts the bodies of Once.
func program(once *atomic.Int32) (parent, child *durable.Workflow[int, int]) {
	one := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(context.Context) error { return nil })
	}
	child = durable.Define("child", func(ctx context.Context, n int) (int, error) { return n + 1, one(ctx, "in child") })
	return durable.Define("parent", func(ctx context.Context, n int) (int, error) {
		if err := one(ctx, "first"); err != nil {
			return 0, err
		}
		_, err := durable.Retry(ctx, "flaky", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx).Number == 1 {
				return 0, errors.New("not yet")
			}
			return 1, nil
		})
		if err != nil {
			return 0, err
		}
		if _, err := durable.Once(ctx, "once", func(context.Context) (int, error) { return int(once.Add(1)), nil }); err != nil {
			return 0, err
		}
		v, err := child.Run(ctx, durable.RunID(ctx)+"/child", n)
		if err != nil {
			return 0, err
		}
		s, err := durable.Await[int](ctx, "go")
		if err != nil {
			return 0, err
		}
		return v + s, durable.Sleep(ctx, time.Millisecond)
	}), child
}

// Whichever statement fails, and however: no caller hears of a failure that was none, nothing
// is lost or doubled, and the run comes to its end.
func TestAnErrorOfAnyClassAtAnyStatement(t *testing.T) {
	stride := 15
	if os.Getenv("DURABLE_SOAK") != "" {
		stride = 1
	}
	dsn := pgtest.DSN(t)
	pc, err := pq.NewConnector(dsn)
	require.NoError(t, err)
	in := &injector{Connector: pc}
	db := sqlx.NewDb(sql.OpenDB(in), "postgres")
	defer db.Close()
	st, err := postgres.New(db, postgres.Options{DSN: dsn})
	require.NoError(t, err)
	defer st.Close()
	var once atomic.Int32
	parent, child := program(&once)
	eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{parent, child}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer eng.Close()
	ctx, stop := context.WithTimeout(durable.NewContext(t.Context(), eng), 10*time.Minute)
	defer stop()
	fired, trials := 0, 0
	for _, f := range failures() {
		for at := 1; ; at += stride {
			require.Less(t, at, 1000, "%s fires at every number", f.name)
			once.Store(0)
			id := fmt.Sprint(f.name, " ", at)
			in.arm(at, f)
			got, err := whole(ctx, eng, parent, id)
			hit := in.disarm()
			require.NoError(t, err, id)
			require.Equal(t, 12, got, id)
			require.EqualValues(t, 1, once.Load(), id)
			look(t, ctx, eng, id)
			trials++
			if !hit {
				break
			}
			fired++
		}
	}
	require.NotZero(t, fired)
	tried.Say(t, "statements", "classes=%d trials=%d failed=%d lost=0 doubled=0", len(failures()), trials, fired)
}

// whole takes a run through its life, as a program does whose calls may be refused because the
// database is not to be reached: it makes them again.
func whole(ctx context.Context, eng *durable.Engine, wf *durable.Workflow[int, int], id string) (int, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	var run *durable.Run[int]
	again := func(call func() error) error {
		for {
			err := call()
			if err == nil || ctx.Err() != nil || !errors.Is(err, durable.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	if err := again(func() (err error) { run, err = wf.Start(ctx, id, 1); return err }); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	if err := again(func() error { return eng.Signal(ctx, id, "go", 10, durable.SignalID("s")) }); err != nil {
		return 0, fmt.Errorf("signal: %w", err)
	}
	var out int
	err := again(func() (err error) { out, err = run.Wait(ctx); return err })
	return out, err
}

// look reads a run that has ended.
func look(t *testing.T, ctx context.Context, eng *durable.Engine, id string) {
	t.Helper()
	v, err := operate.On(eng).Verify(ctx, id)
	require.NoError(t, err, id)
	require.Empty(t, v.Findings, id)
	done := map[string]bool{}
	for e, err := range eng.History(ctx, id) {
		require.NoError(t, err, id)
		if e.Type == store.StepCompleted {
			require.False(t, done[e.Key], "%s: %s twice", id, e.Key)
			done[e.Key] = true
		}
	}
	require.Len(t, done, 3, id)
}
