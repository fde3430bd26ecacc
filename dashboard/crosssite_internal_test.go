package dashboard

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The routes come from the handler itself: none that changes something answers a
// page of another site, whoever is signed in, and none takes a body without a limit.
func TestNoRouteThatChangesSomethingServesAnotherSiteOrTakesABodyWithoutLimit(t *testing.T) {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer eng.Close()
	h := newHandler(eng, guarded())
	srv := httptest.NewServer(h.guard())
	defer srv.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	parameter := regexp.MustCompile(`\{[a-z_]*\}`)
	send := func(rt route, body string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), rt.method, srv.URL+parameter.ReplaceAllString(rt.pattern, "5"), strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "admin")
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	tooLarge := `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`
	writing, limited := 0, 0
	for _, rt := range h.routes() {
		if !rt.action.Writes() {
			continue
		}
		writing++
		t.Run(rt.method+" "+rt.pattern, func(t *testing.T) {
			for _, header := range [][]string{
				{"Origin", "https://evil.example.com"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
				{"Origin", "https://evil.example.com", "Content-Type", "text/plain"},
			} {
				status, _ := send(rt, "{}", header...)
				require.Equal(t, http.StatusForbidden, status, header)
			}
			status, _ := send(rt, "{}", "Sec-Fetch-Site", "same-origin")
			require.NotEqual(t, http.StatusForbidden, status)
			if rt.page {
				status, _ = send(rt, "reason="+strings.Repeat("x", 1<<20), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
			} else {
				status, _ = send(rt, tooLarge)
			}
			if status != http.StatusNotFound { // there is no such run, and the body was not read
				require.Equal(t, http.StatusRequestEntityTooLarge, status)
				limited++
			}
		})
	}
	require.Greater(t, writing, 20)
	require.Greater(t, limited, 10)
}
