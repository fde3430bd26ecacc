package everystore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What was deleted has begun all the same, holds its place no longer and has no key.
func TestWhatIsDeletedFromAQueueCountsForItsRateOnly(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		wf := durable.Define("queued", func(ctx context.Context, n int) (int, error) {
			if n < 0 {
				_, err := durable.Await[int](ctx, "never")
				return 0, err
			}
			return n, nil
		})
		st, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		p := runProgram(t, st, durable.Options{
			Workflows: []durable.Definition{wf}, Lease: longLease,
			Queues: []durable.Queue{{Name: "rate", Rate: 2, Per: time.Hour}, {Name: "places", Max: 1}},
		})
		eng := p.eng
		op := operate.On(eng)
		for _, id := range []string{"a", "b"} {
			run, err := wf.Start(p, id, 1, durable.OnQueue("rate"), durable.Dedup(id))
			require.NoError(t, err)
			_, err = run.Wait(p)
			require.NoError(t, err)
		}
		_, err = op.Clean(p, operate.CleanOptions{All: true})
		require.NoError(t, err)
		_, err = wf.Start(p, "c", 1, durable.OnQueue("rate"), durable.Dedup("a"))
		require.NoError(t, err, "the key is free")
		list, err := op.Queues(p, "rate")
		require.NoError(t, err)
		require.EqualValues(t, 2, list[0].Begun)
		_, err = wf.Enqueue(p, "after", 1)
		require.NoError(t, err)
		d.awaits(t, "after", store.Completed) // so the engine has looked for runs since "c" is in line
		require.Equal(t, store.Pending, d.awaits(t, "c", store.Pending).Status)

		// A waiting run that nobody has is deleted with its place and its key.
		_, err = wf.Start(p, "w", -1, durable.OnQueue("places"), durable.Dedup("k"), durable.Exclusive("x"))
		require.NoError(t, err)
		d.awaits(t, "w", store.Waiting)
		_, err = wf.Start(p, "next", 1, durable.OnQueue("places"))
		require.NoError(t, err)
		require.NoError(t, eng.Close())
		client, err := durable.Open(t.Context(), st, durable.Options{Lease: longLease, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		_, err = operate.On(client).Clean(t.Context(), operate.CleanOptions{All: true, Idle: true, Statuses: []store.Status{store.Waiting}})
		require.NoError(t, err)
		require.NoError(t, client.Close())
		st2, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st2.Close()) })
		p2 := runProgram(t, st2, durable.Options{
			Workflows: []durable.Definition{wf}, Lease: longLease,
			Queues: []durable.Queue{{Name: "rate", Rate: 2, Per: time.Hour}, {Name: "places", Max: 1}},
		})
		d.awaits(t, "next", store.Completed)
		_, err = wf.Start(p2, "k2", 1, durable.OnQueue("places"), durable.Dedup("k"), durable.Exclusive("x"))
		require.NoError(t, err)
		d.awaits(t, "k2", store.Completed)
		require.Equal(t, store.Pending, d.awaits(t, "c", store.Pending).Status, "nor does a restart forget")
	})
}
