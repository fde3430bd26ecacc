package dashboard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

func TestTheDryRunOfAResumeNamesWhatIsKeptAndUnderWhichKeyItRuns(t *testing.T) {
	st := memoryStore(t)
	s := &site{t: t, st: st, shop: new(shop)}
	wf := durable.Define("batch", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "first", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		_, err := durable.Map(ctx, "rows", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "upsert", func(context.Context) error { return nil })
		})
		if err != nil {
			return 0, err
		}
		return 0, durable.Do(ctx, "charge", func(context.Context) error { return errors.New("bank: 503") })
	})
	s.serve(durable.Options{Workflows: []durable.Definition{wf}}, dashboard.Options{})
	_, err := wf.Start(withEngine(s), "r", 0)
	require.NoError(t, err)
	s.until("r", "failed")
	panel := s.browse("/runs/r?panel=resume").body
	require.Regexp(t, `(?s)Taken from history.*first.*rows.*map, 2 of 2.*Runs now`, panel)
	require.NotRegexp(t, `(?s)Taken from history.*upsert.*Runs now`, panel, "the Map stands for the steps of its items")
	require.Contains(t, panel, "Same idempotency key as before ("+durable.IdempotencyKeyOf("r", 0, "charge")[:11]+"…)")
}

func TestWhatIsStuckHasATabBesideTheStatuses(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("order-1")
		require.NotContains(t, s.browse("/").body, `href="/stuck" data-soft`)
		_, err := s.c.Pause(t.Context(), "order-1", "")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return s.until("order-1", "waiting").Paused }, time.Minute, 5*time.Millisecond)
		require.Regexp(t, `<a class="tab" href="/stuck" data-soft>.*Stuck <b>1</b></a>`, s.browse("/").body)
		require.NotContains(t, s.browse("/?q=workflow:checkout").body, `href="/stuck" data-soft`, "how many of these are stuck is not known")
		bulk := s.browse("/bulk?act=cancel&q=workflow:checkout")
		require.Contains(t, bulk.body, "As loaded")
		require.NotContains(t, bulk.body, ">Final<")
	})
}
