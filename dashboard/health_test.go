package dashboard_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// unreadable is a store whose runs cannot be read while it is told so.
type unreadable struct {
	store.Store
	broken atomic.Bool
}

func (u *unreadable) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if u.broken.Load() {
		return nil, errors.New("the disk is full")
	}
	return u.Store.Load(ctx, id, c)
}

func TestTheHealthOfTheSystemStandsAboveTheRuns(t *testing.T) {
	t.Parallel() // it mostly waits
	st := &unreadable{Store: memoryStore(t)}
	s := &site{t: t, st: st, shop: new(shop)}
	nap := durable.Define("nap", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, time.Second) })
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow(), nap}, UnloadAfter: time.Millisecond}, dashboard.Options{})
	require.Contains(t, s.browse("/").body, "<dt>Commit p99</dt><dd>none yet</dd>")

	_, err := nap.Start(withEngine(s), "asleep", 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		h, err := s.c.Health(t.Context())
		require.NoError(t, err)
		return h.Unloaded == 1
	}, time.Minute, time.Millisecond)
	st.broken.Store(true)
	body := s.browse("/").body
	require.Regexp(t, `<dt>Commit p99</dt><dd>\d+(\.\d)? [mµ]?s</dd>`, body)
	require.Contains(t, body, "System is healthy")
	require.Contains(t, body, "<dt>Timers late</dt><dd>0</dd>")

	require.Eventually(t, func() bool {
		h, err := s.c.Health(t.Context())
		require.NoError(t, err)
		require.Positive(t, h.Commits)
		require.Positive(t, h.CommitP99MS)
		return h.TimersLate == 1
	}, time.Minute, 20*time.Millisecond)
	body = s.browse("/").body
	require.Contains(t, body, "1 timer is late")
	require.NotContains(t, body, "System is healthy")

	st.broken.Store(false)
	s.until("asleep", "completed")
	require.Contains(t, s.browse("/").body, "System is healthy")
}
