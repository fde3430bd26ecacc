package durable_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestKeysAreReadableAndUnambiguous(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		names := []string{"charge", "charge", "a/b", "a", "a#2", "a", "x[1]~@%", "ü 🙂", "charge", "%2F", "a/b"}
		keys := []string{"charge", "charge#2", "a%2Fb", "a", "a%232", "a#2", "x%5B1%5D%7E%40%25", "ü 🙂", "charge#3", "%252F", "a%2Fb#2"}
		var inBody []string
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for _, n := range names {
				if err := durable.Do(ctx, n, func(ctx context.Context) error {
					inBody = append(inBody, durable.Attempt(ctx).Key)
					return nil
				}); err != nil {
					return 0, err
				}
			}
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.Equal(t, keys, inBody)
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, keys, inBody, "a recorded step ran again")
		var recorded []string
		for _, e := range w.events("r") {
			if e.Type == store.StepCompleted {
				recorded = append(recorded, e.Key)
			}
		}
		require.Equal(t, append(keys, "hold"), recorded)
	})
}

// A name that cannot be used is refused before anything is written, the same on
// every replay, and the run can go on without it.
func TestNamesAndIdsThatCannotBeUsedAreRefused(t *testing.T) {
	bad := map[string]string{
		"": "empty", strings.Repeat("x", 256): "at most 255", "a\x00b": "control character", "a\nb": "control character", "a\xff": "UTF-8", "\u0085": "control character",
	}
	for name, says := range bad {
		live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
			return durable.Step(ctx, name, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
		})
		require.ErrorIs(t, live.err, durable.ErrInvalid)
		require.ErrorContains(t, live.err, says)
		require.Equal(t, live, replay)
		var n *store.NameError
		require.ErrorAs(t, live.err, &n)
		require.Equal(t, "step name", n.Kind)
	}
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, nil })
		w.serve(t, wf)
		for _, id := range []string{"", strings.Repeat("x", 1025), "a\x00", "a\x7f", "a\xff"} {
			_, err := wf.Start(w.ctx(), id, 0)
			require.ErrorIs(t, err, durable.ErrInvalid, "%q", id)
		}
		n, err := w.data.Count(t.Context(), store.Filter{}, "")
		require.NoError(t, err)
		require.Zero(t, n[""])
		for _, id := range []string{"r", strings.Repeat("x", 1024), "🙂 / # % ' \" ; --", " "} {
			_, err := run(t, w, wf, id, 0)
			require.NoError(t, err, "%q", id)
		}
		for name := range bad {
			_, err := durable.Open(t.Context(), w.data, with(durable.Define(name, func(context.Context, int) (int, error) { return 0, nil })))
			require.ErrorIs(t, err, durable.ErrInvalid, "%q", name)
			_, err = durable.Open(t.Context(), w.data, with(durable.Define("w", func(context.Context, int) (int, error) { return 0, nil }, durable.Steps("ok", name))))
			require.ErrorIs(t, err, durable.ErrInvalid, "%q", name)
			_, err = durable.Ref[int, int](name).Start(w.ctx(), "id", 0)
			require.ErrorIs(t, err, durable.ErrInvalid, "%q", name)
		}
	})
}

func TestTheIdempotencyKeyNamesOneEffect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var keys []string
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			require.Empty(t, durable.IdempotencyKey(ctx), "in the workflow function")
			_, _ = durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3}, func(ctx context.Context) (int, error) {
				keys = append(keys, durable.IdempotencyKey(ctx))
				if durable.Attempt(ctx).Number == 2 && h.count() == 0 {
					return 0, h.body(ctx)
				}
				return 0, errStock
			})
			return 0, durable.Do(ctx, "charge", func(ctx context.Context) error { keys = append(keys, durable.IdempotencyKey(ctx)); return nil })
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Running)
		for h.count() == 0 {
			w.expire()
		}
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Len(t, keys, 5) // attempts 1, 2 (killed), 2, 3, and the other step
		require.Equal(t, []string{keys[0], keys[0], keys[0], keys[0]}, keys[:4])
		require.NotEqual(t, keys[0], keys[4])
		require.NotEmpty(t, keys[0])
		before := keys
		_, err = run(t, w, wf, "r2", 0)
		require.NoError(t, err)
		for _, k := range keys[len(before):] {
			require.NotContains(t, before, k, "another run has other keys")
		}
		require.Empty(t, durable.IdempotencyKey(t.Context()))
	})
}
