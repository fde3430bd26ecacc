package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// handing boots an engine on a store whose claims hand over the creation of a run, and
// counts its loads.
func handing(t *testing.T, w *world, wf durable.Definition) (loads func() int, onClaim func(func())) {
	var n atomic.Int32
	var then atomic.Pointer[func()]
	w.boot(t, with(wf))
	w.disk.handing(true)
	w.disk.tamperCalls(func(call string, forward func() error) error {
		err := forward()
		switch call {
		case "load":
			n.Add(1)
		case "claim":
			if f := then.Load(); f != nil {
				(*f)()
			}
		}
		return err
	})
	synctest.Wait()
	return func() int { return int(n.Load()) }, func(f func()) { then.Store(&f) }
}

func TestARunWhoseCreationTheClaimHasReadIsNotLoaded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "twice", func(context.Context) (int, error) { return 2 * n, nil })
		})
		loads, _ := handing(t, w, wf)
		// When they are claimed, the notice of their start is over: the engine would look for what it tells.
		_, err := wf.Enqueue(w.ctx(), "r", 21, durable.Delay(time.Hour))
		require.NoError(t, err)
		pass(2 * time.Hour)
		require.Equal(t, store.Completed, w.row("r").Status, "log:\n%s", w.log)
		require.Zero(t, loads())
		w.disk.handing(false)
		_, err = wf.Enqueue(w.ctx(), "s", 21, durable.Delay(time.Hour))
		require.NoError(t, err)
		pass(2 * time.Hour)
		require.Equal(t, store.Completed, w.row("s").Status)
		require.NotZero(t, loads(), "otherwise it is")
		require.Equal(t, w.story("s"), w.story("r"))
	})
}

// The claim's answer is on its way: the engine does not know the run yet, and hears that
// something has come for it.
func TestAMessageThatComesBetweenAClaimAndItsRunIsNotOverlooked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "word") })
		loads, onClaim := handing(t, w, wf)
		held, release := make(chan struct{}), make(chan struct{})
		onClaim(func() {
			if h, err := w.disk.Store.Load(context.Background(), "r", store.Cursor{NoEvents: true}); err == nil && h.Run.Owner != "" {
				onClaim(func() {})
				close(held)
				<-release
			}
		})
		_, err := wf.Enqueue(w.ctx(), "r", 0)
		require.NoError(t, err)
		<-held
		require.NoError(t, durable.Signal(w.ctx(), "r", "word", "go"))
		synctest.Wait() // it has been heard of
		close(release)
		synctest.Wait() // no time passes, and so no beat comes
		require.Equal(t, store.Completed, w.row("r").Status, "log:\n%s", w.log)
		require.NotZero(t, loads())
	})
}

// A store that has read a history before it had the run's lock may hand over too little of it. The
// row, which comes with the claim, says that there is more.
func TestAHistoryThatIsNotAllThatTheRowKnowsOfIsLoaded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "word") })
		handing(t, w, wf)
		w.disk.mu.Lock()
		w.disk.careless = true
		w.disk.mu.Unlock()
		_, err := wf.Enqueue(w.ctx(), "told", 0, durable.Delay(time.Hour))
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "told", "word", "go"))
		id := ""
		for n := range 2 { // the second replaces the input of the first
			h, err := wf.Start(w.ctx(), durable.AutoID, n, durable.OnQueue("q"), durable.Debounce("k", time.Hour, time.Hour))
			require.NoError(t, err)
			require.True(t, id == "" || id == h.ID())
			id = h.ID()
		}
		require.NoError(t, durable.Signal(w.ctx(), id, "word", "go"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for _, id := range []string{"told", id} {
			require.Equal(t, store.Completed, w.row(id).Status, "log:\n%s", w.log)
		}
	})
}

// A run that was claimed begins only once a start of the same id, which is under way here and comes
// too late, has made way. What comes for the run meanwhile reaches that one.
func TestAMessageThatComesWhileAClaimedRunWaitsForAStartIsNotOverlooked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return durable.Await[string](ctx, "word") })
		elsewhere := w.open(t, durable.Options{})
		handing(t, w, wf)
		release := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].Create != nil {
				<-release
			}
			return forward()
		})
		started := make(chan error)
		go func() {
			_, err := wf.Start(w.ctx(), "r", 0)
			started <- err
		}()
		synctest.Wait()
		_, err := durable.Ref[int, string]("w").Enqueue(durable.NewContext(context.Background(), elsewhere), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, w.eng.ID(), w.row("r").Owner, "it is claimed")
		require.NoError(t, durable.Signal(w.ctx(), "r", "word", "go"))
		synctest.Wait()
		close(release)
		require.NoError(t, <-started)
		synctest.Wait() // no time passes, and so no beat comes
		require.Equal(t, store.Completed, w.row("r").Status, "log:\n%s", w.log)
	})
}
