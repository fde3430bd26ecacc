package dashboard_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// browse gets a page as a browser does.
func (s *site) browse(path string) answer {
	s.t.Helper()
	return s.send("GET", path, "", "Accept: text/html")
}

func TestThePageOfARunOffersResumeForARecoverableFailureAlone(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("broken")
		s.asks("asks")
		resume := `name="panel" value="resume"`
		page := s.browse("/runs/broken")
		require.Equal(t, http.StatusOK, page.status)
		require.Contains(t, page.body, resume)
		require.Contains(t, page.body, "Failed, can be resumed")
		require.Contains(t, page.body, "bank says no")
		page = s.browse("/runs/asks")
		require.NotContains(t, page.body, resume)
		require.Contains(t, page.body, "Ship asks?")
		require.Contains(t, page.body, `value="approve"`)
	})
	final := durable.Define("final", func(ctx context.Context, _ string) (string, error) {
		return durable.Step(ctx, "one", func(context.Context) (string, error) { return "", durable.Permanent(errors.New("never")) })
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{final}}, dashboard.Options{})
	_, err := s.c.Start(t.Context(), "final", client.StartRequest{ID: "r"})
	require.NoError(t, err)
	require.False(t, s.until("r", "failed").Recoverable)
	page := s.browse("/runs/r")
	require.Equal(t, http.StatusOK, page.status)
	require.NotContains(t, page.body, `name="panel" value="resume"`, "what has failed for good is not offered")
	require.Contains(t, page.body, `name="panel" value="fork"`, "other buttons are")
}

func TestWhatIsNotAuthorizedIsAbsentFromThePages(t *testing.T) {
	readOnly := dashboard.Options{ShowPayloads: true, Authorize: func(_ context.Context, a dashboard.Action, _ string) error {
		if a.Writes() || a == dashboard.ActionPayload {
			return errors.New("readers only read")
		}
		return nil
	}}
	onStores(t, readOnly, func(t *testing.T, s *site) {
		_, err := s.shop.workflow().Start(withEngine(s), "asks", Order{ID: "asks", Total: 42})
		require.NoError(t, err)
		s.until("asks", "waiting")
		for _, path := range []string{"/runs/asks", "/runs/asks?step=reserve", "/runs/asks?panel=cancel", "/runs/asks?panel=fork", "/waiting"} {
			page := s.browse(path)
			require.Equal(t, http.StatusOK, page.status, path)
			require.NotContains(t, page.body, `method="post"`, path)
			require.NotContains(t, page.body, `name="panel"`, path)
			require.NotContains(t, page.body, "data-panel", path)
			require.NotContains(t, page.body, "secret", path)
		}
		require.Contains(t, s.browse("/runs/asks?step=reserve").body, "<mark>redacted</mark>")
		require.Equal(t, http.StatusForbidden, s.send("POST", "/runs/asks/do/cancel", "reason=x", "Content-Type: application/x-www-form-urlencoded").status)
	})
}

func TestAFormActsAsTheAPIDoesAndItsRefusalIsAPage(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("a")
		form := func(path, body string) answer {
			t.Helper()
			return s.send("POST", path, body, "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
		}
		done := form("/runs/a/do/resume", "reset_failures=true")
		require.Equal(t, http.StatusSeeOther, done.status, done.body)
		require.Equal(t, "/runs/a?done=resume", done.header.Get("Location"))
		s.until("a", "waiting")
		again := form("/runs/a/do/resume", "")
		require.Equal(t, http.StatusConflict, again.status)
		require.Contains(t, again.body, "not resumable")
		require.Contains(t, again.header.Get("Content-Type"), "text/html")
		require.Equal(t, http.StatusSeeOther, form("/runs/a/do/answer", "verdict=approve&wait=approve").status)
		s.until("a", "completed")
		require.Equal(t, http.StatusForbidden, s.send("POST", "/runs/a/do/cancel", "", "Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: cross-site").status)
	})
}

// No page has anything that the content security policy would have to stop, so
// that it can stop everything.
func TestThePagesHaveNoInlineScriptOrStyle(t *testing.T) {
	onStores(t, dashboard.Options{Prefix: "/ops", ShowPayloads: true}, func(t *testing.T, s *site) {
		s.failed("a")
		s.asks("b")
		asset := regexp.MustCompile(`"(/ops/assets/[^"]+)"`)
		for _, path := range []string{"/", "/?q=status:failed", "/?q=nonsense:x", "/runs/a", "/runs/a?panel=resume", "/runs/a?panel=edit&step=reserve", "/runs/b?panel=fork", "/runs/b?panel=fork&edit=reserve", "/runs/b?step=reserve", "/?q=sort:oldest", "/waiting", "/stuck", "/history"} {
			page := s.browse(path)
			require.Equal(t, http.StatusOK, page.status, path)
			require.NotRegexp(t, `(?i)<script(?:>|[^>]*>[^<])|<style|\sstyle=|\son[a-z]+=|javascript:`, page.body, path)
			require.NotContains(t, page.body, "ZgotmplZ", "a value that html/template did not trust")
			for _, m := range asset.FindAllStringSubmatch(page.body, -1) {
				got := s.send("GET", strings.TrimPrefix(m[1], "/ops"), "")
				require.Equal(t, http.StatusOK, got.status, m[1])
				require.Contains(t, got.header.Get("Cache-Control"), "immutable")
			}
			for _, href := range regexp.MustCompile(`(?:href|action)="([^"#]+)`).FindAllStringSubmatch(page.body, -1) {
				require.True(t, strings.HasPrefix(href[1], "/ops/"), "%s leads out of the prefix: %s", path, href[1])
			}
		}
	})
}

func TestTheListSaysWhatDroppingAFilterFinds(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("one")
		s.failed("two")
		page := s.browse("/?q=" + url.QueryEscape("workflow:checkout status:completed"))
		require.Contains(t, page.body, "No run matches")
		require.Regexp(t, `Without <a [^>]+><code>status:completed</code></a> there\s+are 2`, page.body)
		page = s.browse("/?q=status:failed")
		require.Contains(t, page.body, `data-key="two"`)
		require.NotContains(t, page.body, `data-key="one"`)
		require.Contains(t, s.browse("/?q=status:nonsense").body, "is none of")
		require.Equal(t, "/runs/one", s.browse("/go?q=one").header.Get("Location"))
		require.Equal(t, "/?q=on", s.browse("/go?q=on").header.Get("Location"))
		require.Equal(t, http.StatusNotFound, s.browse("/runs/three").status)
	})
}

// withEngine is a context that starts runs past the API.
func withEngine(s *site) context.Context { return durable.NewContext(context.Background(), s.eng) }

func TestTheListIsTurnedRound(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("one")
		s.asks("two")
		s.failed("three")
		rows := func(page string) (ids []string) {
			for _, m := range regexp.MustCompile(`<tr data-key="([^"]+)"`).FindAllStringSubmatch(page, -1) {
				ids = append(ids, m[1])
			}
			return ids
		}
		page := s.browse("/?q=" + url.QueryEscape("status:waiting")).body
		require.Equal(t, []string{"two", "one"}, rows(page))
		turned := "/?q=" + url.QueryEscape("status:waiting sort:oldest")
		require.Contains(t, html.UnescapeString(page), turned)
		page = s.browse(turned).body
		require.Equal(t, []string{"one", "two"}, rows(page))
		require.Contains(t, page, "Oldest first")
		require.Contains(t, html.UnescapeString(page), "/?q="+url.QueryEscape("status:failed sort:oldest"), "a tab keeps it")
		require.Contains(t, html.UnescapeString(page), "&q="+url.QueryEscape("status:waiting")+`"`, "what acts on all takes it for no filter")
		require.NotContains(t, s.browse("/?q=sort:oldest").body, "Select all to", "it selects nothing")
		require.Contains(t, s.browse("/?q=sort:shortest").body, "neither newest nor oldest")
	})
}
