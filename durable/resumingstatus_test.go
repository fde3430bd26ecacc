package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// writesOf lets the process opened last count what it writes of r: changes with
// events, and changes of the row alone.
func (w *world) writesOf(id string) (withEvents, rowOnly *int) {
	withEvents, rowOnly = new(int), new(int)
	w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
		for i := range batch {
			switch {
			case batch[i].RunID != id:
			case len(batch[i].Events) > 0:
				*withEvents++
			default:
				*rowOnly++
			}
		}
		return forward()
	})
	return withEvents, rowOnly
}

// takeUp kills the process, recovers in another, and counts what that writes of a
// run.
func (w *world) takeUp(t *testing.T, wf durable.Definition, id string) (withEvents, rowOnly *int) {
	t.Helper()
	w.crash()
	w.expire()
	w.serve(t, wf)
	withEvents, rowOnly = w.writesOf(id)
	_, err := w.eng.Recover(w.ctx())
	require.NoError(t, err)
	return withEvents, rowOnly
}

func TestARunIsResumingWhileItIsReplayedAndRunningFromTheFirstNewBodyOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		life := 0
		replay := make(chan struct{})
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			a, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			if err != nil {
				return 0, err
			}
			if life > 0 {
				<-replay // the replay takes its time
			}
			b, err := durable.Step(ctx, "b", func(context.Context) (int, error) { return 2, nil })
			if err != nil {
				return 0, err
			}
			if err := durable.Do(ctx, "c", func(context.Context) error { bodies++; time.Sleep(time.Minute); return nil }); err != nil {
				return 0, err
			}
			d, err := durable.Step(ctx, "d", func(context.Context) (int, error) { return 3, nil })
			return a + b + d, err
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.Equal(t, store.Running, w.row("r").Status)

		life++
		events, rows := w.takeUp(t, wf, "r")
		synctest.Wait()
		require.Equal(t, store.Resuming, w.row("r").Status)
		require.Zero(t, *events+*rows)

		close(replay)
		synctest.Wait()
		require.Equal(t, 2, bodies, "it is in the body again")
		require.Equal(t, store.Running, w.row("r").Status)
		require.Zero(t, *rows, "the write of the mark says so, too")
		require.Equal(t, 1, *events, "after an end without a word a body begins on record")

		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 6, out)
		require.Zero(t, *rows)
		require.Equal(t, 4, *events, "and c, d and the end")
	})
}

func TestAResumedRunIsRunningWhileItPausesBeforeTheNextAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "flaky", durable.Policy{Initial: time.Hour, Max: time.Hour}, func(ctx context.Context) (int, error) {
				if n := durable.Attempt(ctx).Number; n < 3 {
					return 0, errors.New("not yet")
				}
				return 3, nil
			})
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		events, rows := w.takeUp(t, wf, "r")
		synctest.Wait()
		require.Equal(t, store.Running, w.row("r").Status)
		require.Equal(t, 1, *rows)
		require.Zero(t, *events)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 3, out)
		require.Equal(t, 1, *rows, "neither for the attempts that follow")
	})
}

func TestAResumeWithoutANewBodyWritesNothingOfItsOwn(t *testing.T) {
	ok := func(context.Context) error { return nil }
	inWorld(t, func(t *testing.T, w *world) {
		lives := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			lives++
			if err := durable.Do(ctx, "a", ok); err != nil {
				return 0, err
			}
			if lives == 1 {
				w.disk.cut() // nothing that follows is recorded
			}
			return 1, nil
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		events, rows := w.takeUp(t, wf, "r")
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 2, lives)
		require.Zero(t, *rows)
		require.Equal(t, 1, *events, "its end")
	})
}
