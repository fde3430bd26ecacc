package dashboard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// A schedule may have any name that is text.
func TestASchedulesNameBreaksNoPageAndNoAddress(t *testing.T) {
	names := []string{`"><script>alert(1)</script>`, "..", ".", "a/b", "a%2Fb", "~", "do/pause", "x?y#z", "ünï\u202e", strings.Repeat("/", 255), "a b+c", `{{.}}`, "javascript:alert(1)", "~..", "pause", "a//b", "a/../b", "-", "%"}
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	report := durable.Define("report", func(context.Context, string) (string, error) { return "done", nil })
	o := durable.Options{Workflows: []durable.Definition{report}}
	for _, name := range names {
		o.Schedules = append(o.Schedules, report.Schedule(name, durable.Cron("0 2 1 1 *"), "books"))
	}
	s.serve(o, dashboard.Options{})
	require.NotContains(t, s.browse("/schedules").body, "<script>alert")
	for _, name := range names {
		one, err := s.c.Schedule(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, name, one.Name)
		done, err := s.c.PauseSchedule(t.Context(), name, `</p><script>alert(2)</script>`)
		require.NoError(t, err, name)
		require.True(t, done.Schedule.Paused)
		ran, err := s.c.TriggerSchedule(t.Context(), name, `<script>alert(3)</script>/..`)
		require.NoError(t, err, name)
		_, err = s.c.GetRun(t.Context(), ran.RunID)
		require.NoError(t, err, name)
		page := s.browse("/schedules/" + client.EscapeID(name))
		require.Equal(t, 200, page.status, name)
		require.NotContains(t, page.body, "<script>alert", name)
		require.Equal(t, 303, s.send("POST", "/schedules/"+client.EscapeID(name)+"/do/resume", "x=", "Content-Type: application/x-www-form-urlencoded").status, name)
		one, err = s.c.Schedule(t.Context(), name)
		require.NoError(t, err)
		require.False(t, one.Paused)
		_, err = s.c.DeleteSchedule(t.Context(), name)
		require.NoError(t, err, name)
	}
}
