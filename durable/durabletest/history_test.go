package durabletest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/store"
)

type payment struct{ ID string }

// trip books, asks, sleeps, and undoes the booking when the payment fails.
var trip = durable.Define("trip", func(ctx context.Context, _ int) (string, error) {
	if err := durable.Compensate(ctx, "unbook", func(context.Context) error { return nil }); err != nil {
		return "", err
	}
	if err := durable.Do(ctx, "book", func(context.Context) error { return nil }); err != nil {
		return "", err
	}
	ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Go?"), durable.Timeout(24*time.Hour))
	if err != nil || !ok {
		return "", errors.Join(errors.New("not approved"), err)
	}
	if err := durable.Sleep(ctx, 365*24*time.Hour); err != nil {
		return "", err
	}
	p, err := durable.Retry(ctx, "pay", durable.Policy{MaxAttempts: 3, Initial: time.Minute}, func(context.Context) (payment, error) {
		return payment{"p1"}, nil
	})
	return p.ID, err
})

func tripHistory(t *testing.T, report testing.TB, id string, answer bool, pay ...durabletest.Reply) (h *durabletest.History, took time.Duration) {
	t.Helper()
	durabletest.VirtualTime(t, durable.Options{
		Workflows: []durable.Definition{trip},
		Around:    durabletest.Replace(t, durabletest.Step("pay", pay...).Optional()),
	}, func(t *testing.T, eng *durable.Engine) {
		began := time.Now()
		ctx := durable.NewContext(t.Context(), eng)
		run, err := trip.Start(ctx, id, 0)
		require.NoError(t, err)
		if answer {
			synctest.Wait() // until it asks, so that the history has the question
			require.NoError(t, eng.Signal(ctx, id, "approve", true))
		}
		_, _ = run.Wait(ctx)
		took = time.Since(began)
		h = durabletest.HistoryOf(report, eng, id)
		if answer && h.Status == store.Completed {
			require.Equal(t, payment{"p9"}, durabletest.Result[payment](h, "pay"))
			h.Wants(durabletest.Did("approve").Result(true), durabletest.Did("pay").Attempts(3).Result(payment{"p9"}))
		}
	})
	return h, took
}

func TestAHistoryShowsWhatARunDidInOrder(t *testing.T) {
	down := errors.New("bank is down")
	real := time.Now()
	h, took := tripHistory(t, t, "good", true, durabletest.ReturnsErr(down).Times(2), durabletest.Returns(payment{"p9"}))
	require.GreaterOrEqual(t, took, 365*24*time.Hour)
	t.Log("a year took", time.Since(real))
	h.Wants(durabletest.Did("book"), durabletest.Did("approve"), durabletest.Did("sleep"), durabletest.Did("pay").Attempts(3))
	h.WantsNone("unbook")

	h, _ = tripHistory(t, t, "bad", true, durabletest.ReturnsErr(down))
	require.Equal(t, store.Failed, h.Status)
	h.Wants(durabletest.Did("book"), durabletest.Failed("pay").Attempts(3).Error("bank is down"), durabletest.Did("unbook"))

	h, took = tripHistory(t, t, "late", false)
	require.Equal(t, store.Failed, h.Status)
	require.Less(t, took, 48*time.Hour)
	h.WantsOnly(durabletest.Did("book"), durabletest.Failed("approve"), durabletest.Did("unbook"))
}

// Each assertion, on a history that it does not fit.
func TestAHistoryThatIsNotAsWantedIsPrinted(t *testing.T) {
	r := &recordingT{TB: t}
	h, _ := tripHistory(t, r, "bad", true, durabletest.ReturnsErr(errors.New("bank is down")))
	for name, c := range map[string]struct {
		ask  func(h *durabletest.History)
		want string
	}{
		"order":    {func(h *durabletest.History) { h.Wants(durabletest.Failed("pay"), durabletest.Did("book")) }, `wanted "book" done; it happened, but before "pay" failed`},
		"missing":  {func(h *durabletest.History) { h.Wants(durabletest.Did("ship")) }, `wanted "ship" done; there is no such call`},
		"state":    {func(h *durabletest.History) { h.Wants(durabletest.Did("pay")) }, `wanted "pay" done; step "pay" is failed in attempt 3: bank is down`},
		"attempts": {func(h *durabletest.History) { h.Wants(durabletest.Failed("pay").Attempts(2)) }, `wanted "pay" failed in attempt 2; step "pay" is failed in attempt 3`},
		"error":    {func(h *durabletest.History) { h.Wants(durabletest.Failed("pay").Error("declined")) }, `wanted "pay" failed with "declined"`},
		"pending":  {func(h *durabletest.History) { h.Wants(durabletest.Pending("approve")) }, `wanted "approve" not over; approval "approve" is done`},
		"more":     {func(h *durabletest.History) { h.WantsOnly(durabletest.Did("book")) }, `"approve" is done, and nothing more was wanted`},
		"another":  {func(h *durabletest.History) { h.WantsOnly(durabletest.Did("approve")) }, `wanted "approve" done as number 1; step "book" is done`},
		"fewer": {func(h *durabletest.History) {
			h.WantsOnly(durabletest.Did("book"), durabletest.Did("approve"), durabletest.Did("sleep"), durabletest.Failed("pay"), durabletest.Did("unbook"), durabletest.Did("ship"))
		}, `wanted "ship" done; nothing happened after "~undo/unbook"`},
		"not to happen": {func(h *durabletest.History) { h.WantsNone("ship", "unbook") }, `wanted no "unbook"; compensation "~undo/unbook" is done`},
	} {
		t.Run(name, func(t *testing.T) {
			r.said = nil
			c.ask(h)
			require.Len(t, r.said, 1)
			require.Contains(t, r.said[0], c.want)
			require.Contains(t, r.said[0], "bad  trip  failed\n")
			require.Regexp(t, "(?m)^  ✗ pay +3 of 3 attempts +1 min", r.said[0])
			require.Regexp(t, `(?m)^ +2  00:00:..\....  0 ms  bank is down$`, r.said[0])
		})
	}
}

func TestAResultIsComparedAsItsType(t *testing.T) {
	durabletest.VirtualTime(t, durable.Options{Workflows: []durable.Definition{trip}}, func(t *testing.T, eng *durable.Engine) {
		ctx := durable.NewContext(t.Context(), eng)
		run, err := trip.Start(ctx, "r", 0)
		require.NoError(t, err)
		require.NoError(t, eng.Signal(ctx, "r", "approve", true))
		_, err = run.Wait(ctx)
		require.NoError(t, err)
		r := &recordingT{TB: t}
		h := durabletest.HistoryOf(r, eng, "r")
		h.Wants(durabletest.Did("pay").Result(payment{"p1"}))
		require.Empty(t, r.end())
		h.Wants(durabletest.Did("pay").Result(payment{"p2"}))
		require.Contains(t, r.end()[0], `wanted "pay" done with {ID:p2}; step "pay" is done, and its result is {ID:p1}`)
	})
}

// A name stands for each call of that name, a key for one of them.
func TestAHistoryFindsCallsByNameAndByKey(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		for _, name := range []string{"mail", "a#1", "mail"} {
			if err := durable.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	durabletest.VirtualTime(t, durable.Options{Workflows: []durable.Definition{wf}}, func(t *testing.T, eng *durable.Engine) {
		_, err := wf.Run(durable.NewContext(t.Context(), eng), "r", 0)
		require.NoError(t, err)
		h := durabletest.HistoryOf(t, eng, "r")
		h.WantsOnly(durabletest.Did("mail"), durabletest.Did("a#1"), durabletest.Did("mail"))
		h.WantsOnly(durabletest.Did("mail"), durabletest.Did("a%231"), durabletest.Did("mail#2"))
	})
}
