package durable_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAGenerationHasWhatTheRunWasStartedWith(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (map[string]string, error) {
			if n == 0 {
				if err := durable.SetAttributes(ctx, map[string]string{"stage": "late"}); err != nil {
					return nil, err
				}
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return nil, err
			}
			if n < 2 {
				return nil, durable.Continue(ctx, n+1)
			}
			return durable.Headers(ctx), nil
		})
		w.boot(t, with(wf))
		o := []durable.StartOption{durable.Header("tenant", "acme"), durable.Exclusive("worktree:a"), durable.Deadline(10 * time.Hour), durable.Attributes(map[string]string{"kind": "x"})}
		run, err := wf.Start(w.ctx(), "r", 0, o...)
		require.NoError(t, err)
		pass(90 * time.Minute)
		w.reboot(t, with(wf))
		_, err = wf.Start(w.ctx(), "other", 0, durable.Exclusive("worktree:a"))
		require.ErrorIs(t, err, durable.ErrOccupied)
		info, err := w.eng.Get(w.ctx(), "r")
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Generation)
		require.Equal(t, map[string]string{"tenant": "acme"}, info.Headers)
		require.Equal(t, []string{"worktree:a"}, info.Exclusive)
		require.Equal(t, map[string]string{"kind": "x", "stage": "late"}, info.Attributes)
		h, err := wf.Handle(w.ctx(), run.ID())
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"tenant": "acme"}, out)
	})
}

func TestADeadlineEndsARunThatContinuesForEver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			return 0, durable.Continue(ctx, n+1)
		})
		w.boot(t, with(wf))
		run, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(270*time.Minute))
		require.NoError(t, err)
		began := time.Now()
		_, err = run.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrDeadline)
		require.Equal(t, 270*time.Minute, time.Since(began).Round(time.Second))
		require.EqualValues(t, 4, w.row("r").Generation)
	})
}

func TestAnUnloadedRunIsPausedAndUnpaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			defer p.enter()()
			return 7, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(time.Minute)
		require.Zero(t, p.here.Load())
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "look first"))
		synctest.Wait()
		require.True(t, w.row("r").Paused)
		pass(2 * time.Hour)
		require.Equal(t, store.Waiting, w.row("r").Status, "its timer does not wake it")
		require.Zero(t, p.here.Load())
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

func TestAGenerationReadsItsEncryptedInput(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, names []string) (string, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			next, err := durable.Await[string](ctx, "name")
			if err != nil {
				return "", err
			}
			if len(names) == 2 {
				return strings.Join(append(names, next), ","), nil
			}
			return "", durable.Continue(ctx, append(names, next))
		})
		o := with(wf)
		o.Encrypt = durable.StaticKeys("k1", map[string][]byte{"k1": bytes.Repeat([]byte{7}, 32)})
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", nil, durable.WithSignal("name", "first"))
		require.NoError(t, err)
		for _, name := range []string{"second", "third"} {
			pass(90 * time.Minute)
			w.reboot(t, o)
			require.NoError(t, durable.Signal(w.ctx(), "r", "name", name))
		}
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "first,second,third", out)
	})
}
