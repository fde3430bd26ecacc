package everystore_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Engines come and go while they take runs of a queue, as in a deploy that rolls over and
// over. The rate lets in exactly as many runs as there are: one place in the rate that a
// closed engine has taken and not used would hold up the last run for an hour.
func TestEnginesThatComeAndGoWasteNeitherPlacesNorRate(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		const runs, limit = 40, 3
		var all counting
		var closing atomic.Int64
		wf := durable.Define("queued", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "body", func(ctx context.Context) error {
				defer all.enter("all")()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-ctx.Done():
				}
				return ctx.Err()
			})
		})
		options := durable.Options{
			Workflows: []durable.Definition{wf}, Lease: longLease, Grace: -1, Logger: slog.New(slog.DiscardHandler),
			Queues: []durable.Queue{{Name: "q", Max: limit, Rate: runs, Per: time.Hour}},
		}
		first, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, first.Close()) })
		client, err := durable.Open(t.Context(), first, durable.Options{Lease: longLease, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		ctx := durable.NewContext(t.Context(), client)
		var ids []string
		for i := range runs {
			id := fmt.Sprint("r", i)
			_, err := wf.Enqueue(ctx, id, i, durable.OnQueue("q"), durable.Partition(fmt.Sprint(i%2)))
			require.NoError(t, err)
			ids = append(ids, id)
		}
		done, stop := context.WithCancel(t.Context())
		var rolling sync.WaitGroup
		for slot := range 2 {
			st, err := d.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			rolling.Go(func() {
				for n := slot; done.Err() == nil; n++ {
					eng, err := durable.Open(t.Context(), st, options)
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := eng.Recover(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Duration(n*7%23) * 4 * time.Millisecond)
					if err := eng.Close(); err != nil {
						t.Error(err)
					}
					closing.Add(1)
				}
			})
		}
		for _, id := range ids {
			d.awaits(t, id, store.Completed)
		}
		stop()
		rolling.Wait()
		require.LessOrEqual(t, all.most["all"], limit)
		t.Logf("%d engines", closing.Load())
	})
}
