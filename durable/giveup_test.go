package durable_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// haltedStore is a store that holds up the first commit of an event of one type, until it is let go or
// the context ends, and then carries it out.
type haltedStore struct {
	store.Store
	typ  store.Type
	once sync.Once
	at   chan struct{} // closed when the commit has come
	free chan struct{} // closed to let it go
}

func haltAt(s store.Store, typ store.Type) *haltedStore {
	return &haltedStore{Store: s, typ: typ, at: make(chan struct{}), free: make(chan struct{})}
}

func (h *haltedStore) Commit(ctx context.Context, batch []store.Change) []error {
	for i := range batch {
		for j := range batch[i].Events {
			if batch[i].Events[j].Type == h.typ {
				h.once.Do(func() {
					close(h.at)
					select {
					case <-h.free:
					case <-ctx.Done():
					}
				})
			}
		}
	}
	return h.Store.Commit(ctx, batch)
}

// A run completes while a body that it has left behind saves its progress. The body learns that
// its run has ended, and not that another executor has taken it: none has.
func TestABodyThatIsLeftBehindIsNotToldThatItsRunWasTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var cause, saved error
		returned := make(chan struct{})
		var at *haltedStore
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			left := durable.Go(ctx, "left", func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "body", func(ctx context.Context) (int, error) {
					defer close(returned)
					<-at.at
					saved = durable.SaveProgress(ctx, 1)
					<-ctx.Done()
					cause = context.Cause(ctx)
					return 0, cause
				})
			})
			won := durable.Go(ctx, "won", func(ctx context.Context) (int, error) {
				time.Sleep(time.Second)
				return 1, nil
			})
			_, n, err := durable.First(ctx, "first", left, won)
			return n, err
		})
		at = haltAt(w.data, store.WorkflowCompleted)
		eng, err := durable.Open(context.Background(), at, durable.Options{Workflows: []durable.Definition{wf}, Grace: -1})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		run, err := wf.Start(durable.NewContext(context.Background(), eng), "r", 0)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		close(at.free)
		n, err := run.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		<-returned
		require.NotErrorIs(t, saved, durable.ErrLost)
		require.NotErrorIs(t, cause, durable.ErrLost)
		require.ErrorIs(t, cause, durable.ErrOutsideRun)
	})
}

// The store does not answer the commit by which a run starts a child. Close says so, of both, and
// blames no code: the function of the child has not begun.
func TestCloseDoesNotBlameTheCodeOfAChildWhoseStartIsUnanswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		child := durable.Define("child", func(context.Context, int) (int, error) { return 1, nil })
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return child.Run(ctx, durable.AutoID, 0) })
		at := &deafStore{haltedStore: haltAt(w.data, store.ChildStarted)}
		eng, err := durable.Open(context.Background(), at, durable.Options{Workflows: []durable.Definition{wf, child}, Grace: -1})
		require.NoError(t, err)
		_, err = wf.Start(durable.NewContext(context.Background(), eng), "r", 0)
		require.NoError(t, err)
		<-at.at
		err = eng.Close()
		require.ErrorContains(t, err, "the store has not answered")
		require.NotContains(t, err.Error(), "ignores its context")
		close(at.free)
	})
}

// deafStore is haltedStore, and ignores its context.
type deafStore struct{ *haltedStore }

func (d *deafStore) Commit(ctx context.Context, batch []store.Change) []error {
	return d.haltedStore.Commit(context.WithoutCancel(ctx), batch)
}
