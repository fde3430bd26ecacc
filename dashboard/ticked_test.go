package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
)

func TestOnlyTheTickedRunsAreActedOn(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for i := range 3 {
			s.failed(fmt.Sprint("bad-", i))
		}
		s.asks("a,b?&") // an id that an address must escape
		page := s.browse("/?q=workflow:checkout").body
		require.Equal(t, 4, strings.Count(page, `name="run"`))
		require.Contains(t, page, `value="a,b?&amp;" form="ticked"`)

		dry := s.browse("/bulk?ticked=1&act=resume&q=workflow:checkout&run=bad-0&run=bad-2&run=" + url.QueryEscape("a,b?&")).body
		require.Contains(t, dry, "Resume the ticked runs")
		require.Contains(t, dry, "3 runs are ticked")
		require.Contains(t, dry, "2 can be resumed")
		require.Contains(t, dry, "1 of the ticked has ended, or is not in a state for this.")
		require.Contains(t, dry, "Resume 2 runs")
		require.Contains(t, dry, `name="run" value="bad-2"`)
		require.NotContains(t, dry, `data-key="bad-1"`)
		require.Equal(t, "failed", s.until("bad-0", "failed").Status, "nothing has been changed")

		form := url.Values{"ticked": {"1"}, "run": {"bad-0", "bad-2"}, "q": {"workflow:checkout"}, "matching": {"2"}, "reset_failures": {"1"}}
		done := s.send("POST", "/bulk/resume", form.Encode(), "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
		require.Equal(t, http.StatusOK, done.status)
		s.until("bad-0", "waiting")
		s.until("bad-2", "waiting")
		require.Equal(t, "failed", s.until("bad-1", "failed").Status, "it was not ticked")
	})
}

func TestNoTickedRunIsNotAllThatMatch(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("a")
	for _, path := range []string{"/bulk?act=cancel&ticked=1&q=workflow:checkout", "/bulk?act=cancel&ticked=1&run=&q=workflow:checkout"} {
		answer := s.browse(path)
		require.Equal(t, http.StatusBadRequest, answer.status, path)
	}
	form := url.Values{"ticked": {"1"}, "q": {"workflow:checkout"}, "matching": {"1"}}
	require.Equal(t, http.StatusBadRequest, s.send("POST", "/bulk/cancel", form.Encode(), "Content-Type: application/x-www-form-urlencoded", "Accept: text/html").status)
	s.until("a", "waiting")
}

func TestWhoMayDoNothingToRunsCannotTickThem(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, _ string) error {
		if a == dashboard.ActionCancel || a == dashboard.ActionResume {
			return errors.New("no")
		}
		return nil
	}})
	s.asks("a")
	page := s.browse("/").body
	require.Contains(t, page, `data-key="a"`)
	require.NotContains(t, page, "ticked")
	require.NotContains(t, page, `type="checkbox" name="run"`)
}

func TestRunsAreListedByTheirIDs(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for _, id := range []string{"a", "b", "c,d"} {
			s.asks(id)
		}
		page, err := s.c.ListRuns(t.Context(), client.ListOptions{IDs: []string{"c,d", "a", "nosuch"}})
		require.NoError(t, err)
		require.Len(t, page.Runs, 2)
	})
}

func TestTheListShowsTheColumnsThatWereChosen(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("a")
	usual := s.browse("/").body
	require.Contains(t, usual, ">Where it is</th>")
	require.NotContains(t, usual, ">Attributes</th>")
	chosen := s.browse("/?q=status:waiting&pick=1&col=state&col=attributes&col=started&col=nosuch").body
	require.Contains(t, chosen, ">Attributes</th>")
	require.Contains(t, chosen, `title="customer=ada"`)
	require.Contains(t, chosen, ">Started</th>")
	require.NotContains(t, chosen, ">Where it is</th>")
	require.Contains(t, html.UnescapeString(chosen), "status%3Awaiting+columns%3Astate%2Cstarted%2Cattributes", "every link keeps them")
	require.NotContains(t, chosen, `class="tok">columns`, "they are no filter")
	require.NotContains(t, s.browse("/?q=status:waiting&pick=1&col=where&col=shape&col=state&col=process").body, "columns%3A", "the usual ones are not spelt out")

	// They do not choose runs, so neither does an act on all that match.
	require.Contains(t, chosen, `act=cancel&amp;q=status%3Awaiting"`)
	none := s.browse("/?q=columns:state+status:failed").body
	require.Contains(t, none, "No run matches")
	require.NotContains(t, none, "Without <a href=\"/?q=status%3Afailed\"")
}

func TestTheListIsNarrowedToASpanOfStarts(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("a")
	soon := time.Now().Add(time.Hour).Format("2006-01-02 15:04")
	ago := time.Now().Add(-time.Hour).Format("2006-01-02T15:04")
	for query, found := range map[string]bool{
		"from=" + url.QueryEscape(ago):                                  true,
		"from=" + url.QueryEscape(soon):                                 false,
		"to=" + url.QueryEscape(ago):                                    false,
		"from=" + url.QueryEscape(ago) + "&to=" + url.QueryEscape(soon): true,
		"q=since:1h": true,
		"q=until:1h": false,
		"q=since:1h+status:waiting&from=" + url.QueryEscape(soon):           false,
		"q=until:1h&to=" + url.QueryEscape(soon) + "&add=workflow:checkout": true,
	} {
		require.Equal(t, found, strings.Contains(s.browse("/?"+query).body, `data-key="a"`), query)
	}
	page := s.browse("/?q=workflow:checkout&from=" + url.QueryEscape(ago)).body
	require.Contains(t, page, "Started since then")
	// What the fields show goes with every further choice, and changes nothing.
	value := regexp.MustCompile(`name="from" value="([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, value)
	q := regexp.MustCompile(`name="q" value="([^"]+)"`).FindStringSubmatch(page)[1]
	again := s.browse("/?q=" + url.QueryEscape(q) + "&from=" + url.QueryEscape(value[1])).body
	require.Contains(t, again, `name="q" value="`+q+`"`)
	bad := s.browse("/?q=workflow:checkout&from=yesterday-ish")
	require.Contains(t, bad.body, "is not a time")
	require.Contains(t, s.browse("/?q=since:7d").body, "Last 7 days<svg")
}

func TestTheChartCountsWhatTheListShows(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		require.NotContains(t, s.browse("/").body, `class="when"`, "there is nothing to draw")
		s.failed("bad-0")
		s.failed("bad-1")
		s.asks("fine")
		page := s.browse("/").body
		require.Contains(t, page, "<b>3</b> started in the last 24 hours, <b class=\"c-fail\">2 failed</b>, <b class=\"c-wait\">1 waits</b>")
		failed := s.browse("/?q=status:failed").body
		require.Contains(t, failed, "<b>2</b> started in the last 24 hours")
		require.NotContains(t, s.browse("/?q=until:1h").body, `class="when"`)
		require.NotContains(t, s.browse("/?q=bad").body, `class="when"`, "a search reads rows, and cannot be counted")

		// A bar leads to the runs that it stands for.
		bars := regexp.MustCompile(`<a href="([^"]+)" data-soft tabindex="-1" aria-label="([^"]+)">`).FindAllStringSubmatch(page, -1)
		require.NotEmpty(t, bars)
		n := 0
		for _, bar := range bars {
			n += strings.Count(s.browse(html.UnescapeString(bar[1])).body, `<tr data-key="`)
		}
		require.Equal(t, 3, n)
	})
}
