package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A key that was rotated out is in use as long as a run is there that it has
// encrypted, whether it has ended or not, and no longer.
func TestKeysInUseAreThoseOfAllThatIsStored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			out, err := durable.Step(ctx, "s", func(context.Context) (int, error) { return n, nil })
			if err != nil || n > 0 {
				return out, err
			}
			return durable.Await[int](ctx, "go")
		})
		use := func(f store.Filter) []operate.KeyUse {
			w.open(t, durable.Options{}) // without any key
			got, err := operate.On(w.eng).KeysInUse(context.Background(), f)
			require.NoError(t, err)
			return got
		}
		require.Empty(t, use(store.Filter{}))
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "clear", 1) // input, step, output
		require.NoError(t, err)
		w.reboot(t, encrypted(keysOf("k1"), wf))
		_, err = run(t, w, wf, "old", 1)
		require.NoError(t, err)
		start(t, w, wf, "waits", 0)
		w.eventually("waits", store.Waiting)
		w.reboot(t, encrypted(keysOf("k2", "k1"), wf))
		require.NoError(t, durable.Signal(w.ctx(), "waits", "other", 1))
		require.Equal(t, []operate.KeyUse{
			{Runs: 1, Payloads: 3}, {KeyID: "k1", Runs: 2, Unfinished: 1, Payloads: 5}, {KeyID: "k2", Runs: 1, Unfinished: 1, Payloads: 1},
		}, use(store.Filter{}), "the message is encrypted with the new key")
		require.Equal(t, []operate.KeyUse{{KeyID: "k1", Runs: 1, Unfinished: 1, Payloads: 2}, {KeyID: "k2", Runs: 1, Unfinished: 1, Payloads: 1}}, use(store.Filter{Statuses: []store.Status{store.Waiting}}))

		w.open(t, encrypted(keysOf("k2", "k1"), wf))
		_, err = w.eng.Recover(context.Background())
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "waits", "go", 1))
		_, err = wait(t, w, wf, "waits")
		require.NoError(t, err)
		clean(t, w, operate.CleanOptions{All: true, Statuses: []store.Status{store.Completed}})
		require.Empty(t, use(store.Filter{}), "with the last run its key is free")
	})
}
