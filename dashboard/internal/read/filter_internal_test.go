package read

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/store"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestAMomentIsADateOrHowLongAgo(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-01-31T12:00:00Z":      time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00+02:00": time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC),
		"2026-01-31":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"90m":                       noon.Add(-90 * time.Minute),
		"7d":                        noon.AddDate(0, 0, -7),
		"0s":                        noon,
	} {
		got, err := parseMoment("since", text, noon)
		require.NoError(t, err, text)
		require.Equal(t, store.TimeOf(want), got, text)
	}
	for _, text := range []string{"", "-1h", "yesterday", "1", "99999999d", "2026-13-01"} {
		_, err := parseMoment("since", text, noon)
		require.Error(t, err, text)
	}
}

// Whatever a query holds, it comes to a filter with bounds, or is refused; what
// it says ends in the fields of the filter and nowhere else.
func FuzzAListing(f *testing.F) {
	for _, s := range []string{
		"", "status=failed&workflow=a,b", "limit=7&cursor=x&q=%27%3B--", "attribute=a=b=c&since=7d", "status=%00", "key=items[3]/resize&error=%25_", "order=oldest&counts", "prefix=%5C",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		l, err := ParseListing(q, noon)
		if err != nil {
			_, ok := err.(*web.RequestError)
			require.True(t, ok, "every refusal is a 400")
			return
		}
		require.Positive(t, l.Filter.Limit)
		require.LessOrEqual(t, l.Filter.Limit, maxPageSize)
		for _, s := range l.Filter.Statuses {
			require.True(t, s.Valid())
		}
		_ = l.Match(&store.Run{ID: query, Reason: query, Last: &store.Event{Key: query}}, strings.ToUpper)
	})
}
