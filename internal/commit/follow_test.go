package commit

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// noStore has limits, and nothing is committed in it.
type noStore struct{ store.Store }

func (noStore) Limits() store.Limits { return store.DefaultLimits() }

// A caller whose context ends is chosen to lead. Before it has the mutex, another leader of its
// lane commits its write. The lead must still go to somebody: a lane that counts a leader which
// nobody is commits nothing any more.
func TestACallerThatGivesUpWhileAnotherLeaderCommitsItsWritePassesTheLeadOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop, end := context.WithCancel(context.Background())
		defer end()
		c := New(Options{Store: noStore{}, Log: slog.New(slog.DiscardHandler), Stop: stop, Measure: func(time.Duration, []error) {}})
		ln := &c.small
		ln.most = 2
		l, other := ln.takeLead(), ln.takeLead()

		ctx, cancel := context.WithCancel(context.Background())
		w := &Write{FailFast: true}
		lg := &Log{id: "r", mu: &c.mu, pending: []*Write{w}, queued: ln}
		ln.queue = append(ln.queue, lg)
		answered := make(chan error, 1)
		c.mu.Lock()
		go func() { answered <- c.follow(ctx, w) }()
		synctest.Wait()

		c.mu.Lock()
		cancel()
		c.handOver(l) // as a leader does whose own write is durable
		c.form(other) // the other leader has its answer before the caller has the mutex
		lg.flight.settle(nil)
		lg.flight, other.flights = nil, nil
		c.mu.Unlock()

		require.NoError(t, <-answered)
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Len(t, ln.leaders, 1, "nobody leads as the one that the caller was to be")
	})
}
