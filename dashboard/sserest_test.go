package dashboard_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// untilEnd reads a stream up to the message that says that the run has ended.
func untilEnd(t *testing.T, next func() (message, bool)) {
	t.Helper()
	for {
		m, ok := next()
		require.True(t, ok)
		if m.event == "end" {
			require.Contains(t, m.data, `"resumable":true`)
			return
		}
	}
}

func TestTheStreamOfAFailedRunEndsWhenTheEngineIsClosed(t *testing.T) {
	t.Parallel() // it mostly waits
	s := open(t, sqliteStore(t), dashboard.Options{})
	s.failed("f")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	next := s.stream(ctx, "/api/runs/f/stream", "")
	untilEnd(t, next)
	require.NoError(t, s.eng.Close())
	for _, ok := next(); ok; _, ok = next() {
	}
	require.NoError(t, ctx.Err(), "it ended by itself")
}

func TestTheStreamOfAFailedRunEndsWhenAnotherRunGetsItsID(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("f")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	next := s.stream(ctx, "/api/runs/f/stream", "")
	untilEnd(t, next)
	_, err := s.st.Delete(t.Context(), store.Deletion{RunIDs: []string{"f"}})
	require.NoError(t, err)
	s.start("f")
	for _, ok := next(); ok; _, ok = next() {
	}
	require.NoError(t, ctx.Err(), "who comes back begins with the new run")
}

func TestAResumeThatNobodyExecutesIsNotAnnouncedAsExecuted(t *testing.T) {
	st := memoryStore(t)
	bad := durable.Define("w", func(context.Context, int) (int, error) { return 0, errors.New("no") })
	eng, err := durable.Open(t.Context(), st, durable.Options{Logger: slog.New(slog.DiscardHandler), Workflows: []durable.Definition{bad}})
	require.NoError(t, err)
	_, err = operate.On(eng).StartJSON(t.Context(), "w", "r", []byte("1"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		run, err := eng.Get(t.Context(), "r")
		return err == nil && run.Status == store.Failed
	}, time.Minute, time.Millisecond)
	require.NoError(t, eng.Close())

	s := &site{t: t, st: st, shop: new(shop)}
	s.serve(durable.Options{}, dashboard.Options{})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	next := s.stream(ctx, "/api/runs/r/stream", "")
	untilEnd(t, next)
	_, err = s.c.Resume(ctx, "r", client.ResumeOptions{Force: true})
	require.NoError(t, err)
	for {
		m, ok := next()
		require.True(t, ok)
		if m.event == "executor" {
			require.Contains(t, m.data, `"executed":false`)
			require.True(t, strings.Contains(m.data, "nobody alive serves workflow w"), m.data)
			return
		}
	}
}
