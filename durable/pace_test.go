package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestHealthSaysHowLongCommitsTake(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, steps int) (int, error) {
			for i := range steps {
				if err := durable.Do(ctx, fmt.Sprintf("s%d", i), func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		eng := w.serve(t, wf)
		h, err := eng.Health(w.ctx())
		require.NoError(t, err)
		require.Zero(t, h.Commits)
		require.Zero(t, h.CommitP99)

		slow := false
		w.disk.tamper(func(_ []store.Change, forward func() []error) []error {
			if slow {
				time.Sleep(3 * time.Second)
			} else {
				time.Sleep(2 * time.Millisecond)
			}
			return forward()
		})
		r, err := wf.Start(w.ctx(), "quick", 200)
		require.NoError(t, err)
		_, err = r.Wait(w.ctx())
		require.NoError(t, err)
		h, err = eng.Health(w.ctx())
		require.NoError(t, err)
		require.Greater(t, h.Commits, 200, "one for each step, one to begin and one to end")
		require.Equal(t, 2*time.Millisecond, h.CommitP99)

		slow = true // a hundredth of them may be slow, and no more
		r, err = wf.Start(w.ctx(), "slow", 3)
		require.NoError(t, err)
		_, err = r.Wait(w.ctx())
		require.NoError(t, err)
		h, err = eng.Health(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, h.CommitP99)

		pass(5 * time.Minute)
		h, err = eng.Health(w.ctx())
		require.NoError(t, err)
		require.Zero(t, h.Commits, "what took long then says nothing of now")
	})
}

func TestHealthSaysHowManyTimersAreLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, d time.Duration) (int, error) { return 0, durable.Sleep(ctx, d) })
		o := durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: time.Minute}
		w.boot(t, o)
		late := func() int {
			t.Helper()
			synctest.Wait()
			h, err := w.eng.Health(w.ctx())
			require.NoError(t, err)
			return h.TimersLate
		}
		for id, d := range map[string]time.Duration{"first": time.Hour, "second": time.Hour, "tomorrow": 24 * time.Hour} {
			_, err := wf.Start(w.ctx(), id, d)
			require.NoError(t, err)
		}
		pass(59 * time.Minute)
		require.Zero(t, late())

		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" {
				return errors.New("the disk is full")
			}
			return forward()
		})
		pass(time.Minute + 500*time.Millisecond)
		require.Zero(t, late(), "half a second is not worth a warning")
		pass(time.Second)
		require.Equal(t, 2, late())
		pass(time.Hour)
		require.Equal(t, 2, late(), "however often loading them is put off")
		w.disk.tamperCalls(nil)
		pass(time.Minute)
		require.Zero(t, late())
		require.Equal(t, store.Completed, w.row("first").Status)
		require.Equal(t, store.Waiting, w.row("tomorrow").Status)

		// They can be read, but slowly, and not all at a time.
		for i := range 40 {
			_, err := wf.Start(w.ctx(), fmt.Sprintf("one of many %d", i), time.Hour)
			require.NoError(t, err)
		}
		pass(time.Second)
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" {
				time.Sleep(10 * time.Second)
			}
			return forward()
		})
		pass(time.Hour + 2*time.Second)
		require.Equal(t, 40, late(), "those that are being read, and those in line")
		w.disk.tamperCalls(nil)
		pass(time.Minute)
		require.Zero(t, late())
	})
}
