package client_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
