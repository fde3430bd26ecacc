package client_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

// transport answers requests as a function does.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// What is sent to a server goes neither to another one nor, in clear, to the same.
func TestARedirectTakesTheTokenNowhereElse(t *testing.T) {
	for to, followed := range map[string]bool{
		"https://ops.example.com/durable/elsewhere": true,
		"/durable/elsewhere":                        true,
		"http://ops.example.com/api/runs/r":         false,
		"https://other.example.com/api/runs/r":      false,
		"https://ops.example.com:8443/api/runs/r":   false,
	} {
		t.Run(to, func(t *testing.T) {
			var asked []string
			c, err := client.New("https://ops.example.com/durable", client.Options{
				Header: http.Header{"Authorization": {"Bearer secret"}},
				HTTPClient: &http.Client{Transport: transport(func(r *http.Request) *http.Response {
					require.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
					asked = append(asked, r.URL.String())
					w := httptest.NewRecorder()
					if len(asked) == 1 {
						w.Header().Set("Location", to)
						w.WriteHeader(http.StatusTemporaryRedirect)
					} else {
						_, _ = w.WriteString("{}")
					}
					resp := w.Result()
					resp.Request = r
					return resp
				})},
			})
			require.NoError(t, err)
			_, err = c.GetRun(t.Context(), "r")
			if followed {
				require.NoError(t, err)
				require.Len(t, asked, 2)
				return
			}
			require.ErrorContains(t, err, "the server redirects to "+to[:strings.Index(to, "/api")])
			require.Len(t, asked, 1, "the token went along")
		})
	}
}

// A redirect that is not followed would be there at the next try, too: of a server set up
// wrongly nobody hears anything otherwise.
func TestARedirectThatIsNotFollowedEndsWhatTriesAgain(t *testing.T) {
	for name, to := range map[string]string{"to https": "https://ops.example.com/api/runs/r", "in a circle": "http://ops.example.com/api/runs/r"} {
		asked := 0
		c, err := client.New("http://ops.example.com", client.Options{HTTPClient: &http.Client{Transport: transport(func(r *http.Request) *http.Response {
			w := httptest.NewRecorder()
			if asked++; asked < 100 { // else it would never end
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
			resp := w.Result()
			resp.Request = r
			return resp
		})}})
		require.NoError(t, err)
		// With a deadline a test that fails says so.
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		_, err = c.GetRun(ctx, "r")
		require.ErrorContains(t, err, "the server redirects", name)
		_, err = c.Wait(ctx, "r")
		require.NoError(t, ctx.Err(), name)
		require.ErrorContains(t, err, "the server redirects", name)
		for _, err = range c.Watch(ctx, "r", 0) {
		}
		require.NoError(t, ctx.Err(), name)
		require.ErrorContains(t, err, "the server redirects", name)
		require.LessOrEqual(t, asked, 30, name)
		stop()
	}
}

// A server that sends no end of a line does not fill the memory.
func TestALineWithoutAnEndEndsAWatch(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for part := bytes.Repeat([]byte("x"), 1<<20); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	c, err := client.New(srv.URL, client.Options{})
	require.NoError(t, err)
	for _, err := range c.WatchRuns(t.Context()) {
		require.ErrorContains(t, err, "too large")
		return
	}
	require.Fail(t, "the watch ended without an error")
}
