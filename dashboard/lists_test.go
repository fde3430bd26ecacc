package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// kept is an archive of n runs, every third of which has failed.
type kept int

func (kept) Source() string { return "git" }

func (n kept) Runs(context.Context) ([]client.ArchivedRun, error) {
	var runs []client.ArchivedRun
	for i := range int(n) {
		r := client.ArchivedRun{RunID: fmt.Sprintf("old-%03d", i), Workflow: "checkout", Status: "completed", EndedAt: time.Now().Add(-time.Hour), DurationMS: 1500}
		if i%3 == 0 {
			r.Status, r.Error = "failed", "Bank is closed"
		}
		if i == 7 {
			r.Workflow = "refund"
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func TestTheHistoryHasPagesAndAFilter(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Archive: kept(328)})
	rows := func(body string) int { return strings.Count(body, `<tr data-key="old-`) }
	page := s.browse("/history").body
	require.Equal(t, 50, rows(page))
	require.Contains(t, page, "1 to 50 of 328")
	require.NotContains(t, page, ">Newer<")
	seen := 50
	for older := regexp.MustCompile(`href="(/history\?from=\d+)">Older`); ; {
		m := older.FindStringSubmatch(page)
		if m == nil {
			break
		}
		page = s.browse(m[1]).body
		require.Contains(t, page, ">Newer<")
		seen += rows(page)
	}
	require.Equal(t, 328, seen)
	for query, n := range map[string]int{"status:failed": 110, "error:bank": 110, "workflow:refund": 1, "OLD-32": 8, "status:failed+old-00": 4, "nothing": 0} {
		page = s.browse("/history?q=" + query).body
		require.Equal(t, min(n, 50), rows(page), query)
		if n > 0 {
			require.Contains(t, page, fmt.Sprintf("of %d that match", n), query)
		} else {
			require.Contains(t, page, "No archived run matches")
		}
	}
	page = s.browse("/history?q=status:failed&from=50").body
	require.Contains(t, page, "from=100&amp;q=status%3Afailed", "a page keeps the filter")
	require.Contains(t, s.browse("/history?q=since:1d").body, "is no filter of archived runs")
}

func TestAFilterByAFieldThatThereIsNotIsTold(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("order:1")
	page := s.browse("/?q=worflow:checkout").body
	require.Contains(t, page, "worflow:checkout was looked for in ids: worflow is no field. There are code, error,")
	page = s.browse("/?q=order:1").body
	require.Contains(t, page, `data-key="order:1"`, "an id may have a colon")
	require.NotContains(t, s.browse("/?q=workflow:checkout").body, "is no field")
}

func TestAStuckRunHasItsAgeAndWhatCanBeDone(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, _ string) error {
		if a == dashboard.ActionCancel {
			return errors.New("no")
		}
		return nil
	}})
	s.asks("held")
	require.NoError(t, s.eng.Pause(t.Context(), "held", "stocktaking"))
	_, err := durable.Ref[int, int]("nosuch").Start(durable.NewContext(t.Context(), s.eng), "unserved", 1)
	require.NoError(t, err)
	var page string
	require.Eventually(t, func() bool {
		page = s.browse("/stuck").body
		return strings.Contains(page, `data-key="held"`)
	}, time.Minute, 20*time.Millisecond)
	require.Contains(t, page, `href="/runs/held?panel=unpause">Unpause`)
	require.NotContains(t, page, "panel=cancel", "what is not allowed is absent")
	require.Regexp(t, `class="s-age[^>]*>\d+ s<`, page)
}

// A copy of everything that a failed run has recorded has its failure, too.
func TestTheForkOfAFailedRunBeginsBeforeItsFailure(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("r")
	page := s.browse("/runs/r?panel=fork").body
	require.Contains(t, page, "all before charge, which failed")
	require.Contains(t, page, "everything that is recorded: it fails at once")
	require.Equal(t, 1, strings.Count(strings.Split(page, `name="at"`)[1], " selected"), "one place is chosen")
	at := regexp.MustCompile(`name="at"[^>]*value="(\d+)"`).FindStringSubmatch(page)
	require.NotNil(t, at, page)
	a := s.send("POST", "/api/runs/r/fork", `{"id":"again","at":`+at[1]+`}`)
	require.Less(t, a.status, 300, a.body)
	s.until("again", "waiting")
	require.NotContains(t, s.browse("/runs/r?panel=fork&at=0").body, `name="at" value=`)
}

// A program that is deployed anew is away for a moment: its runs have the status that they had,
// and say that no process serves them. They are among the stuck ones at once.
func TestAWaitingRunThatNobodyServesSaysSoFromTheFirstMoment(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("asks")
	require.NotContains(t, s.browse("/").body, "no live process serves it")
	require.NoError(t, s.eng.Close())
	s.serve(durable.Options{}, dashboard.Options{})
	page := s.browse("/?q=status:waiting").body
	require.Contains(t, page, "asks")
	require.Regexp(t, `asked [^<]* ago · no live process serves it`, page)
	stuck, err := s.c.Stuck(t.Context())
	require.NoError(t, err)
	require.Len(t, stuck, 1)
	require.Equal(t, "asks", stuck[0].RunID)
	require.False(t, stuck[0].Since.IsZero())
	require.Contains(t, s.browse("/stuck").body, "no live process serves it")
}
