package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// Whoever watches a run that has failed, from before or since, sees its resume on the
// same connection; who waits for the end alone is told of it.
func TestAStreamOfAFailedRunShowsItsResume(t *testing.T) {
	t.Parallel() // it mostly waits
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		s.failed("r")
		watchers := []func() (message, bool){s.stream(ctx, "/api/runs/r/stream", ""), s.stream(ctx, "/api/runs/r/stream", "")}
		until := func(next func() (message, bool), event, data string) (before []string) {
			t.Helper()
			for {
				m, ok := next()
				require.True(t, ok, "the stream has ended before %s %s: %v", event, data, before)
				before = append(before, m.event+" "+m.data)
				if m.event == event && (data == "" || strings.Contains(m.data, data)) {
					return before
				}
			}
		}
		for _, next := range watchers {
			before := until(next, "end", `"resumable":true`)
			require.Contains(t, before[1], `executor {"executed":false`)
		}
		events := 0
		for u, err := range s.c.Watch(ctx, "r", 0) {
			require.NoError(t, err)
			if u.Event != nil {
				events++
			}
		}
		require.NoError(t, ctx.Err(), "a client that waits for the end does not wait for a resume")
		require.Positive(t, events)

		s.shop.broken.Store(false)
		_, err := s.c.Resume(ctx, "r", client.ResumeOptions{})
		require.NoError(t, err)
		for _, next := range watchers {
			until(next, "executor", `"executed":true`)
			until(next, "event", `"run_resumed"`)
			until(next, "event", `"wait_requested"`)
		}
		_, err = s.c.Approve(ctx, "r", "", "")
		require.NoError(t, err)
		for _, next := range watchers {
			before := until(next, "end", "")
			require.NotContains(t, before[len(before)-1], "resumable")
			_, more := next()
			require.False(t, more, "what has completed ends for good")
		}
	})
}

// The stream of a failed run that nobody resumes is closed in the end: who comes back
// gets another one.
func TestAStreamOfAFailedRunThatNobodyResumesIsClosed(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("r")
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{Heartbeat: 10 * time.Millisecond})
	next := s.stream(t.Context(), "/api/runs/r/stream", "")
	var said []string
	for m, ok := next(); ok; m, ok = next() {
		if m.event == "end" {
			said = append(said, m.data)
		}
	}
	require.Len(t, said, 2)
	require.Contains(t, said[0], `"resumable":true`)
	require.NotContains(t, said[1], "resumable")
}
