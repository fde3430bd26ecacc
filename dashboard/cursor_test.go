package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
)

// "The last day" is another filter a moment later; the pages of one listing all
// count from the moment of its first.
func TestAListOfTheLastDayGoesOnBehindItsFirstPage(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		const runs = 28 // more than a page has
		want := map[string]bool{}
		for i := range runs {
			id := fmt.Sprintf("order-%02d", i)
			s.start(id)
			want[id] = true
		}
		for _, o := range []client.ListOptions{
			{Since: "24h"}, {Since: "7d", Search: "order"}, {Since: "1h", Until: "0s"}, {Since: "2026-01-31"}, {Until: "2100-01-31"},
		} {
			o.Limit = 10
			found := map[string]bool{}
			for r, err := range s.c.AllRuns(t.Context(), o) {
				require.NoError(t, err, "%+v", o)
				require.False(t, found[r.ID], "%s twice", r.ID)
				found[r.ID] = true
			}
			require.Equal(t, want, found, "%+v", o)
		}

		link := regexp.MustCompile(`<a class="id" href="[^"]*"[^>]*>([^<]*)</a>`)
		found := map[string]bool{}
		path := "/?q=" + url.QueryEscape("since:24h workflow:checkout")
		for pages := 1; path != ""; pages++ {
			page := s.browse(path)
			require.Equal(t, http.StatusOK, page.status, page.body)
			for _, m := range link.FindAllStringSubmatch(page.body, -1) {
				found[m[1]] = true
			}
			older := regexp.MustCompile(`href="(/[^"]*)">Older`).FindStringSubmatch(page.body)
			require.Equal(t, pages == 1, older != nil, "page %d", pages)
			if path = ""; older != nil {
				path = html.UnescapeString(older[1])
			}
		}
		require.Equal(t, want, found)

		// A cursor stays with its filter, and what is none is refused.
		first, err := s.c.ListRuns(t.Context(), client.ListOptions{Since: "24h", Limit: 10})
		require.NoError(t, err)
		for _, bad := range []string{"since=23h&cursor=" + url.QueryEscape(first.Next), "since=24h&cursor=~1~", "since=24h&cursor=~x~y", "since=24h&cursor=~"} {
			require.Equal(t, http.StatusBadRequest, s.send("GET", "/api/runs?"+bad, "").status, bad)
		}
	})
}
