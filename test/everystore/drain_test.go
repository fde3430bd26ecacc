package everystore_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A closing engine waits for a body that is executed, and begins nothing: neither runs in
// line, nor fires of a schedule, nor requests. An engine that comes does at once.
func TestAnEngineThatIsClosingTakesNothingNew(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		entered, leave := make(chan struct{}), make(chan struct{})
		wf := durable.Define("queued", func(ctx context.Context, n int) (int, error) {
			if n > 0 {
				return n, nil
			}
			return n, durable.Do(ctx, "body", func(context.Context) error {
				close(entered)
				<-leave
				return nil
			})
		})
		tick := durable.Define("tick", func(ctx context.Context, n int) (int, error) { return n, nil })
		options := durable.Options{
			Workflows: []durable.Definition{wf, tick}, Lease: longLease, Grace: time.Minute, Logger: slog.New(slog.DiscardHandler),
			Queues: []durable.Queue{{Name: "q", Max: 1}},
			Schedules: []durable.Schedule{
				tick.Schedule("every", durable.Every(time.Second), 1).Overlap(durable.OverlapAllow).Missed(durable.MissedAll),
			},
		}
		open := func(o durable.Options) (*durable.Engine, context.Context) {
			st, err := d.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			eng, err := durable.Open(t.Context(), st, o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, eng.Close()) })
			return eng, durable.NewContext(t.Context(), eng)
		}
		_, client := open(durable.Options{Lease: longLease, Logger: slog.New(slog.DiscardHandler)})
		old, oldCtx := open(options)
		_, err := old.Recover(t.Context())
		require.NoError(t, err)
		_, err = wf.Enqueue(client, "long", 0, durable.OnQueue("q"))
		require.NoError(t, err)
		<-entered
		for i := range 3 {
			_, err = wf.Enqueue(client, fmt.Sprint("line-", i), 1, durable.OnQueue("q"))
			require.NoError(t, err)
		}
		closed := make(chan error, 1)
		go func() { closed <- old.Close() }()
		require.Eventually(t, func() bool {
			h, err := old.Health(t.Context())
			return err == nil && h.Closing
		}, patience, time.Millisecond)
		closing := time.Now()
		fires := func() (ids []string) {
			page, err := d.outside.List(t.Context(), store.Filter{Workflows: []string{"tick"}, Limit: 1000})
			require.NoError(t, err)
			for i := range page.Runs {
				ids = append(ids, page.Runs[i].ID)
			}
			return ids
		}
		status := func(id string) store.Status {
			h, err := d.outside.Load(t.Context(), id, store.Cursor{NoEvents: true})
			require.NoError(t, err)
			return h.Run.Status
		}
		// A claim that was under way may still take a run, which is given back at once; none after it.
		none := ""
		for i := 0; none == ""; i++ {
			require.Less(t, i, 5, "an engine that closes takes what comes")
			id := fmt.Sprint("none-", i)
			_, err = wf.Enqueue(client, id, 1)
			require.NoError(t, err)
			time.Sleep(300 * time.Millisecond) // for a claim
			if status(id) == store.Pending {
				none = id
			}
		}
		_, err = wf.Start(oldCtx, "refused", 1)
		require.ErrorIs(t, err, durable.ErrClosed)
		_, err = wf.Enqueue(oldCtx, "refused-in-line", 1, durable.OnQueue("q"))
		t.Logf("enqueue on a closing engine: %v", err)
		time.Sleep(1500 * time.Millisecond) // the time in which nothing is to fire
		due := func(id string) time.Time {
			at, err := time.Parse(time.RFC3339, strings.TrimPrefix(id, "every@"))
			require.NoError(t, err)
			return at
		}
		for _, id := range fires() {
			require.False(t, due(id).After(closing), "%s was fired by an engine that closes", id)
		}
		was := len(fires())
		for _, id := range []string{none, "line-0", "line-1", "line-2"} {
			require.Equal(t, store.Pending, status(id), id)
		}
		next, _ := open(options)
		_, err = next.Recover(t.Context())
		require.NoError(t, err)
		d.awaits(t, none, store.Completed)
		require.Equal(t, store.Pending, status("line-0"), "the place is taken until the body ends")
		close(leave)
		require.NoError(t, <-closed)
		began := time.Now()
		for _, id := range []string{"long", "line-0", "line-1", "line-2"} {
			d.awaits(t, id, store.Completed)
		}
		t.Logf("the line goes on after %v", time.Since(began))
		require.Eventually(t, func() bool { return len(fires()) >= was+3 }, patience, 10*time.Millisecond)
		seen := map[string]bool{}
		var first, last time.Time
		for _, id := range fires() {
			at := due(id)
			seen[id] = true
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		require.Len(t, seen, int(last.Sub(first)/time.Second)+1, "each time fires once: %v", seen)
	})
}
