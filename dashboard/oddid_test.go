package dashboard_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/internal/visible"
)

// Ids with all that a path, a query, a mux and a page would act on.
var oddIDs = []string{
	"a//b", "//x", "x/", "/x", "a/../b", "../up", "..", ".", "a/./b", "100%", "%2F", "%2e%2e", "a%20b", "two words", "a+b", "q?x=1&y=2", "#x", "a;b", "back\\slash",
	"it's", `"quoted" <b>`, "é-日本", "rtl\u202eevil", "-dash", "*", "$(x)", "`x`", "~", "!!", "{id}", "a:5", "do", "rows", "history", "a/do/cancel", "a/resume", "go",
	"~.", "~~..", "~history", "~x",
}

// resolved is what a browser asks for when it follows an address: it takes dots,
// percent-encoded or not, for directories.
func resolved(t *testing.T, address string) string {
	t.Helper()
	dots := strings.NewReplacer("%2E", ".", "%2e", ".")
	u, err := url.Parse("http://host" + dots.Replace(address))
	require.NoError(t, err)
	return u.JoinPath().RequestURI()
}

func TestARunOfAnyIdIsReachableInTheAPIAndInThePages(t *testing.T) {
	for _, prefix := range []string{"", "/ops"} {
		onStores(t, dashboard.Options{Prefix: prefix}, func(t *testing.T, s *site) {
			for _, id := range oddIDs {
				input, err := json.Marshal(Order{ID: "odd", Total: 1})
				require.NoError(t, err)
				_, err = s.c.Start(t.Context(), "checkout", client.StartRequest{ID: id, Input: input})
				require.NoError(t, err, "%q", id)
				require.Equal(t, id, s.until(id, "waiting").ID)
				events, err := s.c.Events(t.Context(), id, client.EventsOptions{})
				require.NoError(t, err, "%q", id)
				require.NotEmpty(t, events.Events)
				_, err = s.c.Branches(t.Context(), id)
				require.NoError(t, err, "%q", id)
			}
			// The address is the one that the list has.
			link := regexp.MustCompile(`<a class="id" href="([^"]*)"[^>]*>([^<]*)</a>`)
			found := map[string]string{}
			for path := "/"; path != ""; {
				page := s.browse(path)
				require.Equal(t, http.StatusOK, page.status)
				for _, m := range link.FindAllStringSubmatch(page.body, -1) {
					found[html.UnescapeString(m[2])] = html.UnescapeString(m[1])
				}
				older := regexp.MustCompile(`href="` + prefix + `(/[^"]*)">Older`).FindStringSubmatch(page.body)
				if path = ""; older != nil {
					path = html.UnescapeString(older[1])
				}
			}
			for _, id := range oddIDs {
				shown := visible.Line(id) // what would act is written out
				require.Contains(t, found, shown)
				address := found[shown][len(prefix):]
				page := s.browse(resolved(t, address))
				require.Equal(t, http.StatusOK, page.status, "%q at %s", id, address)
				require.Contains(t, page.body, "Ship odd?", "%q", id)
				form := regexp.MustCompile(`method="post" action="([^"]*/do/answer)"`).FindStringSubmatch(page.body)
				require.NotNil(t, form, "%q", id)
				done := s.send("POST", html.UnescapeString(form[1])[len(prefix):], "verdict=approve&wait=approve", "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
				require.Equal(t, http.StatusSeeOther, done.status, "%q", id)
				s.until(id, "completed")
				require.Equal(t, found[shown], s.browse("/go?q="+url.QueryEscape(id)).header.Get("Location"), "%q", id)
			}
		})
	}
}

// Latin-1, as a client sends it that takes it for UTF-8: what a decoder makes of it is the same for
// each id, and the second start would be told that its run is there already.
func TestABodyThatIsNotUTF8IsRefused(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		for text, why := range map[string]string{"caf\xe9": "not valid UTF-8", `half \ud83d`: "half of a character"} {
			for _, body := range []string{`{"id":"` + text + `","input":{"id":"o","total":1}}`, `{"id":"plain","input":{"id":"` + text + `","total":1}}`} {
				a := s.send("POST", "/api/workflows/checkout/runs", body)
				require.Equal(t, http.StatusBadRequest, a.status, a.body)
				require.Contains(t, a.body, why)
			}
		}
		page, err := s.c.ListRuns(t.Context(), client.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, page.Runs)
	})
}
