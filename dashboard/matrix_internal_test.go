package dashboard

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

type whoKey struct{}

// guarded is how a program signs people in: a middleware finds out who asks, and
// Authorize says what they may.
func guarded() Options {
	return Options{
		Logger: slog.New(slog.DiscardHandler),
		Middleware: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, r.Header.Get("Authorization"))))
			})
		},
		Authorize: func(ctx context.Context, a Action, _ string) error {
			switch who := ctx.Value(whoKey{}); {
			case who == "":
				return ErrUnauthenticated
			case who == "reader" && a.Writes():
				return errors.New("readers do not write")
			}
			return nil
		},
	}
}

// The routes come from the handler itself: one that is added is tested here
// without anybody thinking of it.
func TestEveryRouteForEveryKindOfUser(t *testing.T) {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer eng.Close()
	_, err = eng.Recover(context.Background())
	require.NoError(t, err)
	h := newHandler(eng, guarded())
	srv := httptest.NewServer(h.guard())
	defer srv.Close()
	parameter := regexp.MustCompile(`\{[a-z_]*\}`)
	public := map[string]bool{}
	for _, rt := range h.routes() {
		path := parameter.ReplaceAllString(rt.pattern, "5")
		path = strings.ReplaceAll(path, "{$}", "")
		for who, mayWrite := range map[string]bool{"": false, "reader": false, "admin": true} {
			t.Run(rt.method+" "+rt.pattern+" "+who, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
				defer stop()
				r, err := http.NewRequestWithContext(ctx, rt.method, srv.URL+path, nil)
				require.NoError(t, err)
				r.Header.Set("Authorization", who)
				resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
				require.NoError(t, err)
				if !strings.Contains(resp.Header.Get("Content-Type"), "event-stream") {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
				switch {
				case rt.action == "":
					public[rt.method+" "+rt.pattern] = true
				case who == "":
					require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
				case rt.action.Writes() && !mayWrite:
					require.Equal(t, http.StatusForbidden, resp.StatusCode)
				default:
					require.NotContains(t, []int{http.StatusUnauthorized, http.StatusMethodNotAllowed}, resp.StatusCode)
					if resp.StatusCode == http.StatusForbidden {
						require.Equal(t, ActionPayload, rt.action, "redacted")
					}
				}
				require.Less(t, resp.StatusCode, 500)
			})
		}
		if rt.method != http.MethodGet {
			require.True(t, rt.action.Writes(), "%s %s changes something and is authorized as reading", rt.method, rt.pattern)
		} else {
			require.False(t, rt.action.Writes(), "%s %s is reading and is authorized as writing", rt.method, rt.pattern)
		}
	}
	for rt := range public {
		if strings.Contains(rt, "/assets/") {
			continue
		}
		require.Contains(t, []string{"GET /api/openapi.json", "GET /api/ready"}, rt, "a route without authorization: is it meant to be public?")
	}
}
