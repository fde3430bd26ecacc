package dashboard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// scheduleSite is a site with a schedule that fires once a year.
func scheduleSite(t *testing.T, o dashboard.Options) *site {
	t.Helper()
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	report := durable.Define("report", func(context.Context, string) (string, error) { return "done", nil })
	s.serve(durable.Options{
		Workflows: []durable.Definition{report},
		Schedules: []durable.Schedule{report.Schedule("nightly", durable.Cron("0 2 1 1 *"), "books")},
	}, o)
	return s
}

func TestAScheduleIsShownAndOperatedOverHTTP(t *testing.T) {
	s := scheduleSite(t, dashboard.Options{User: func(context.Context) string { return "ada" }})
	all, err := s.c.Schedules(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	one, err := s.c.Schedule(t.Context(), "nightly")
	require.NoError(t, err)
	require.Equal(t, "report", one.Workflow)
	require.Len(t, one.Next, 5)
	require.Equal(t, time.January, one.Next[0].UTC().Month())
	_, err = s.c.Schedule(t.Context(), "nosuch")
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = s.c.PauseSchedule(t.Context(), "..", "")
	require.ErrorIs(t, err, client.ErrNotFound)

	done, err := s.c.PauseSchedule(t.Context(), "nightly", "stocktaking")
	require.NoError(t, err)
	require.True(t, done.Schedule.Paused)
	require.Equal(t, "stocktaking (ada)", done.Schedule.Reason)
	done, err = s.c.ResumeSchedule(t.Context(), "nightly")
	require.NoError(t, err)
	require.False(t, done.Schedule.Paused)

	done, err = s.c.TriggerSchedule(t.Context(), "nightly", "k1")
	require.NoError(t, err)
	again, err := s.c.TriggerSchedule(t.Context(), "nightly", "k1")
	require.NoError(t, err)
	require.Equal(t, done.RunID, again.RunID, "the same key is the same run")
	s.until(done.RunID, "completed")

	from, to := time.Date(2020, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC)
	plan, err := s.c.BackfillSchedule(t.Context(), "nightly", client.BackfillRequest{From: from, To: to, DryRun: true})
	require.NoError(t, err)
	ids := []string{"nightly@2021-01-01T02:00:00Z", "nightly@2022-01-01T02:00:00Z", "nightly@2023-01-01T02:00:00Z"}
	require.Equal(t, client.Backfill{Fires: 3, Started: 3, First: ids[0], Last: ids[2], RunIDs: ids, DryRun: true}, plan)
	_, err = s.c.GetRun(t.Context(), plan.First)
	require.ErrorIs(t, err, client.ErrNotFound, "a dry run changes nothing")
	did, err := s.c.BackfillSchedule(t.Context(), "nightly", client.BackfillRequest{From: from, To: to})
	require.NoError(t, err)
	require.Equal(t, client.Backfill{Fires: 3, Started: 3, First: ids[0], Last: ids[2], RunIDs: ids}, did)
	s.until(plan.Last, "completed")
	did, err = s.c.BackfillSchedule(t.Context(), "nightly", client.BackfillRequest{From: from, To: to})
	require.NoError(t, err)
	require.Equal(t, client.Backfill{Fires: 3, Existing: 3}, did)
	_, err = s.c.BackfillSchedule(t.Context(), "nightly", client.BackfillRequest{From: to, To: from})
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = s.c.BackfillSchedule(t.Context(), "nightly", client.BackfillRequest{})
	require.ErrorIs(t, err, client.ErrInvalid)

	_, err = s.c.DeleteSchedule(t.Context(), "nightly")
	require.NoError(t, err)
	_, err = s.c.DeleteSchedule(t.Context(), "nightly")
	require.ErrorIs(t, err, client.ErrNotFound)
}

func TestThePagesOfSchedulesShowTimesAndPlanBeforeTheyFill(t *testing.T) {
	may := true
	s := scheduleSite(t, dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, _ string) error {
		if a == dashboard.ActionSchedule && !may {
			return errors.New("no")
		}
		return nil
	}})
	require.Eventually(t, func() bool { return strings.Contains(s.browse("/").body, `href="/schedules"`) }, time.Minute, 50*time.Millisecond, "the navigation has them once there are some")
	page := s.browse("/schedules").body
	require.Contains(t, page, `data-key="nightly"`)
	require.Contains(t, page, "none yet")
	require.Contains(t, page, `action="/schedules/nightly/do/trigger"`)

	form := "Content-Type: application/x-www-form-urlencoded"
	require.Equal(t, 303, s.send("POST", "/schedules/nightly/do/pause", "reason=stocktaking", form).status)
	one := s.browse("/schedules/nightly").body
	require.Contains(t, one, "stocktaking")
	require.Contains(t, one, "It would fire")
	require.Equal(t, 303, s.send("POST", "/schedules/nightly/do/resume", "x=", form).status)
	require.Equal(t, 5, strings.Count(s.browse("/schedules/nightly").body, `class="k"><time`), "the next five times")

	plan := s.browse("/schedules/nightly?from=2021-06-01&to=2023-06-01").body
	require.Contains(t, plan, "2 fire times: 2 to start")
	require.Contains(t, plan, "Start 2 runs")
	require.Contains(t, s.browse("/schedules/nightly?from=soon&to=later").body, "soon is not a time")
	require.Equal(t, 303, s.send("POST", "/schedules/nightly/do/backfill", "from=2021-06-01T00:00:00Z&to=2023-06-01T00:00:00Z", form).status)
	s.until("nightly@2023-01-01T02:00:00Z", "completed")
	require.Equal(t, 303, s.send("POST", "/schedules/nightly/do/trigger", "x=", form).status)
	schedule, err := s.c.Schedule(t.Context(), "nightly")
	require.NoError(t, err)
	s.until(schedule.Last[0].RunID, "completed")
	require.Contains(t, s.browse("/schedules").body, "Completed")

	may = false
	require.NotContains(t, s.browse("/schedules/nightly").body, "/do/")
	require.Equal(t, 403, s.send("POST", "/api/schedules/nightly/trigger", "").status)
	require.Equal(t, 403, s.send("POST", "/api/schedules/nightly/delete", "", "Origin: https://evil.example.com").status)
	require.Equal(t, 404, s.browse("/schedules/nosuch").status)
}
