package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
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
		l, err := parseListing(q, noon)
		if err != nil {
			_, ok := err.(*requestError)
			require.True(t, ok, "every refusal is a 400")
			return
		}
		require.Positive(t, l.filter.Limit)
		require.LessOrEqual(t, l.filter.Limit, maxPageSize)
		for _, s := range l.filter.Statuses {
			require.True(t, s.Valid())
		}
		_ = l.match(&store.Run{ID: query, Reason: query, Last: &store.Event{Key: query}}, strings.ToUpper)
	})
}

func FuzzAWaitID(f *testing.F) {
	f.Add("order-42:7")
	f.Add(":")
	f.Add("a:b:9")
	f.Add("r:-1")
	f.Add("deploy:staging")
	f.Add("r:07")
	f.Add("r:+7")
	f.Fuzz(func(t *testing.T, id string) {
		run, ok := runOfWait(id)
		rt := route{run: "wait"}
		r := &http.Request{}
		r.SetPathValue("wait", id)
		if !ok {
			require.Empty(t, run)
			require.Equal(t, id, rt.runOf(r), "it is the id of a run, whole")
			return
		}
		require.NotEmpty(t, run)
		require.Equal(t, run, rt.runOf(r))
		seq, err := strconv.ParseInt(strings.TrimPrefix(id, run+":"), 10, 64)
		require.NoError(t, err)
		require.Equal(t, id, waitID(&durable.Approval{RunID: run, Seq: seq}))
	})
}
