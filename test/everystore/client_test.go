package everystore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A program without workflows on a handle of its own: it starts, signals, cancels, waits and
// lists, and executes nothing.
func TestAProgramWithoutWorkflowsStartsSignalsCancelsWaitsAndLists(t *testing.T) {
	onEach(t, func(t *testing.T, _ backend, d *data) {
		talk := durable.Define("talk", func(ctx context.Context, n int) (string, error) {
			word, err := durable.Await[string](ctx, "word")
			if err == nil && word == "fail" {
				err = durable.Permanent(errors.New("not that word"))
			}
			return word, err
		})
		worker, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, worker.Close()) })
		st, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		runProgram(t, worker, durable.Options{Workflows: []durable.Definition{talk}, Lease: longLease, Queues: []durable.Queue{{Name: "calls", Max: 3}}})
		p := openProgram(t, st, durable.Options{Lease: longLease})
		ctx, mine := p.Context, p.eng

		ref := durable.Ref[int, string]("talk")
		started, err := ref.Start(ctx, "started", 1)
		require.NoError(t, err)
		enqueued, err := ref.Enqueue(ctx, "enqueued", 2, durable.OnQueue("calls"), durable.Partition("acme"), durable.Priority(1))
		require.NoError(t, err)
		failing, err := ref.Start(ctx, durable.AutoID, 3, durable.OnQueue("calls"), durable.Dedup("d"))
		require.NoError(t, err)
		var conflict *durable.ConflictError
		_, err = ref.Start(ctx, "again", 3, durable.OnQueue("calls"), durable.Dedup("d"))
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, failing.ID(), conflict.Holder)
		cancelled, err := ref.Start(ctx, "cancelled", 4, durable.OnQueue("calls"))
		require.NoError(t, err)
		bulk, err := ref.StartAll(ctx, maps.All(map[string]int{"many-1": 5, "many-2": 6}), durable.OnQueue("calls"))
		require.NoError(t, err)
		require.Empty(t, bulk.Refused)

		require.NoError(t, durable.Signal(ctx, "started", "word", "hello", durable.SignalID("1")))
		require.NoError(t, durable.Signal(ctx, "enqueued", "word", "there"))
		require.NoError(t, durable.Signal(ctx, failing.ID(), "word", "fail"))
		require.NoError(t, mine.Cancel(ctx, "cancelled", "enough"))
		for _, id := range []string{"many-1", "many-2"} {
			require.NoError(t, durable.Signal(ctx, id, "word", id))
		}

		word, err := started.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "hello", word)
		word, err = enqueued.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "there", word)
		_, err = failing.Wait(ctx)
		require.ErrorIs(t, err, durable.ErrRunFailed)
		require.ErrorContains(t, err, "not that word")
		_, err = cancelled.Wait(ctx)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		for _, id := range []string{"many-1", "many-2"} {
			h, err := ref.Handle(ctx, id)
			require.NoError(t, err)
			word, err := h.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, id, word)
		}

		var ids []string
		page, err := mine.List(ctx, store.Filter{Workflows: []string{"talk"}, Statuses: []store.Status{store.Completed}})
		require.NoError(t, err)
		for i := range page.Runs {
			ids = append(ids, page.Runs[i].ID)
		}
		slices.Sort(ids)
		require.Equal(t, []string{"enqueued", "many-1", "many-2", "started"}, ids)
		queues, err := operate.On(mine).Queues(ctx, "calls")
		require.NoError(t, err)
		require.Len(t, queues, 1)
	})
}
