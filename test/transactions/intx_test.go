package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// soon is far less than the heartbeat (10 s), which would find a run at last.
const soon = 3 * time.Second

func echo() *durable.Workflow[int, int] {
	return durable.Define("echo", func(_ context.Context, n int) (int, error) { return n, nil })
}

func listener() *durable.Workflow[int, string] {
	return durable.Define("listener", func(ctx context.Context, _ int) (string, error) {
		return durable.Await[string](ctx, "news")
	})
}

func TestAStartInTheProgramsTransactionHappensWithIt(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := echo()
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := durable.Recover(ctx)
		require.NoError(t, err)
		handle, err := wf.Handle(ctx, "r")
		require.NoError(t, err)

		tx, err := b.db.BeginTxx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, mark(tx, "rolled back"))
		_, err = wf.Start(ctx, "r", 7, durable.InTx(tx))
		require.NoError(t, err)
		require.NoError(t, tx.Rollback())
		_, err = handle.Wait(ctx)
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.Zero(t, b.applied(t, "rolled back"))

		for range 2 { // the second start finds the run
			plain, err := b.db.DB.BeginTx(ctx, nil)
			require.NoError(t, err)
			_, err = plain.Exec(`INSERT INTO applied (what) VALUES ('committed')`)
			require.NoError(t, err)
			h, err := wf.Start(ctx, "r", 7, durable.InTx(plain))
			require.NoError(t, err)
			require.Equal(t, "r", h.ID())
			require.NoError(t, plain.Commit())
			within, cancel := context.WithTimeout(ctx, soon)
			n, err := h.Wait(within) // executed at once, and not at the next beat
			cancel()
			require.NoError(t, err)
			require.Equal(t, 7, n)
		}
		require.Equal(t, 2, b.applied(t, "committed"))

		tx, err = b.db.BeginTxx(ctx, nil)
		require.NoError(t, err)
		var conflict *durable.ConflictError
		_, err = wf.Start(ctx, "r", 8, durable.InTx(tx))
		require.ErrorAs(t, err, &conflict)
		require.True(t, conflict.SameFlow)
		require.NoError(t, tx.Rollback())
	})
}

func TestAnotherProcessTakesWhatATransactionHasStartedAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := echo()
		worker := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := durable.Recover(worker)
		require.NoError(t, err)
		client := b.engine(t, durable.Options{}) // executes nothing
		tx, err := b.db.BeginTxx(client, nil)
		require.NoError(t, err)
		h, err := durable.Ref[int, int]("echo").Start(client, "r", 7, durable.InTx(tx))
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // the transaction takes a while; nothing may be found before its end
		_, err = h.Wait(client)
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.NoError(t, tx.Commit())
		within, cancel := context.WithTimeout(client, soon)
		defer cancel()
		n, err := h.Wait(within)
		require.NoError(t, err)
		require.Equal(t, 7, n)
	})
}

func TestASignalInTheProgramsTransactionHappensWithIt(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := listener()
		worker := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := durable.Recover(worker)
		require.NoError(t, err)
		h, err := wf.Start(worker, "r", 0)
		require.NoError(t, err)
		client := b.engine(t, durable.Options{})
		waiting := func() bool {
			row, err := b.last.Get(worker, "r")
			return err == nil && row.Status == store.Waiting
		}
		eventually(t, "the run waits", waiting)

		send := func(text string, end func(*sqlx.Tx) error) {
			tx, err := b.db.BeginTxx(client, nil)
			require.NoError(t, err)
			require.NoError(t, mark(tx, text))
			require.NoError(t, durable.Signal(client, "r", "news", text, durable.InTx(tx), durable.SignalID(text)))
			require.NoError(t, end(tx))
		}
		send("unsent", (*sqlx.Tx).Rollback)
		send("sent", (*sqlx.Tx).Commit)
		within, cancel := context.WithTimeout(worker, soon)
		defer cancel()
		text, err := h.Wait(within)
		require.NoError(t, err)
		require.Equal(t, "sent", text)
		require.Zero(t, b.applied(t, "unsent"))

		tx, err := b.db.BeginTxx(client, nil)
		require.NoError(t, err)
		require.ErrorIs(t, durable.Signal(client, "r", "news", "late", durable.InTx(tx)), durable.ErrNotRunning)
		require.NoError(t, tx.Rollback())
		tx, err = b.db.BeginTxx(client, nil)
		require.NoError(t, err)
		require.ErrorIs(t, durable.Signal(client, "nobody", "news", "", durable.InTx(tx)), durable.ErrNotFound)
		require.NoError(t, tx.Rollback())
	})
}

func TestAStepMayStartAndSignalInItsTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		child, hears := echo(), listener()
		wf := durable.Define("w", func(ctx context.Context, fail bool) (int, error) {
			return durable.Transact(ctx, "hand over", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if _, err := child.Start(ctx, "made/"+durable.RunID(ctx), 5, durable.InTx(tx)); err != nil {
					return 0, err
				}
				if err := durable.Signal(ctx, "hears", "news", durable.RunID(ctx), durable.InTx(tx)); err != nil {
					return 0, err
				}
				if fail {
					return 0, context.DeadlineExceeded
				}
				return 1, nil
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf, child, hears}})
		_, err := durable.Recover(ctx)
		require.NoError(t, err)
		h, err := hears.Start(ctx, "hears", 0)
		require.NoError(t, err)
		_, err = wf.Run(ctx, "bad", true)
		require.Error(t, err)
		_, err = b.last.Get(ctx, "made/bad")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = wf.Run(ctx, "good", false)
		require.NoError(t, err)
		within, cancel := context.WithTimeout(ctx, soon)
		defer cancel()
		text, err := h.Wait(within)
		require.NoError(t, err)
		require.Equal(t, "good", text)
		made, err := child.Handle(ctx, "made/good")
		require.NoError(t, err)
		n, err := made.Wait(within)
		require.NoError(t, err)
		require.Equal(t, 5, n)
	})
}

func TestATransactionOfAnotherDatabaseIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		other := newBank(t, b.kind)
		wf := echo()
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		tx, err := other.db.BeginTxx(ctx, nil)
		require.NoError(t, err)
		_, err = wf.Start(ctx, "r", 7, durable.InTx(tx))
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.NoError(t, tx.Rollback())
		_, err = wf.Start(ctx, "r", 7, durable.InTx((*sql.Tx)(nil)))
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}

func TestACancelInTheProgramsTransactionHappensWithIt(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := listener()
		worker := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}, Queues: []durable.Queue{{Name: "q"}}})
		_, err := durable.Recover(worker)
		require.NoError(t, err)
		here := b.last
		client := b.engine(t, durable.Options{}) // executes nothing
		mine := b.last
		within, cancel := context.WithTimeout(client, soon)
		defer cancel()
		status := func(id string) store.Status {
			row, err := here.Get(client, id)
			require.NoError(t, err)
			return row.Status
		}
		end := func(id string, o ...func(*sqlx.Tx) error) {
			t.Helper()
			for _, end := range o {
				tx, err := b.db.BeginTxx(client, nil)
				require.NoError(t, err)
				require.NoError(t, mine.Cancel(client, id, "enough", durable.InTx(tx)))
				require.NoError(t, end(tx))
			}
		}

		// One that waits, one that is not due, and one in the line of a paused queue.
		waits, err := wf.Start(worker, "waits", 0)
		require.NoError(t, err)
		later, err := wf.Start(worker, "later", 0, durable.Delay(time.Hour))
		require.NoError(t, err)
		require.NoError(t, operate.On(here).PauseQueue(worker, "q", ""))
		line, err := wf.Start(worker, "line", 0, durable.OnQueue("q"))
		require.NoError(t, err)
		eventually(t, "the run waits", func() bool { return status("waits") == store.Waiting })
		for _, h := range []*durable.Run[string]{waits, later, line} {
			end(h.ID(), (*sqlx.Tx).Rollback)
			row, err := here.Get(worker, h.ID())
			require.NoError(t, err)
			require.False(t, row.CancelAsked, "%s: what was rolled back has not happened", h.ID())
			end(h.ID(), (*sqlx.Tx).Commit)
			_, err = h.Wait(within)
			require.ErrorIs(t, err, durable.ErrRunCancelled, h.ID())
			require.ErrorContains(t, err, "enough")
		}

		// A run that the same transaction has started, cancelled twice.
		tx, err := b.db.DB.BeginTx(client, nil)
		require.NoError(t, err)
		both, err := wf.Start(worker, "both", 0, durable.InTx(tx))
		require.NoError(t, err)
		require.NoError(t, mine.Cancel(client, "both", "at once", durable.InTx(tx)))
		require.NoError(t, mine.Cancel(client, "both", "again", durable.InTx(tx)))
		require.NoError(t, tx.Commit())
		_, err = both.Wait(within)
		require.ErrorIs(t, err, durable.ErrRunCancelled)

		done, err := wf.Start(worker, "done", 0)
		require.NoError(t, err)
		require.NoError(t, durable.Signal(worker, "done", "news", "x"))
		_, err = done.Wait(worker)
		require.NoError(t, err)
		tx, err = b.db.DB.BeginTx(client, nil)
		require.NoError(t, err)
		require.ErrorIs(t, mine.Cancel(client, "done", "", durable.InTx(tx)), durable.ErrNotRunning)
		require.NoError(t, tx.Rollback())
		tx, err = b.db.DB.BeginTx(client, nil)
		require.NoError(t, err)
		require.ErrorIs(t, mine.Cancel(client, "nobody", "", durable.InTx(tx)), durable.ErrNotFound)
		require.NoError(t, tx.Rollback())
		require.ErrorIs(t, mine.Cancel(client, "both", "", durable.InTx((*sql.Tx)(nil))), durable.ErrInvalid)
	})
}

// A forced Resume takes a cancel back. The next one is another one, also in a transaction.
func TestACancelInATransactionCountsAfterOneThatWasTakenBack(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := listener()
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := durable.Recover(ctx)
		require.NoError(t, err)
		h, err := wf.Start(ctx, "r", 0)
		require.NoError(t, err)
		require.NoError(t, b.last.Cancel(ctx, "r", "first"))
		_, err = h.Wait(ctx)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		_, err = operate.On(b.last).Resume(ctx, "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		eventually(t, "the run waits again", func() bool {
			row, err := b.last.Get(ctx, "r")
			return err == nil && row.Status == store.Waiting
		})
		tx, err := b.db.BeginTxx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, b.last.Cancel(ctx, "r", "second", durable.InTx(tx)))
		require.NoError(t, tx.Commit())
		within, cancel := context.WithTimeout(ctx, soon)
		defer cancel()
		again, err := wf.Handle(ctx, "r")
		require.NoError(t, err)
		_, err = again.Wait(within)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.ErrorContains(t, err, "second")
	})
}

func TestAStepMayCancelInItsTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		var eng *durable.Engine
		boss := durable.Define("boss", func(ctx context.Context, _ int) (bool, error) {
			return durable.Transact(ctx, "stop", func(ctx context.Context, tx *sqlx.Tx) (bool, error) {
				if err := eng.Cancel(ctx, "r", "the boss says so"); !errors.Is(err, durable.ErrNested) {
					return false, durable.Permanent(fmt.Errorf("a cancel beside the transaction: %w", err))
				}
				return true, eng.Cancel(ctx, "r", "the boss says so", durable.InTx(tx))
			})
		})
		wf := listener()
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf, boss}})
		eng = b.last
		_, err := durable.Recover(ctx)
		require.NoError(t, err)
		h, err := wf.Start(ctx, "r", 0)
		require.NoError(t, err)
		_, err = boss.Run(ctx, "boss", 0)
		require.NoError(t, err)
		_, err = h.Wait(ctx)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
	})
}

// The store is available; it is the transaction that never takes a start again.
func TestATransactionThatCannotTakeAStartIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := echo()
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		refused := func(tx *sqlx.Tx, says string) {
			_, err := wf.Start(ctx, "r", 7, durable.InTx(tx))
			require.ErrorIs(t, err, durable.ErrInvalid)
			require.NotErrorIs(t, err, durable.ErrUnavailable)
			require.ErrorContains(t, err, says)
			require.NotErrorIs(t, durable.Signal(ctx, "r", "news", 1, durable.InTx(tx)), durable.ErrUnavailable)
			_ = tx.Rollback()
		}
		for _, end := range []func(*sqlx.Tx) error{(*sqlx.Tx).Rollback, (*sqlx.Tx).Commit} {
			tx := b.db.MustBegin()
			require.NoError(t, end(tx))
			refused(tx, "has ended")
		}
		if b.kind == "sqlite" {
			db := sqlx.MustConnect("sqlite3", "file:"+b.dsn+"?_query_only=1")
			defer db.Close()
			refused(db.MustBegin(), "may only read")
		} else {
			refused(b.db.MustBeginTx(ctx, &sql.TxOptions{ReadOnly: true}), "may only read")
			tx := b.db.MustBegin()
			_, _ = tx.Exec("SELECT nonsense")
			refused(tx, "aborted by an earlier statement")
		}
		_, err := b.last.Get(ctx, "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}
