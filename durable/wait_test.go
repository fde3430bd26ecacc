package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestWaitForARunThatDoesNotExist(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 0, nil })
		w.serve(t, wf)
		_, err := wait(t, w, wf, "nobody")
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.ErrorContains(t, err, "nobody")
		require.ErrorIs(t, resume(w.eng, w.ctx(), "nobody"), durable.ErrNotFound)
		_, err = w.eng.Get(w.ctx(), "nobody")
		require.ErrorIs(t, err, durable.ErrNotFound)
		for _, err := range w.eng.History(w.ctx(), "nobody") {
			require.ErrorIs(t, err, durable.ErrNotFound)
		}
	})
}

func TestWaitOnAnInterruptedRunNamesTheCallThatGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Do(ctx, "hold", h.body) })
		w.serve(t, wf)
		handle := start(t, w, wf, "r", 0)
		got := make(chan error, 1)
		go func() { _, err := handle.Wait(context.Background()); got <- err }()
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		w.open(t, durable.Options{}) // a process that cannot continue it
		_, elsewhere := wait(t, w, wf, "r")
		for _, err := range []error{<-got, elsewhere} {
			var i *durable.InterruptedError
			require.ErrorAs(t, err, &i)
			require.ErrorIs(t, err, durable.ErrInterrupted)
			require.Equal(t, "r", i.RunID)
			require.ErrorContains(t, err, `operate.On(engine).Resume(ctx, "r")`)
			require.ErrorContains(t, err, "durable.Recover(ctx)")
		}
		require.Equal(t, store.Interrupted, w.row("r").Status)
	})
}

// Whoever waits does not notice that the run changes its process.
func TestWaitFollowsARunFromProcessToProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Do(ctx, "hold", h.body) })
		w.open(t, durable.Options{})
		watcher := w.ctx()
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		handle, err := wf.Handle(watcher, "r")
		require.NoError(t, err)
		out := make(chan int, 1)
		go func() {
			v, err := handle.Wait(watcher)
			require.NoError(t, err)
			out <- v
		}()
		synctest.Wait()
		w.reboot(t, with(wf))
		require.Equal(t, 7, <-out)
	})
}

// Many wait for one; the end wakes them all, at once and not with the next look.
func TestTheEndWakesEveryoneWhoWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) { time.Sleep(time.Hour); return 1, nil })
		})
		w.serve(t, wf)
		h := start(t, w, wf, "r", 0)
		origin := time.Now()
		w.open(t, durable.Options{})
		elsewhere, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		took := make(chan time.Duration, 20)
		for i := range 20 {
			handle := []*durable.Run[int]{h, elsewhere}[i%2]
			go func() {
				_, err := handle.Wait(context.Background())
				require.NoError(t, err)
				took <- time.Since(origin)
			}()
		}
		for range 20 {
			require.Equal(t, time.Hour, <-took)
		}
	})
}

func TestAnIdleEngineHardlyAsksTheStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) { <-ctx.Done(); return 1, nil })
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		before := w.disk.Counts().Statements
		pass(time.Hour)
		perSecond := float64(w.disk.Counts().Statements-before) / 3600
		require.LessOrEqual(t, perSecond, 0.2)
	})
}

// Runs that nobody may touch (left alone, not served, parked, paused) must not
// make every engine look for work again and again.
func TestRunsThatCannotGoOnDoNotKeepTheEngineBusy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Do(ctx, "hold", h.body) })
		w.serve(t, wf)
		start(t, w, wf, "orphan", 0)
		synctest.Wait()
		w.crash()
		w.expire()
		o := with(wf)
		o.OnBoot = durable.LeaveOnBoot
		rep := w.boot(t, o)
		require.Equal(t, []string{"orphan"}, rep.Left)
		_, err := durable.Ref[int, int]("nobody's").Start(w.ctx(), "p", 0)
		require.NoError(t, err)
		pass(time.Minute)
		before := w.disk.Counts().Statements
		pass(time.Hour)
		require.LessOrEqual(t, float64(w.disk.Counts().Statements-before)/3600, 0.5)
		require.Equal(t, store.Running, w.row("orphan").Status)
	})
}

// A start that turns out to be one too many must not hold those who wait.
func TestWaitLooksAgainWhenAStartHereLosesToOneElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) { time.Sleep(time.Minute); return 1, nil })
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.serve(t, wf)
		w.disk.tamper(func(_ []store.Change, forward func() []error) []error {
			time.Sleep(time.Second)
			return forward()
		})
		go func() { _, _ = wf.Start(w.ctx(), "r", 0) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(w.ctx(), time.Hour)
		defer cancel()
		h, err := wf.Handle(ctx, "r")
		require.NoError(t, err)
		out, err := h.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}
