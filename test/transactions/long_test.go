package transactions_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
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
