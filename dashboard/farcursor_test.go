package dashboard_test

import (
	"math"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
)

func TestAPageOfEventsBehindAnyNumberIsRead(t *testing.T) {
	onStores(t, dashboard.Options{ShowPayloads: true}, func(t *testing.T, s *site) {
		s.asks("r")
		for _, after := range []int64{1 << 32, math.MaxInt64 - 1, math.MaxInt64} {
			for _, rest := range []string{"", "&all=1", "&tail=3", "&tail=9223372036854775807"} {
				a := s.send("GET", "/api/runs/r/events?after="+strconv.FormatInt(after, 10)+rest, "")
				require.Equal(t, http.StatusOK, a.status, "%d%s: %s", after, rest, a.body)
				require.Empty(t, a.json(t)["events"])
			}
		}
		require.Equal(t, http.StatusNotFound, s.send("GET", "/api/runs/r/events/9223372036854775807/payload", "").status)
	})
}
