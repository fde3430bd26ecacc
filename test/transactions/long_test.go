package transactions_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A body that keeps everybody else from writing is told about, and ends before another
// executor may take its run.
func TestATransactionThatStaysOpenIsLoggedAndEndsWithTheLease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.OpenOptions(file, sqlite.Options{Synchronous: sqlite.Off, Watch: -1})
		require.NoError(t, err)
		defer st.Close()
		var log buffer
		var took []time.Duration
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Transact(ctx, "sleep", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if len(took) > 0 {
					return 1, nil
				}
				began := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(began))
				return 0, context.Cause(ctx)
			})
		})
		e, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer e.Close()
		n, err := wf.Run(durable.NewContext(t.Context(), e), "r", 0)
		require.NoError(t, err)
		require.Equal(t, 1, n, "the attempt was made again once the lease could be renewed")
		require.Len(t, took, 1)
		require.Less(t, took[0], durable.DefaultLease)
		require.Contains(t, log.String(), "holds its transaction for long")
	})
}

// sluggish begins transactions late.
type sluggish struct {
	store.Store
	store.Transactor
}

func (s sluggish) BeginTx(ctx context.Context) (store.Tx, error) {
	time.Sleep(2 * time.Second)
	return s.Transactor.BeginTx(ctx)
}

// No body begins in a run that is paused, though the attempt had begun to wait for its transaction before.
func TestNoBodyBeginsInATransactionThatCameAfterThePause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.OpenOptions(file, sqlite.Options{Synchronous: sqlite.Off, Watch: -1})
		require.NoError(t, err)
		defer st.Close()
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Transact(ctx, "pay", func(context.Context, *sqlx.Tx) (int, error) {
				bodies++
				return 7, nil
			})
		})
		e, err := durable.Open(t.Context(), sluggish{st, store.CapabilitiesOf(st).Transactor}, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer e.Close()
		_, err = e.Recover(t.Context())
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), e)
		_, err = wf.Start(ctx, "r", 0)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, e.Pause(ctx, "r", "lunch"))
		time.Sleep(time.Minute)
		require.Zero(t, bodies)
		require.NoError(t, e.Unpause(ctx, "r"))
		h, err := wf.Handle(ctx, "r")
		require.NoError(t, err)
		n, err := h.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, n)
		require.Equal(t, 1, bodies)
	})
}

// dying is the store of a process that is killed.
type dying struct {
	store.Store
	dead atomic.Bool
}

func (d *dying) Commit(ctx context.Context, list []store.Change) []error {
	if !d.dead.Load() {
		return d.Store.Commit(ctx, list)
	}
	errs := make([]error, len(list))
	for i := range errs {
		errs[i] = store.ErrClosed
	}
	return errs
}

func (d *dying) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if d.dead.Load() {
		return store.Pulse{}, store.ErrClosed
	}
	return d.Store.Beat(ctx, x)
}

// A run whose process was killed records before a body that it begins. A transaction that meets conflicts is made again up
// to a hundred times, and that it begins is on record.
func TestATransactionThatIsMadeAgainOnProbationIsRecordedToBeginOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.OpenOptions(file, sqlite.Options{Synchronous: sqlite.Off, Watch: -1})
		require.NoError(t, err)
		defer st.Close()
		killed := &dying{Store: st}
		process := func(at store.Store, pay func(ctx context.Context) (int, error)) (*durable.Engine, *durable.Workflow[int, int]) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return pay(ctx) })
			e, err := durable.Open(t.Context(), at, durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			return e, wf
		}
		first, wf := process(killed, func(ctx context.Context) (int, error) {
			return durable.Step(ctx, "pay", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
		})
		_, err = wf.Start(durable.NewContext(t.Context(), first), "r", 0)
		require.NoError(t, err)
		time.Sleep(time.Second)
		killed.dead.Store(true)
		require.NoError(t, first.Close())
		time.Sleep(2 * durable.DefaultLease)

		bodies := 0
		e, wf := process(st, func(ctx context.Context) (int, error) {
			return durable.Transact(ctx, "pay", func(context.Context, *sqlx.Tx) (int, error) {
				if bodies++; bodies < 10 {
					return 0, sqlite3.Error{Code: sqlite3.ErrBusy}
				}
				return 7, nil
			})
		})
		defer e.Close()
		_, err = e.Recover(t.Context())
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), e)
		h, err := wf.Handle(ctx, "r")
		require.NoError(t, err)
		n, err := h.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, n)
		require.Equal(t, 10, bodies)
		history, err := st.Load(ctx, "r", store.Cursor{})
		require.NoError(t, err)
		begun := 0
		for ev, err := range history.Events {
			require.NoError(t, err)
			if ev.Type == store.StepStarted {
				begun++
			}
		}
		require.Equal(t, 1, begun)
	})
}
