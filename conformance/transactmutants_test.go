package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// transacting gives the memory store transactions: whoever has one is the only one who
// writes, and what it has done is written when it commits. The fields break that.
type transacting struct {
	store.Store
	lock *transactLock

	atOnce     bool // what is done in a transaction is written at once
	keepsOnErr bool // and also when its change is refused
	forgets    bool // it is not written
	repeats    bool // a change that was carried out before is accepted
	rowFirst   bool // a branch that the run has is looked for before the log is
	blind      bool // the log is not looked at
	together   bool // others write while a transaction is open, and it does not notice
	stuck      bool // nobody writes while one is open, though the store says so
	deaf       bool // the end of the context does not end the wait
}

// transactLock is the data's, and not the handle's.
type transactLock struct{ turn chan struct{} }

type fakeTx struct {
	s    *transacting
	done []store.Change
	over bool
}

func (s *transacting) Commit(ctx context.Context, batch []store.Change) []error {
	if !s.together {
		<-s.lock.turn
		defer func() { s.lock.turn <- struct{}{} }()
	}
	return s.Store.Commit(ctx, batch)
}

func (s *transacting) OneWriter() bool { return !s.together && !s.stuck }

func (s *transacting) BeginTx(ctx context.Context) (store.Tx, error) {
	if s.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := s.Executors(ctx); errors.Is(err, store.ErrClosed) {
		return nil, err
	}
	select {
	case <-s.lock.turn:
		return &fakeTx{s: s}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *transacting) CommitIn(ctx context.Context, tx any, c store.Change) error {
	t, ok := tx.(*fakeTx)
	if !ok {
		return fmt.Errorf("%T: %w", tx, store.ErrInvalid)
	}
	if s.atOnce {
		return commit(s.Store, ctx, c)
	}
	t.done = append(t.done, c)
	return nil
}

func (t *fakeTx) Handle() any      { return t }
func (t *fakeTx) Again(error) bool { return false }

func (t *fakeTx) end() {
	if !t.over {
		t.over = true
		t.s.lock.turn <- struct{}{}
	}
}

func (t *fakeTx) Rollback() error { t.end(); return nil }

func (t *fakeTx) Commit(c store.Change) error {
	if t.over {
		return store.ErrInvalid
	}
	defer t.end()
	ctx := context.Background()
	err := c.Validate(t.s.Limits())
	if err == nil && !t.s.repeats {
		var h *store.History
		if h, err = t.s.Load(ctx, c.RunID, store.Cursor{NoEvents: true}); err == nil {
			if t.s.rowFirst && c.Branch != nil && slices.ContainsFunc(h.Branches, func(b store.Branch) bool { return b.N == c.Branch.N }) {
				err = store.ErrInvalid
			} else if last := h.Run.Last; last.Seq != c.Events[0].Seq-1 || last.Epoch != c.Expect.Epoch {
				err = store.ErrFenced
			}
		}
	}
	if err == nil || t.s.blind {
		if err = commit(t.s.Store, ctx, c); t.s.blind {
			err = nil
		}
	}
	if (err == nil || t.s.keepsOnErr) && !t.s.forgets {
		for _, d := range t.done {
			err = errors.Join(err, commit(t.s.Store, ctx, d))
		}
	}
	return err
}

func transactsBy(edit func(*transacting)) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		lock := &transactLock{make(chan struct{}, 1)}
		lock.turn <- struct{}{}
		return func(s store.Store) store.Store {
			t := &transacting{Store: s, lock: lock}
			edit(t)
			return t
		}
	}
}

func transactMutants() []mutant {
	return []mutant{
		{"writes what is done in a transaction at once", "S40", "rolled back", transactsBy(func(t *transacting) { t.atOnce = true })},
		{"keeps what was done beside a refused change", "S40", "takes its transaction with it", transactsBy(func(t *transacting) { t.keepsOnErr = true })},
		{"forgets what was done beside a change", "S40", "are one act", transactsBy(func(t *transacting) { t.forgets = true })},
		{"takes a change that was carried out before", "S40", "carried out before", transactsBy(func(t *transacting) { t.repeats = true })},
		{"says of a change that was carried out before what its row says", "S40", "carried out before", transactsBy(func(t *transacting) { t.rowFirst = true })},
		{"acknowledges what was refused", "S40", "same place", transactsBy(func(t *transacting) { t.blind, t.together = true, true })},
		{"keeps others waiting without saying so", "S40", "beside an open", transactsBy(func(t *transacting) { t.stuck = true })},
		{"waits for a transaction whatever the context", "S18", "ends with the context", transactsBy(func(t *transacting) { t.deaf = true })},
	}
}

func harnessOf(m mutant) conformance.Harness {
	h := broken(m.wraps)
	h.Has = []conformance.Capability{conformance.TxCommitter, conformance.Transactor}
	h.Patience = time.Second
	return h
}

func TestTheSuiteCatchesTransactMutants(t *testing.T) {
	for _, m := range transactMutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			c := find(t, m.by)
			require.Contains(t, clausesOf(c), m.clause, "the case %q checks another clause", c.Title())
			failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, harnessOf(m)) })
			require.NotEmpty(t, failures, "%q passes", c.Title())
			require.Regexp(t, `\b`+m.clause+`\b`, strings.Join(failures, "\n"), "the clause that is broken is named")
		})
	}
}

func TestAStoreWithSoundTransactionsPasses(t *testing.T) {
	sound := mutant{wraps: transactsBy(func(*transacting) {})}
	for _, c := range conformance.Cases() {
		if c.Needs == conformance.Transactor && c.Section == "transact" && c.Clauses != "S18, S23" { // its Close does not wait
			require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, harnessOf(sound)) }), c.Title())
		}
	}
}
