package dashboard_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Pages behind http.StripPrefix are served, but their links lead past them.
func TestAPrefixThatWasCutOffIsToldOnce(t *testing.T) {
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer eng.Close()
	for name, c := range map[string]struct {
		wrong bool
		mount func(dashboard.Options) http.Handler
	}{
		"with StripPrefix": {true, func(o dashboard.Options) http.Handler {
			return http.StripPrefix("/durable", dashboard.Handler(eng, o))
		}},
		"with Options.Prefix": {false, func(o dashboard.Options) http.Handler {
			o.Prefix = "/durable"
			return dashboard.Handler(eng, o)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			mux := http.NewServeMux()
			mux.Handle("/durable/", c.mount(dashboard.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			server := httptest.NewServer(mux)
			for range 2 {
				a, err := http.Get(server.URL + "/durable/api/runs?limit=1")
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, a.StatusCode)
				require.NoError(t, a.Body.Close())
			}
			server.Close()
			told := strings.Count(log.String(), "name the whole path in Options.Prefix\" prefix=/durable\n")
			if c.wrong {
				require.Equal(t, 1, told, log.String())
			} else {
				require.Zero(t, told, log.String())
			}
		})
	}
}
