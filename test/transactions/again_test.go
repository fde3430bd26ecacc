//go:build cgo

package transactions_test

import (
	"context"
	"log/slog"
	"path/filepath"
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
