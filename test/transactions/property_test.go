package transactions_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// misheard is a store whose answers to the commits of transactions are lost or wrong, in
// a given order.
type misheard struct {
	store.Store
	store.Transactor

	mu   sync.Mutex
	luck []string // what becomes of the next commits; then all is well
}

const (
	well     = "well"
	landed   = "durable, and the answer is lost"
	vanished = "undone, and the answer is lost"
	conflict = "undone by a conflict"
	crowded  = "said to be fenced, as under SERIALIZABLE"
)

func (s *misheard) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.luck) == 0 {
		return well
	}
	l := s.luck[0]
	s.luck = s.luck[1:]
	return l
}

func (s *misheard) BeginTx(ctx context.Context) (store.Tx, error) {
	tx, err := s.Transactor.BeginTx(ctx)
	return misheardTx{tx, s}, err
}

type misheardTx struct {
	store.Tx
	s *misheard
}

// errStop ends the first life of a run, which is then resumed.
var errStop = errors.New("stop")

var errConflict = errors.New("a conflict")

func (t misheardTx) Again(err error) bool { return errors.Is(err, errConflict) || t.Tx.Again(err) }

func (t misheardTx) Commit(c store.Change) error {
	switch t.s.next() {
	case landed:
		if err := t.Tx.Commit(c); err != nil {
			return err
		}
		return store.ErrUnknown
	case vanished:
		return errors.Join(store.ErrUnknown, t.Tx.Rollback())
	case conflict:
		return errors.Join(errConflict, t.Tx.Rollback())
	case crowded:
		return errors.Join(store.ErrFenced, t.Tx.Rollback())
	}
	return t.Tx.Commit(c)
}

// Branches of one run make plain, relaxed and transactional steps, while commits come to
// nothing or are not heard of. Each effect of a transaction happens once, or not at all
// if its body fails; the log is whole; and a replay finds all of it.
func TestHoweverBranchesAndLostAnswersInterleaveEachEffectHappensOnce(t *testing.T) {
	ops := []string{"step", "relaxed", "transact", "transact", "fails", "twice"}
	rapid.Check(t, func(rt *rapid.T) {
		plan := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(ops), 1, 5), 1, 4).Draw(rt, "branches")
		luck := rapid.SliceOfN(rapid.SampledFrom([]string{well, well, landed, vanished, conflict, crowded}), 0, 12).Draw(rt, "luck")
		b := newBank(t, "sqlite")
		defer b.db.Close()
		failed, last := errors.New("failed"), false
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			g := durable.NewGroup(ctx)
			for i, branch := range plan {
				g.Go(fmt.Sprint("b", i), func(ctx context.Context) error {
					for j, op := range branch {
						name := fmt.Sprintf("%s-%d-%d", op, i, j)
						err := perform(ctx, op, name, failed)
						if (op == "fails") != errors.Is(err, failed) || op != "fails" && err != nil {
							return fmt.Errorf("%s: %w", name, err)
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil || last {
				return len(plan), err
			}
			return 0, errStop
		})
		st := b.open(t)
		open := func() (*durable.Engine, context.Context) {
			m := &misheard{Store: st, Transactor: store.CapabilitiesOf(st).Transactor, luck: luck}
			e, err := durable.Open(t.Context(), m, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Errors: []durable.ErrorKind{durable.Sentinel("failed", failed), durable.Sentinel("stop", errStop)}})
			require.NoError(rt, err)
			return e, durable.NewContext(t.Context(), e)
		}
		e, ctx := open()
		_, err := wf.Run(ctx, "r", 0)
		require.ErrorIs(rt, err, errStop)
		effects := 0
		for i, branch := range plan {
			for j, op := range branch {
				want := map[string]int{"transact": 1, "twice": 1}[op]
				effects += want
				require.Equal(rt, want, b.applied(t, fmt.Sprintf("%s-%d-%d", op, i, j)), "%s-%d-%d", op, i, j)
			}
		}
		found, err := operate.On(e).Verify(t.Context(), "r")
		require.NoError(rt, err)
		require.Empty(rt, found.Findings)
		require.NoError(rt, e.Close())
		// The next life replays all of it, and goes on where it stopped.
		last = true
		e, ctx = open()
		_, err = operate.On(e).Resume(ctx, "r", operate.ResumeOptions{})
		require.NoError(rt, err)
		h, err := wf.Handle(ctx, "r")
		require.NoError(rt, err)
		n, err := h.Wait(ctx)
		require.NoError(rt, err)
		require.Equal(rt, len(plan), n)
		var applied int
		require.NoError(rt, b.db.Get(&applied, `SELECT count(*) FROM applied`))
		require.Equal(rt, effects, applied, "a replay has no effects")
		require.NoError(rt, e.Close())
		require.NoError(rt, st.Close())
	})
}

func perform(ctx context.Context, op, name string, failed error) error {
	switch op {
	case "step":
		return durable.Do(ctx, name, func(context.Context) error { return nil })
	case "relaxed":
		return durable.Do(ctx, name, func(context.Context) error { return nil }, durable.Relaxed())
	case "twice":
		_, err := durable.RetryTransact(ctx, name, durable.Policy{Initial: 1, Jitter: -1}, func(ctx context.Context, tx *sqlx.Tx) (int, error) {
			if err := mark(tx, name); err != nil || durable.Attempt(ctx).Number > 1 {
				return 0, err
			}
			return 0, failed
		})
		return err
	}
	_, err := durable.Transact(ctx, name, func(_ context.Context, tx *sqlx.Tx) (int, error) {
		if err := mark(tx, name); err != nil {
			return 0, err
		}
		if op == "fails" {
			return 0, failed
		}
		return 1, nil
	})
	return err
}
