package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A store's cursor belongs to one filter, and "since=24h" is another filter at
// each moment. So what is handed out has the moment in front from which the first
// page has counted, and the next page counts from there, too:
//
//	since=24h                      at 12:00: since 12:00 yesterday, next "t1a2b3c.XYZ"
//	since=24h&cursor=t1a2b3c.XYZ   at 12:01: since 12:00 yesterday, behind XYZ

// handOut returns a cursor of the store as clients get it.
func (l *listing) handOut(cursor string) string {
	if cursor == "" || l.filter.CreatedFrom == 0 && l.filter.CreatedTo == 0 {
		return cursor
	}
	return "t" + strconv.FormatInt(l.now.UnixMicro(), 36) + "." + cursor
}

// takeCursor is the other direction. at is the moment to count from: now, unless
// the cursor says another.
func takeCursor(s string, now time.Time) (cursor string, at time.Time) {
	moment, rest, ok := strings.Cut(s, ".")
	if us, err := strconv.ParseInt(strings.TrimPrefix(moment, "t"), 36, 64); ok && err == nil {
		return rest, time.UnixMicro(us)
	}
	return s, now
}

// lastOf returns what counts of a parameter that is repeated.
func lastOf(q url.Values, name string) string {
	if values := q[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}
