package docs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// The units and containers of the guide wait longer than the engine does, also when
// it waits for its archive.
func TestTheGuideGivesCloseItsTime(t *testing.T) {
	page := read(t, "docs/guides/deploying.md")
	found := regexp.MustCompile(`(?:TimeoutStopSec=|--time |terminationGracePeriodSeconds: )(\d+)`).FindAllStringSubmatch(page, -1)
	require.Len(t, found, 3)
	for _, m := range found {
		seconds, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.Greater(t, time.Duration(seconds)*time.Second, 2*durable.DefaultGrace, m[0])
	}
}

// The page that says who may act shows a handler that is compiled and run.
func TestThePageOfTheDashboardShowsTheExample(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "docs/dashboard.md"), -1)
	require.NotEmpty(t, blocks)
	require.True(t, strings.Contains(read(t, "dashboard/example_test.go"), blocks[0][1]), "not in dashboard/example_test.go:\n%s", blocks[0][1])
}
